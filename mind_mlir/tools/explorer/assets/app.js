/** Nothing selected, or nothing pointed at. */
function nothing() {
  return { operations: [], lit: [], key: null, line: -1 };
}

/** Below this width, one pane is shown at a time. */
const NARROW = window.matchMedia("(max-width: 760px)");

/** What is shown, and what is selected: whoever changes either goes through here. */
class App {
  constructor(exploration) {
    this.exploration = exploration;
    this.panes = [];
    this.active = null;
    this.selected = nothing();
    this.pointed = nothing();
    this.shown = exploration.programs.slice(0, 2);
    this.finder = new Finder(this);
    this.rail = new Rail(this);
    this.dock = new Dock(this);
    this.work = document.getElementById("work");
    this.beside = make("div", { id: "panes" });
    this.work.append(this.beside, this.dock.border, this.dock.element);
    this.remember = () => {
      clearTimeout(this.remembering);
      this.remembering = setTimeout(() => remember(this), 150);
    };
  }

  get comparing() {
    return this.shown.length === 2;
  }

  letter(program) {
    return String.fromCharCode(65 + program.number);
  }

  named(program) {
    return `${program.title}, ${program.target}`;
  }

  /** What a stage is called, with its program where there are several. */
  labelled(stage) {
    return this.exploration.programs.length > 1 ? `${this.letter(stage.program)}: ${stage.title}` : stage.title;
  }

  /** The number that gives an operation its colour: the same operation of several programs has one. */
  toned(operation, program) {
    if (program.number === 0) return operation;
    const same = this.exploration.comparisons[program.number - 1].same[operation];
    return same >= 0 ? same : operation + 7;
  }

  pane(key) {
    return this.panes.find((pane) => pane.key === key);
  }

  say(text) {
    document.getElementById("said").textContent = text;
  }

  // Which panes are shown.

  /** Show these stages, by their keys and shares of the width; a pane that is there already stays as it is. */
  setPanes(wanted) {
    const before = new Map(this.panes.map((pane) => [pane.key, pane]));
    const stages = new Set();
    const made = new Set();
    this.panes = [];
    for (const { key, share } of wanted) {
      const stage = this.exploration.stage(key);
      if (!stage || stages.has(stage)) continue;
      stages.add(stage);
      this.panes.push(before.get(key) ?? new Pane(this, stage, share));
      if (!before.has(key)) made.add(key);
      before.delete(key);
    }
    for (const pane of before.values()) pane.close();
    if (!this.panes.includes(this.active)) this.active = this.panes[0] ?? null;
    for (const pane of this.panes) {
      pane.compare(this.panes.find((other) => other.stage.stage === pane.stage.stage && other !== pane) ?? null);
      pane.found = this.finder.found.get(pane.key);
    }
    this.placePanes();
    this.rail.draw();
    for (const pane of this.panes) pane.select(made.has(pane.key) ? 0 : null, null);
    for (const pane of this.panes) pane.redraw();
  }

  order(keys) {
    const place = (key) => {
      const stage = this.exploration.stage(key);
      return [stage.number, stage.program.number];
    };
    return keys.sort((one, other) => {
      const [[a, b], [c, d]] = [place(one.key), place(other.key)];
      return a - c || b - d;
    });
  }

  listed() {
    return this.panes.map(({ key, share }) => ({ key, share }));
  }

  open(key) {
    if (NARROW.matches) return this.setPanes([{ key, share: 1 }]);
    if (!this.pane(key)) this.setPanes(this.order([...this.listed(), { key, share: 1 }]));
    return this.focus(this.pane(key));
  }

  toggle(key) {
    if (!this.pane(key)) this.open(key);
    else this.setPanes(this.listed().filter((each) => each.key !== key));
  }

  toggleStage(name) {
    const keys = this.shown.map((program) => program.stage(name)?.key).filter(Boolean);
    if (NARROW.matches) return this.setPanes(keys.map((key) => ({ key, share: 1 })));
    const rest = this.listed().filter(({ key }) => !keys.includes(key));
    if (rest.length < this.panes.length) return this.setPanes(rest);
    return this.setPanes(this.order([...rest, ...keys.map((key) => ({ key, share: 1 }))]));
  }

  replace(pane, key) {
    this.setPanes(this.listed().map((each) => (each.key === pane.key ? { key, share: each.share } : each)));
    if (this.pane(key)) this.focus(this.pane(key));
  }

  /** Show one program, or two beside one another. */
  setShown(programs) {
    const names = [...new Set(this.panes.map(({ stage }) => stage.stage))];
    this.shown = programs;
    const keys = names.flatMap((name) => programs.map((program) => program.stage(name)?.key).filter(Boolean));
    this.finder.query = null;
    this.finder.run();
    this.setPanes(keys.map((key) => ({ key, share: 1 })));
    this.dock.show(this.dock.view, programs[0]);
    drawHead(this);
  }

