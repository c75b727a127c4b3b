const VIEWS = {
  graph: { title: "Graph", key: "g", has: (program) => program.operations.length },
  operations: { title: "Operations", key: "o", has: (program) => program.operations.length },
  memory: { title: "Memory", key: "m", has: (program) => program.memory.buffers.length },
  timeline: { title: "Timeline", key: "t", has: (program) => program.timeline.length },
  stages: { title: "Stages", key: "s", has: (program) => program.stages.length },
};

/** The part beside the texts: pictures, tables, and what is selected. */
class Dock {
  constructor(app) {
    Object.assign(this, {
      app,
      view: "graph",
      size: 420,
      right: true,
      program: app.exploration.programs[0],
      open: true,
    });
    this.tabs = make("div", { role: "tablist", "aria-label": "Views", onkeydown: (event) => this.key(event) });
    this.panel = make("div", { class: "view", role: "tabpanel", id: "view" });
    this.selection = make("section", { class: "selection scroll", "aria-label": "Selection", tabindex: "0" });
    this.programs = make("select", {
      "aria-label": "Program of the view",
      onchange: (event) => this.show(this.view, this.app.exploration.programs[Number(event.target.value)]),
    });
    this.programs.hidden = app.exploration.programs.length < 2;
    for (const program of app.exploration.programs)
      this.programs.append(
        make("option", { value: program.number, title: app.named(program) }, app.letter(program)),
      );
    this.turn = button("◧", "Move this part to the other side", () => this.place(!this.right), {
      class: "icon turn",
    });
    const share = () => 1 - this.size / Math.max(this.size, this.room());
    this.border = splitter(
      "Size of the views",
      (pixels) => this.resize(pixels),
      share,
      () => this.right,
    );
    this.element = make(
      "aside",
      { id: "dock", "aria-label": "Views of the program" },
      make(
        "div",
        { class: "tabs" },
        this.tabs,
        make("span", { class: "room" }),
        this.programs,
        this.turn,
        button("×", "Hide this part (v)", () => this.toggle(), { class: "icon" }),
      ),
      make("div", { class: "dock-body" }, this.panel, this.selection),
    );
  }

  names() {
    return Object.keys(VIEWS).filter((name) => VIEWS[name].has(this.program));
  }

  /** Show a view by its name; one that the program has nothing for is left out. */
  show(view, program = this.program) {
    this.program = program;
    this.programs.value = String(program.number);
    const names = this.names();
    this.view = names.includes(view) ? view : (names[0] ?? "stages");
    this.tabs.replaceChildren(
      ...names.map((name) =>
        make(
          "button",
          {
            ...{
              type: "button",
              role: "tab",
              id: `tab-${name}`,
              "aria-controls": "view",
              "aria-selected": String(name === this.view),
            },
            ...{
              tabindex: name === this.view ? "0" : "-1",
              title: `${VIEWS[name].title} (${VIEWS[name].key})`,
              onclick: () => this.show(name),
            },
          },
          VIEWS[name].title,
        ),
      ),
    );
    this.panel.setAttribute("aria-labelledby", `tab-${this.view}`);
    this.content?.close();
    this.content = this.made();
    this.panel.replaceChildren(this.content.element);
    this.app.remember();
  }

  made() {
    const { app, program } = this;
    const label = (text) => `${text} of ${program.title}`;
    switch (this.view) {
      case "graph":
        return new Surface(
          app,
          new GraphView(app, program),
          `${label("Graph")}; arrow keys walk along its edges, the tab Operations has it as a list`,
        );
      case "memory":
        return new Surface(app, memoryView(app, program), label("Plan of memory over time"));
      case "timeline":
        return new Surface(app, timelineView(app, program), label("Timeline of threads"));
      case "operations":
        return new OperationTable(app, program);
      default:
        return new StageTable(app, program);
    }
  }

  key(event) {
    const names = this.names();
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    this.show(names[(names.indexOf(this.view) + step + names.length) % names.length]);
    document.getElementById(`tab-${this.view}`).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  toggle(open = !this.open) {
    this.open = open;
    this.app.arrange();
  }

  place(right) {
    this.right = right;
    const room = this.room();
    this.size = Math.round(room * (right ? 0.34 : 0.4));
    this.app.arrange();
  }

  room() {
    const work = document.getElementById("work");
    return this.right ? work.clientWidth : work.clientHeight;
  }

  resize(pixels) {
    this.size = Math.round(Math.max(180, Math.min(this.room() - 200, this.size - pixels)));
    this.app.arrange();
  }

  selected() {
    const { app } = this;
    this.content?.selected();
    const operations = app.selected.operations[this.program.number] ?? [];
    if (operations.length) this.selection.replaceChildren(...selectionCard(app, this.program, operations));
    else
      this.selection.replaceChildren(
        make(
          "p",
          { class: "muted" },
          app.selected.key
            ? "This line belongs to no operation of the program."
            : "Click a line or a box: what it came from and what it became is marked everywhere.",
        ),
      );
  }

  pointed() {
    this.content?.drawSoon?.();
  }
}
