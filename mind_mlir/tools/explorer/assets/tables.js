/** What each stage does, how long it took, and what passes changed on the way there. */
class StageTable {
  constructor(app, program) {
    const slowest = greatest(program.stages.map((stage) => stage.seconds ?? 0));
    const all = program.stages.reduce((sum, stage) => sum + (stage.seconds ?? 0), 0);
    const rows = program.stages.map((stage) =>
      make(
        "tr",
        {},
        make(
          "th",
          { scope: "row" },
          button(stage.title, "Show or hide this stage", () => app.toggle(stage.key), { class: "link" }),
        ),
        make("td", { class: "number" }, grouped(stage.text.count)),
        make("td", { class: "time" }, this.bar(stage.seconds, slowest)),
        make(
          "td",
          {},
          stage.explanation,
          stage.changes.length
            ? make("ul", {}, ...stage.changes.map((each) => make("li", {}, ...prose(each))))
            : null,
        ),
      ),
    );
    const head = [
      "Stage",
      "Lines",
      all ? `Time, ${duration(all)} in all` : "Time",
      "What it does, and what passes changed",
    ];
    this.element = make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Stages" },
      make(
        "table",
        {},
        make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col" }, each)))),
        make("tbody", {}, ...rows),
      ),
    );
  }

  bar(seconds, slowest) {
    if (seconds === null) return make("span", { class: "muted" }, "not known");
    const part = make("i", { class: "bar-of" });
    part.style.width = `${slowest ? Math.max(1, (100 * seconds) / slowest) : 0}%`;
    return make("span", { class: "timed" }, part, make("span", {}, duration(seconds)));
  }

  selected() {}

  close() {}
}

/** All operations of a program as a list, which is the graph for those who do not see it. */
class OperationTable {
  constructor(app, program) {
    Object.assign(this, { app, program });
    const { operations } = program;
    const column = (name, most) =>
      Math.min(
        most,
        greatest(
          operations.map((each) => each[name].length),
          4,
        ),
      );
    this.wide = [column("opcode", 28), column("name", 28)];
    this.list = new List({
      label: "Operations",
      count: operations.length,
      widest: 160,
      row: (number) => this.row(number),
      classes: (number) => (app.selected.operations[program.number]?.includes(number) ? "lit" : ""),
      chosen: (number, event) => app.chooseOperations(program, [number], event.ctrlKey || event.metaKey),
    });
    this.list.element.classList.add("operations");
    this.element = this.list.element;
  }

  row(number) {
    const { opcode, name, type } = this.program.operations[number];
    const [one, two] = this.wide;
    const cell = (text, width) => `<span style="width:${width + 2}ch">${escaped(text)}</span>`;
    const colour = tint(this.app.toned(number, this.program));
    return (
      `<span class="gutter"><i style="background:${colour}"></i>${number}</span><span class="code cells">` +
      `<b>${cell(opcode, one)}</b>${cell(name, two)}<span class="muted">${escaped(type)}</span>` +
      `<span class="muted place">${escaped(this.program.place(number))}</span></span>`
    );
  }

  selected() {
    const [first] = this.app.selected.operations[this.program.number] ?? [];
    if (first !== undefined) this.list.show(first, first + 1);
    this.list.paint();
  }

  close() {
    this.list.close();
  }
}

/** The most operations that the list of the selection shows. */
const MOST_LISTED = 200;

/** Operations that a selected one reads, or that read it. */
function neighbours(app, program, word, others) {
  const links = others.slice(0, MOST_LISTED).map((other) => {
    const { opcode, name } = program.operations[other] ?? {};
    return button(`${opcode} ${name}`, `Select ${opcode} ${name}`, () => app.chooseOperations(program, [other]), {
      class: "link",
    });
  });
  return make("p", { class: "near" }, make("span", { class: "muted" }, word), ...links);
}

/** The operations that are selected, and what became of them. */
function selectionCard(app, program, operations) {
  const lit = app.selected.lit[program.number];
  const items = operations.slice(0, MOST_LISTED).map((operation) => {
    const { opcode, name, type } = program.operations[operation];
    const swatch = make("i", { class: "swatch" });
    swatch.style.background = tint(app.toned(operation, program));
    const title = button("", `Select only ${opcode} ${name}`, () => app.chooseOperations(program, [operation]), {
      class: "link",
    });
    title.append(make("b", {}, opcode), " ", make("code", {}, name));
    return make(
      "li",
      {},
      swatch,
      make(
        "div",
        {},
        title,
        make("code", { class: "type" }, type),
        make("span", { class: "muted" }, program.place(operation)),
      ),
    );
  });
  const rest = operations.length - items.length;
  const near =
    operations.length === 1
      ? [
          ["Reads", program.operations[operations[0]].inputs],
          ["Read by", program.readers[operations[0]]],
        ]
      : [];
  const most = greatest(
    program.stages.map((stage) => total(stage.marks.places(lit))),
    1,
  );
  const became = program.stages.map((stage) => {
    const lines = total(stage.marks.places(lit));
    const part = make("i", { class: "bar-of" });
    part.style.width = `${(100 * Math.log1p(lines)) / Math.log1p(most)}%`;
    const label = button(stage.title, "Show this stage", () => app.open(stage.key), { class: "link" });
    return make(
      "li",
      { class: lines ? "" : "muted" },
      label,
      make("span", { class: "timed" }, part, make("span", {}, grouped(lines))),
    );
  });
  return [
    make("h2", {}, counted(operations.length, "operation")),
    make(
      "ul",
      { class: "chosen-list" },
      ...items,
      rest > 0 ? make("li", { class: "muted" }, `and ${grouped(rest)} more`) : null,
    ),
    ...near.filter(([, others]) => others.length).map(([word, others]) => neighbours(app, program, word, others)),
    make("h2", {}, "Lines at each stage"),
    make("ul", { class: "became" }, ...became),
  ];
}
