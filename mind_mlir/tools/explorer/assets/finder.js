/** Search over all texts of the programs that are shown. */
class Finder {
  constructor(app) {
    Object.assign(this, { app, query: "", regular: false, expression: null, at: null, found: new Map() });
    this.input = make("input", {
      type: "search",
      placeholder: "Find in all stages",
      "aria-label": "Find in all stages",
      title: "Find in all stages (/); capital letters count where there is one",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.soon(),
      onkeydown: (event) => this.key(event),
    });
    this.count = make("output", { class: "found-count" });
    this.regularButton = button(".*", "Regular expression", () => this.setRegular(!this.regular), {
      class: "icon",
      "aria-pressed": "false",
    });
    this.element = make(
      "div",
      { class: "finder", role: "search" },
      this.input,
      this.count,
      this.regularButton,
      button("↑", "The previous one (p)", () => this.step(-1), { class: "icon" }),
      button("↓", "The next one (n)", () => this.step(1), { class: "icon" }),
    );
  }

  key(event) {
    if (event.key === "Enter") {
      this.run();
      this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      this.set("");
      this.app.active?.list.element.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Search a moment after the last key: large texts take longer than a key. */
  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), 90);
  }

  set(query) {
    this.input.value = query;
    this.run();
  }

  setRegular(regular) {
    this.regular = regular;
    this.regularButton.setAttribute("aria-pressed", String(regular));
    this.query = null;
    this.run();
  }

  run() {
    clearTimeout(this.timer);
    if (this.input.value === this.query) return;
    this.query = this.input.value;
    this.at = null;
    this.found = new Map();
    this.input.removeAttribute("aria-invalid");
    try {
      this.expression = wanted(this.query, this.regular);
    } catch (error) {
      this.expression = null;
      this.input.setAttribute("aria-invalid", "true");
      this.say(error.message.replace(/^.*: /, ""));
      this.app.searched();
      return;
    }
    if (this.expression) {
      for (const program of this.app.shown) {
        for (const stage of program.stages) this.found.set(stage.key, linesWith(stage.text, this.expression));
      }
    }
    this.app.searched();
    this.report();
  }

  report() {
    const all = [...this.found.values()];
    const lines = all.reduce((sum, { lines: each }) => sum + each.length, 0);
    const more = all.some((each) => each.more) ? "+" : "";
    if (!this.expression) this.say("");
    else if (!lines) this.say("not found");
    else if (!this.at) this.say(`${grouped(lines)}${more} lines`);
    else
      this.say(
        `${grouped(this.at.number + 1)} of ${grouped(this.at.of)}`,
        `of ${grouped(lines)}${more} lines in all stages`,
      );
  }

  say(text, more = "") {
    this.count.textContent = text;
    this.count.title = more;
  }

  /** Go to the next line that was found, in the panes that are shown, or else in the first stage that has one. */
  step(direction) {
    if (!this.expression) {
      this.input.focus();
      return;
    }
    let panes = this.app.panes;
    let lines = panes.map((pane) => this.found.get(pane.key)?.lines ?? []);
    if (lines.every((each) => !each.length)) {
      const [key] = [...this.found].find(([, { lines: each }]) => each.length) ?? [];
      if (!key) return;
      this.app.open(key);
      panes = this.app.panes;
      lines = panes.map((pane) => this.found.get(pane.key)?.lines ?? []);
    }
    const start = Math.max(0, panes.indexOf(this.app.active));
    const { list } = panes[start];
    const line = this.at?.key === panes[start].key ? this.at.line : list.firstSeen() - (direction > 0 ? 1 : 0);
    const next = following(lines, start, line, direction);
    if (!next) return;
    const pane = panes[next.text];
    const before = lines.slice(0, next.text).reduce((sum, each) => sum + each.length, 0);
    this.at = {
      key: pane.key,
      line: next.line,
      number: before + next.number,
      of: lines.reduce((sum, each) => sum + each.length, 0),
    };
    this.app.focus(pane);
    pane.list.go(next.line, Math.floor(pane.list.seen() / 3));
    for (const other of panes) other.list.paint();
    this.report();
  }
}
