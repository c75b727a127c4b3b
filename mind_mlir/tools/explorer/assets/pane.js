/** A stage's text beside others: its head, its lines, and a ruler that shows where in it is what. */
class Pane {
  constructor(app, stage, share) {
    Object.assign(this, { app, stage, share });
    this.lit = [];
    this.found = null;
    this.list = new List({
      label: `${app.labelled(stage)}, ${counted(stage.text.count, "line")}`,
      count: stage.text.count,
      widest: stage.text.widest,
      digits: String(stage.text.count + stage.first).length,
      row: (line) => this.row(line),
      classes: (line) => this.classes(line),
      chosen: (line, event) => app.choose(this, line, event.ctrlKey || event.metaKey),
      pointed: (line) => app.point(this, line),
    });
    this.list.drawn = () => follow(app, this);
    this.ruler = make("canvas", { class: "ruler", "aria-hidden": "true", onclick: (event) => this.jump(event) });
    this.drawRuler = onceAFrame(() => this.rule());
    new ResizeObserver(this.drawRuler).observe(this.ruler);
    this.element = make(
      "section",
      {
        class: "pane",
        "aria-label": app.labelled(stage),
        onfocusin: () => app.focus(this),
        onwheel: () => app.focus(this),
      },
      this.head(),
      make("div", { class: "body" }, this.list.element, this.ruler),
    );
    this.element.style.flexGrow = share;
  }

  get key() {
    return this.stage.key;
  }

  head() {
    const { stage, app } = this;
    const select = make("select", {
      class: "title",
      "aria-label": "Stage in this pane",
      onchange: (event) => app.replace(this, event.target.value),
    });
    for (const other of stage.program.stages) {
      select.append(make("option", { value: other.key, selected: other === stage }, other.title));
    }
    this.places = make("span", { class: "places" });
    const several = app.exploration.programs.length > 1;
    const changes = stage.changes.length
      ? button(
          counted(stage.changes.length, "change"),
          "What passes changed on the way here",
          () => this.unfold(),
          {
            class: "pill",
            "aria-expanded": "false",
          },
        )
      : null;
    this.changesButton = changes;
    this.changesList = make(
      "ul",
      { class: "changes", hidden: true },
      ...stage.changes.map((each) => make("li", {}, ...prose(each))),
    );
    return make(
      "header",
      {},
      make(
        "div",
        { class: "bar" },
        several
          ? make(
              "span",
              { class: `side side-${stage.program.number}`, title: app.named(stage.program) },
              app.letter(stage.program),
            )
          : null,
        select,
        make("span", { class: "count" }, counted(stage.text.count, "line")),
        make("span", { class: "room" }),
        this.places,
        changes,
        button("×", "Close this pane", () => app.toggle(stage.key), { class: "icon close" }),
      ),
      make("p", { class: "explanation", title: stage.explanation }, stage.explanation),
      this.changesList,
    );
  }

  unfold() {
    this.changesList.hidden = !this.changesList.hidden;
    this.changesButton.setAttribute("aria-expanded", String(!this.changesList.hidden));
  }

  row(line) {
    const text = this.stage.text.line(line);
    const shown = text.length > LONGEST_LINE ? text.slice(0, LONGEST_LINE) : text;
    const rest = text.length - shown.length;
    const code = marked(this.stage.language, shown, {
      mark: within(shown, this.app.finder.expression),
      ins: this.differing(line, shown),
    });
    return (
      `<span class="gutter"><i style="${this.stripe(line)}"></i>${line + this.stage.first}</span><span class="code">${code}</span>` +
      (rest ? `<span class="rest">… ${grouped(rest)} more characters</span>` : "")
    );
  }

  /** The part of a line that differs from the one which it stands against. */
  differing(line, shown) {
    const against = this.changes?.against(this.side, line) ?? -1;
    if (against < 0) return [];
    const part = differing(shown, this.other.stage.text.line(against));
    return part[0] < part[1] ? [part] : [];
  }