  /** Put the panes beside one another; what is moved in a document forgets how far it was scrolled. */
  placePanes() {
    const tops = this.panes.map((pane) => pane.list.element.scrollTop);
    const parts = this.panes.flatMap((pane, number) =>
      number ? [this.border(number), pane.element] : [pane.element],
    );
    if (!parts.length) parts.push(make("p", { class: "empty muted" }, "Choose a stage above."));
    this.beside.replaceChildren(...parts);
    this.panes.forEach((pane, number) => (pane.list.element.scrollTop = tops[number]));
    this.focus(this.active);
    this.remember();
  }

  /** Show the views, or hide them, where they are to be. */
  arrange() {
    const { work, dock } = this;
    work.className = dock.right ? "beside" : "below";
    dock.element.style.flexBasis = `${dock.size}px`;
    dock.border.setAttribute("aria-orientation", dock.right ? "vertical" : "horizontal");
    dock.element.hidden = dock.border.hidden = !dock.open;
    document.getElementById("dock-button")?.setAttribute("aria-pressed", String(dock.open));
    this.remember();
  }

  /** What moves the border of two panes. */
  border(number) {
    const [one, other] = [this.panes[number - 1], this.panes[number]];
    const share = () => one.share / (one.share + other.share);
    return splitter("Width of the panes", (pixels) => this.resize(one, other, pixels), share);
  }

  resize(one, other, pixels) {
    const [left, right] = [one.element.clientWidth, other.element.clientWidth];
    const moved = Math.max(80 - left, Math.min(right - 80, pixels));
    const sum = one.share + other.share;
    one.share = (sum * (left + moved)) / (left + right);
    other.share = sum - one.share;
    for (const pane of [one, other]) pane.element.style.flexGrow = pane.share;
    this.remember();
  }

  focus(pane) {
    if (!pane) return;
    this.active = pane;
    for (const each of this.panes) each.element.classList.toggle("active", each === pane);
  }

  // What is selected.

  choose(pane, line, more) {
    const { program } = pane.stage;
    const operations = [...pane.stage.operationsOf(line)];
    this.focus(pane);
    this.select(program, operations, more, { key: pane.key, line });
    const lines = pane.stage.text.count;
    const offset = line - pane.list.firstSeen();
    for (const other of this.panes) other.select(other === pane ? null : line / lines, offset);
    this.describe();
  }

  chooseOperations(program, operations, more = false) {
    this.select(program, operations, more, { key: null, line: -1 });
    for (const pane of this.panes) pane.select(0, 4);
    this.describe();
  }

  select(program, operations, more, place) {
    const before = more ? (this.selected.operations[program.number] ?? []) : [];
    this.selected = { ...this.across(program, [...new Set([...before, ...operations])]), ...place };
    this.dock.selected();
    this.remember();
  }

  /** Operations of a program, and of all others the same ones, with the sets of lines that they light. */
  across(program, operations) {
    const found = nothing();
    for (const other of this.exploration.programs) {
      found.operations[other.number] = this.exploration.translated(operations, program.number, other.number);
      found.lit[other.number] = other.sets.lit(found.operations[other.number]);
    }
    return found;
  }

  clear() {
    this.selected = nothing();
    for (const pane of this.panes) pane.select(null, null);
    this.dock.selected();
    this.say("");
    this.remember();
  }

  point(pane, line) {
    const program = pane.stage.program;
    this.pointOperations(program, line < 0 ? [] : pane.stage.operationsOf(line));
    clearTimeout(this.resting);
    if (line < 0 || this.selected.key || this.selected.operations.length) return;
    this.resting = setTimeout(() => this.rest(pane, line), 350);
  }

  pointOperations(program, operations) {
    if (operations === this.pointing || (!operations.length && !this.pointing?.length)) return;
    this.pointing = operations;
    this.pointed = operations.length ? this.across(program, operations) : nothing();
    for (const pane of this.panes) pane.list.paint();
    this.dock.pointed();
    document.getElementById("hint").textContent = this.words(program, operations) || "? for keys";
  }

  /** Some operations in a few words. */
  words(program, operations) {
    const [first] = operations;
    if (first === undefined) return "";
    const { opcode, name, type } = program.operations[first];
    const rest = operations.length > 1 ? ` and ${grouped(operations.length - 1)} more` : ` : ${type}`;
    return `${opcode} ${name}${rest}`;
  }

  /** While nothing is selected, the other panes scroll to what the pointer rests on. */
  rest(pane, line) {
    for (const other of this.panes) {
      const lit = this.pointed.lit[other.stage.program.number];
      const places = lit && other !== pane ? other.stage.marks.places(lit) : [];
      if (!places.length) continue;
      const [first, end] = places[nearest(places, line / pane.stage.text.count, other.stage.text.count)];
      other.list.show(first, end, line - pane.list.firstSeen());
    }
  }

  describe() {
    const program = this.active?.stage.program ?? this.shown[0];
    const operations = this.selected.operations[program.number] ?? [];
    const lines = this.panes.map((pane) => `${counted(total(pane.lit), "line")} of ${pane.stage.title}`);
    if (!operations.length) this.say("This line belongs to no operation of the program.");
    else this.say(`${this.words(program, operations)} → ${lines.join(", ")}`);
  }

  searched() {
    for (const pane of this.panes) {
      pane.found = this.finder.found.get(pane.key);
      pane.redraw();
    }
    this.rail.draw();
    this.remember();
  }
}
