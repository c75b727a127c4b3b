/** The text of a program at one stage; cut into lines when it is first shown or searched. */
class Stage {
  constructor(program, number, { text, runs, ...facts }) {
    Object.assign(this, facts);
    this.program = program;
    this.number = number;
    this.key = `${program.number}.${this.stage}`;
    // A source is called as its file, whose folders are many letters for a pane's head.
    this.path = this.title;
    this.title = this.path.replace(/^.*\//, "");
    this.parts = { text, runs };
  }

  get text() {
    this.cut ??= new Lines(this.parts.text);
    return this.cut;
  }

  get marks() {
    this.traced ??= new Marks(this.parts.runs);
    return this.traced;
  }

  operationsOf(line) {
    return this.program.sets.sets[this.marks.setOf(line)];
  }
}

/** One program for one target, with what it became. */
class Program {
  constructor(data, number) {
    this.number = number;
    this.title = data.title;
    this.target = data.target;
    this.traced = data.traced;
    this.graph = data.graph;
    this.memory = data.memory;
    this.timeline = data.timeline;
    this.operations = data.operations.map(([opcode, name, type, file, line, inputs]) => ({
      ...{ opcode, name, type, file, line, inputs },
    }));
    this.readers = this.operations.map(() => []);
    this.operations.forEach(({ inputs }, number) =>
      new Set(inputs).forEach((read) => this.readers[read]?.push(number)),
    );
    this.sets = new Sets(data.sets, this.operations.length);
    this.stages = data.panes.map((pane, place) => new Stage(this, place, pane));
  }

  stage(name) {
    return this.stages.find((stage) => stage.stage === name);
  }

  /** Where an operation stands in its file. */
  place(operation) {
    const { file, line } = this.operations[operation];
    return line ? `${file || "line "}${file ? ":" : ""}${line}` : "";
  }
}

/** All that the page is about. */
class Exploration {
  constructor(data) {
    this.programs = data.explorations.map((each, number) => new Program(each, number));
    this.comparisons = data.comparisons.map(({ stages, same }) => ({ stages, same, changes: {} }));
  }

  stage(key) {
    const at = key.indexOf(".");
    return this.programs[Number(key.slice(0, at))]?.stage(key.slice(at + 1));
  }

  /** How a stage of one program differs from that of another, one of which is the first; null where they stand alone. */
  changes(stage, one, other) {
    const comparison = this.comparisons[Math.max(one, other) - 1];
    if (!comparison || one === other || Math.min(one, other) !== 0 || !(stage in comparison.stages)) return null;
    comparison.changes[stage] ??= new Changes(comparison.stages[stage]);
    return comparison.changes[stage];
  }

  /** Operations of one program as those of another. */
  translated(operations, from, to) {
    if (from === to) return operations;
    const first = from === 0 ? operations : translated(operations, this.comparisons[from - 1].same, false);
    return to === 0 ? first : translated(first, this.comparisons[to - 1].same, true);
  }
}