  /** The colours of a line's operations, which it shares with the lines that they came from and became. */
  stripe(line) {
    const operations = this.stage.operationsOf(line);
    if (!operations.length) return "";
    const shown = operations.slice(0, 4).map((operation) => tint(this.app.toned(operation, this.stage.program)));
    if (shown.length === 1) return `background:${shown[0]}`;
    const step = 100 / shown.length;
    const stops = shown.map((colour, number) => `${colour} ${number * step}% ${(number + 1) * step}%`);
    return `background:linear-gradient(${stops.join(",")})`;
  }

  classes(line) {
    const set = this.stage.marks.setOf(line);
    const { app } = this;
    const program = this.stage.program.number;
    const names = [];
    if (app.selected.lit[program]?.[set]) names.push("lit");
    if (app.pointed.lit[program]?.[set]) names.push("warm");
    if (app.selected.key === this.key && app.selected.line === line) names.push("lit", "chosen");
    const differs = this.changes?.kind(this.side, line);
    if (differs) names.push(`is-${differs}`);
    const hit = app.finder.at;
    if (hit && hit.key === this.key && hit.line === line) names.push("hit");
    return names.join(" ");
  }

  /** Compare with another pane, which shows the same stage of another program; null for none. */
  compare(other) {
    const [one, two] = [this.stage.program.number, other?.stage.program.number ?? -1];
    this.other = other;
    this.changes = other ? this.app.exploration.changes(this.stage.stage, one, two) : null;
    this.side = one < two ? 0 : 1;
  }

  /** Where this text differs from the other one. */
  differences() {
    return this.changes?.places(this.side, this.stage.text.count) ?? [];
  }

  /** Show what is selected: where it is, and the nearest place of it unless this pane is where it was chosen. */
  select(share, offset) {
    const lit = this.app.selected.lit[this.stage.program.number];
    this.lit = lit ? this.stage.marks.places(lit) : [];
    this.list.paint();
    this.drawRuler();
    this.showPlaces();
    if (share === null || !this.lit.length) return;
    const top = this.list.firstSeen();
    const seen = this.list.seen();
    if (this.lit.some(([first, end]) => first >= top && Math.min(end, first + 3) <= top + seen)) return;
    const [first, end] = this.lit[nearest(this.lit, share, this.stage.text.count)];
    this.list.show(first, end, offset);
  }

  showPlaces() {
    this.places.replaceChildren();
    if (!this.lit.length) return;
    const lines = total(this.lit);
    const places = this.lit.length;
    const label =
      places === 1 ? counted(lines, "line") : `${counted(lines, "line")} in ${counted(places, "place")}`;
    this.places.append(
      button("↑", "The previous place of the selection", () => this.step(-1), { class: "icon" }),
      button("↓", "The next place of the selection", () => this.step(1), { class: "icon" }),
      make("span", {}, label),
    );
  }

  step(direction, places = this.lit) {
    const at = this.list.current < 0 ? this.list.firstSeen() - (direction > 0) : this.list.current;
    const next = neighbour(places, at, direction);
    if (next >= 0) this.list.go(places[next][0], Math.floor(this.list.seen() / 3));
  }

  jump(event) {
    const share = event.offsetY / this.ruler.clientHeight;
    const line = Math.min(this.stage.text.count - 1, Math.floor(share * this.stage.text.count));
    this.list.show(line, line + 1, Math.floor(this.list.seen() / 2));
  }

  /** Draw where differences, the selection and what was found lie in the whole text. */
  rule() {
    const { clientWidth: width, clientHeight: height } = this.ruler;
    if (!width || !height) return;
    const pen = sharpen(this.ruler, width, height);
    const scale = height / Math.max(this.stage.text.count, height / ROW);
    const shades = colours();
    const bars = (places, colour, left, right) => {
      pen.fillStyle = colour;
      let drawn = -1;
      for (const [first, end] of places) {
        const below = Math.floor(end * scale);
        if (below === drawn) continue;
        drawn = below;
        pen.fillRect(left, first * scale, right - left, Math.max(2, (end - first) * scale));
      }
    };
    bars(this.differences(), shades.changed, 0, 3);
    bars(this.lit, shades.accent, 3, width - 3);
    bars(
      apart(this.found?.lines ?? [], 1 / scale).map((line) => [line, line + 1]),
      shades.found,
      width - 4,
      width,
    );
  }

  redraw() {
    this.list.draw();
    this.drawRuler();
  }

  close() {
    this.list.close();
  }
}
