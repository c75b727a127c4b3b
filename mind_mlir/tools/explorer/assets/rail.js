/** The stages in the order of the compiler: which of them are shown, how long each took, what was found in it. */
class Rail {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("rail");
  }

  /** The names of stages of all programs that are shown. */
  names() {
    const names = new Map();
    for (const program of this.app.shown) for (const stage of program.stages) names.set(stage.stage, stage);
    return names;
  }

  draw() {
    const { app } = this;
    const times = app.shown.flatMap((program) => program.stages.map((stage) => stage.seconds ?? 0));
    const slowest = greatest(times, 1e-9);
    const chips = [...this.names()].map(([name, stage]) => this.chip(name, stage, slowest));
    this.element.replaceChildren(...chips);
  }

  chip(name, stage, slowest) {
    const { app } = this;
    const keys = app.shown.map((program) => program.stage(name)?.key).filter(Boolean);
    const shown = keys.some((key) => app.pane(key));
    const found = keys.reduce((sum, key) => sum + (app.finder.found.get(key)?.lines.length ?? 0), 0);
    const changes = app.comparing
      ? app.exploration.changes(name, ...app.shown.map((program) => program.number))
      : null;
    const time = make("i", { class: "time" });
    time.style.width = `${stage.seconds === null ? 0 : Math.max(2, (100 * stage.seconds) / slowest)}%`;
    const notes = [
      stage.path === stage.title ? "" : stage.path,
      stage.explanation,
      counted(stage.text.count, "line"),
      stage.seconds === null ? "" : `made in ${duration(stage.seconds)}`,
      changes ? (changes.count ? `${counted(changes.count, "difference")}` : "no difference") : "",
    ];
    return make(
      "button",
      {
        ...{
          type: "button",
          class: "chip",
          "aria-pressed": String(shown),
          title: notes.filter(Boolean).join("\n"),
        },
        onclick: () => app.toggleStage(name),
      },
      make("span", { class: "name" }, stage.title),
      changes?.count
        ? make(
            "span",
            { class: "badge differs", title: counted(changes.count, "difference") },
            `≠ ${grouped(changes.count)}`,
          )
        : null,
      found ? make("span", { class: "badge" }, grouped(found)) : null,
      time,
    );
  }
}
