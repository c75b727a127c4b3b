/** The room of axes: for labels at the left, and for numbers at the top. */
const AXIS = { left: 84, top: 24, bottom: 10 };

/** Rectangles over time: `items` have `left` and `right` in time, `top` and `bottom` in `rows`, all from 0. */
class RectanglesView {
  constructor(app, program, { items, from, span, rows, moment, labels, tallest = Infinity }) {
    Object.assign(this, { app, program, items, from, rows, moment, labels, tallest });
    this.flat = true;
    this.left = AXIS.left;
    this.right = 14;
    this.width = span;
    this.height = 1;
  }

  row(height) {
    return Math.min(this.tallest, (height - AXIS.top - AXIS.bottom) / Math.max(1, this.rows));
  }

  at(x, y, { scale, size }) {
    const row = (y - AXIS.top) / this.row(size[1]);
    const thin = 1.5 / scale;
    for (let number = this.items.length - 1; number >= 0; number -= 1) {
      const item = this.items[number];
      if (row >= item.top && row < item.bottom && x >= item.left - thin && x < item.right + thin) return number;
    }
    return null;
  }

  operations(item) {
    return this.items[item].operations;
  }

  tip(item) {
    return this.items[item].tip;
  }

  reveal(surface) {
    const chosen = new Set(this.app.selected.operations[this.program.number] ?? []);
    const items = this.items.filter((item) => item.operations.some((operation) => chosen.has(operation)));
    const seen = (item) =>
      item.right * surface.scale + surface.x > AXIS.left &&
      item.left * surface.scale + surface.x < surface.size[0];
    if (items.length && !items.some(seen)) surface.reveal(items[0].left, 0, items[0].right, 0);
  }

  draw(pen, surface, width, height) {
    const shades = colours();
    const row = this.row(height);
    this.drawAxes(pen, surface, width, height, row, shades);
    const chosen = new Set(this.app.selected.operations[this.program.number] ?? []);
    const pointed = new Set(this.app.pointed.operations[this.program.number] ?? []);
    pen.save();
    pen.beginPath();
    pen.rect(AXIS.left, AXIS.top, width - AXIS.left, height - AXIS.top);
    pen.clip();
    this.items.forEach((item, number) => {
      const left = item.left * surface.scale + surface.x;
      const wide = Math.max(1, (item.right - item.left) * surface.scale - 1);
      if (left > width || left + wide < AXIS.left) return;
      const lit = item.operations.some((operation) => chosen.has(operation));
      const warm = surface.over === number || item.operations.some((operation) => pointed.has(operation));
      const top = AXIS.top + item.top * row;
      const tall = Math.max(1, (item.bottom - item.top) * row - 1);
      this.drawItem(pen, item, [left, top, wide, tall], { lit, warm, dimmed: chosen.size > 0 && !lit }, shades);
    });
    pen.restore();
  }

  drawItem(pen, item, [left, top, wide, tall], { lit, warm, dimmed }, shades) {
    const [first] = item.operations;
    const colour =
      first === undefined ? shades.faint : tint(this.app.toned(first, this.program), dimmed && !warm ? 0.3 : 0.78);
    pen.fillStyle = colour;
    pen.fillRect(left, top, wide, tall);
    if ((lit || warm) && Math.min(wide, tall) > 5) {
      pen.strokeStyle = lit ? shades.accent : shades.ink;
      pen.lineWidth = lit ? 2.5 : 1;
      pen.strokeRect(left + 1, top + 1, Math.max(1, wide - 2), Math.max(1, tall - 2));
    }
    const start = Math.max(left, AXIS.left);
    const room = left + wide - start - 10;
    if (tall < 12 || room < 24) return;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillStyle = dimmed ? shades.muted : shades.ink;
    const letters = Math.floor(room / 6.2);
    pen.fillText(
      item.name.length > letters ? `${item.name.slice(0, letters - 1)}…` : item.name,
      start + 5,
      top + Math.min(tall / 2, 14),
    );
  }

  drawAxes(pen, { x, scale }, width, height, row, shades) {
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.lineWidth = 1;
    pen.strokeStyle = shades.line;
    const from = this.from + Math.max(0, (AXIS.left - x) / scale);
    const to = this.from + Math.min(this.width, (width - x) / scale);
    pen.textAlign = "center";
    for (const moment of ticks(from, to, (width - AXIS.left) / 110)) {
      const at = Math.round((moment - this.from) * scale + x) + 0.5;
      pen.beginPath();
      pen.moveTo(at, AXIS.top);
      pen.lineTo(at, height);
      pen.stroke();
      pen.fillStyle = shades.muted;
      if (at > AXIS.left + 20 && at < width - 20) pen.fillText(this.moment(moment), at, AXIS.top / 2);
    }
    pen.textAlign = "right";
    for (const [place, label] of this.labels((height - AXIS.top - AXIS.bottom) / 40)) {
      const at = Math.round(AXIS.top + place * row) + 0.5;
      pen.fillStyle = shades.muted;
      pen.fillText(label, AXIS.left - 8, at);
    }
  }
}

/** What lies where in the arena, and when: memory downwards, steps of the plan to the right. */
function memoryView(app, program) {
  const { arena, buffers } = program.memory;
  const from = buffers.reduce((least, [, , , first]) => Math.min(least, first), Infinity);
  const items = buffers.map(([name, offset, size, first, last, operations]) => ({
    ...{ name, operations, left: first - from, right: last - from + 1, top: offset, bottom: offset + size },
    tip: `${name}\n${bytes(size)} at ${bytes(offset)}\nsteps ${first} to ${last}`,
  }));
  return new RectanglesView(app, program, {
    ...{ items, from },
    span: greatest(items.map(({ right }) => right)),
    rows: arena,
    moment: (step) => (Number.isInteger(step) ? `step ${grouped(step)}` : ""),
    labels: (about) => ticks(0, arena, about, 2).map((place) => [place, bytes(place)]),
  });
}

/** When each thread did what: what runs within something else stands below it. */
function timelineView(app, program) {
  const lanes = nested(program.timeline);
  const items = program.timeline.map(([thread, start, end, name, operations], number) => ({
    ...{ name, operations, left: start, right: end, top: lanes.tops[number], bottom: lanes.tops[number] + 1 },
    tip: `${name}\n${duration((end - start) / 1e6)} from ${duration(start / 1e6)}\nthread ${thread}`,
  }));
  return new RectanglesView(app, program, {
    ...{ items, from: 0 },
    span: greatest(items.map(({ right }) => right)),
    rows: lanes.count,
    tallest: 28,
    moment: (micro) => duration(micro / 1e6),
    labels: () => [...lanes.threads].map(([thread, top]) => [top + 0.5, `thread ${thread}`]),
  });
}
