/** The graph of a program, with the places that were found when the page was written. */
class GraphView {
  constructor(app, program) {
    Object.assign(this, { app, program });
    const { boxes, labels, edges, width, height } = program.graph;
    Object.assign(this, { boxes, labels, width, height });
    this.tall = 38;
    this.start = boxes.length ? boxes[0][0] : 0;
    this.edges = this.routed(edges);
    this.keys = {
      ArrowUp: () => this.walk(this.program.operations[this.current()]?.inputs),
      ArrowDown: () => this.walk(this.program.readers[this.current()]),
      ArrowLeft: () => this.beside(-1),
      ArrowRight: () => this.beside(1),
    };
  }

  /** The points of each edge, and the rectangle that it lies in; ends are spread over the box that reads. */
  routed(edges) {
    const into = this.boxes.map(() => []);
    const found = edges.map(([source, target, ...bends]) => {
      const [x, y] = this.boxes[source];
      const edge = { source, target, points: [x, y + this.tall, ...bends] };
      into[target].push(edge);
      return edge;
    });
    into.forEach((arriving, box) => {
      const [x, y, width] = this.boxes[box];
      arriving.sort((one, other) => one.points.at(-2) - other.points.at(-2));
      const step = Math.min(16, (width - 16) / Math.max(1, arriving.length));
      arriving.forEach((edge, number) => {
        edge.points.push(x + (number - (arriving.length - 1) / 2) * step, y);
        const across = edge.points.filter((_, place) => place % 2 === 0);
        edge.left = Math.min(...across);
        edge.right = Math.max(...across);
        edge.top = edge.points[1];
        edge.bottom = y;
      });
    });
    return found;
  }

  at(x, y) {
    for (let box = 0; box < this.boxes.length; box += 1) {
      const [middle, top, width] = this.boxes[box];
      if (y >= top && y <= top + this.tall && Math.abs(x - middle) <= width / 2) return box;
    }
    return null;
  }

  operations(box) {
    return [box];
  }

  tip(box) {
    const { opcode, name, type } = this.program.operations[box];
    return [`${opcode} ${name}`, type, this.program.place(box)].filter(Boolean).join("\n");
  }

  current() {
    return this.app.selected.operations[this.program.number]?.[0] ?? 0;
  }

  walk(others) {
    const next = (others ?? []).filter((box) => this.boxes[box]);
    if (next.length) this.app.chooseOperations(this.program, [next[0]]);
  }

  beside(step) {
    const [middle, top] = this.boxes[this.current()] ?? [];
    const row = this.boxes.map(([x, y], box) => ({ x, y, box })).filter(({ y }) => y === top);
    row.sort((one, other) => one.x - other.x);
    const next = row[row.findIndex(({ x }) => x === middle) + step];
    if (next) this.app.chooseOperations(this.program, [next.box]);
  }

  reveal(surface) {
    const chosen = this.app.selected.operations[this.program.number] ?? [];
    if (!chosen.length || chosen.some((box) => this.seen(surface, box))) return;
    const [middle, top, width] = this.boxes[chosen[0]] ?? [0, 0, 0];
    surface.reveal(middle - width / 2, top, middle + width / 2, top + this.tall);
  }

  seen({ x, y, scale, size }, box) {
    const [middle, top, width] = this.boxes[box] ?? [0, 0, 0];
    const [left, right] = [(middle - width / 2) * scale + x, (middle + width / 2) * scale + x];
    return left >= 0 && right <= size[0] && top * scale + y >= 0 && (top + this.tall) * scale + y <= size[1];
  }

  draw(pen, { x, y, scale, over }, width, height) {
    const view = { left: -x / scale, top: -y / scale, right: (width - x) / scale, bottom: (height - y) / scale };
    const chosen = new Set(this.app.selected.operations[this.program.number] ?? []);
    const pointed = new Set(this.app.pointed.operations[this.program.number] ?? []);
    pen.save();
    pen.translate(x, y);
    pen.scale(scale, scale);
    this.drawEdges(pen, view, scale, chosen, over);
    for (let box = 0; box < this.boxes.length; box += 1) {
      const [middle, top, wide] = this.boxes[box];
      if (
        top > view.bottom ||
        top + 60 < view.top ||
        middle - wide / 2 > view.right ||
        middle + wide / 2 < view.left
      )
        continue;
      this.drawBox(pen, box, scale, chosen.has(box), pointed.has(box) || over === box, chosen.size > 0);
    }
    pen.restore();
  }

  drawEdges(pen, view, scale, chosen, over) {
    const shades = colours();
    const near = [];
    pen.strokeStyle = shades.faint;
    pen.lineWidth = Math.max(1.2, 0.6 / scale);
    pen.beginPath();
    for (const edge of this.edges) {
      if (edge.top > view.bottom || edge.bottom < view.top || edge.left > view.right || edge.right < view.left)
        continue;
      if (chosen.has(edge.source) || chosen.has(edge.target) || edge.source === over || edge.target === over)
        near.push(edge);
      else this.trace(pen, edge.points);
    }
    pen.stroke();
    pen.strokeStyle = pen.fillStyle = shades.accent;
    pen.lineWidth = Math.max(1.8, 1.2 / scale);
    pen.beginPath();
    for (const edge of near) this.trace(pen, edge.points);
    pen.stroke();
    for (const edge of near) this.head(pen, edge.points);
  }

  trace(pen, points) {
    pen.moveTo(points[0], points[1]);
    for (let at = 2; at < points.length; at += 2) {
      const [x, y, nextX, nextY] = [points[at - 2], points[at - 1], points[at], points[at + 1]];
      const half = (y + nextY) / 2;
      pen.bezierCurveTo(x, half, nextX, half, nextX, nextY);
    }
  }

  head(pen, points) {
    const [x, y] = points.slice(-2);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x - 4, y - 8);
    pen.lineTo(x + 4, y - 8);
    pen.fill();
  }

  drawBox(pen, box, scale, chosen, warm, dimmed) {
    const shades = colours();
    const [middle, top, wide] = this.boxes[box];
    const { opcode, name } = this.program.operations[box];
    const left = middle - wide / 2;
    pen.globalAlpha = dimmed && !chosen && !warm ? 0.72 : 1;
    pen.fillStyle = shades.raised;
    pen.strokeStyle = chosen || warm ? shades.accent : shades.line;
    pen.lineWidth = chosen ? 2.5 : 1.2;
    pen.beginPath();
    pen.roundRect(left, top, wide, this.tall, 6);
    pen.fill();
    pen.fillStyle = tint(this.app.toned(box, this.program), chosen ? 0.45 : scale < 0.3 ? 0.6 : 0.16);
    pen.fill();
    pen.stroke();
    pen.fillStyle = tint(this.app.toned(box, this.program));
    if (scale >= 0.3) pen.fillRect(left + 1, top + 7, 3, this.tall - 14);
    pen.globalAlpha = 1;
    if (scale < 0.3) return;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = shades.ink;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(opcode, middle, top + (name ? 13 : 19), wide - 12);
    pen.fillStyle = shades.muted;
    pen.font = "11px ui-monospace, monospace";
    if (name) pen.fillText(name, middle, top + 27, wide - 12);
    if (this.program.readers[box].length) this.drawType(pen, this.labels[box], middle, top + this.tall + 13);
  }

  drawType(pen, label, x, y) {
    const shades = colours();
    pen.font = "10px ui-monospace, monospace";
    const wide = pen.measureText(label).width + 8;
    pen.fillStyle = shades.paper;
    pen.fillRect(x - wide / 2, y - 7, wide, 14);
    pen.fillStyle = shades.muted;
    pen.fillText(label, x, y);
  }
}
