/**
 * A picture on a canvas that can be moved and enlarged, in which things can be pointed at and chosen.
 *
 * The view has `width` and `height`, `draw(pen, surface)` in its own units, `at(x, y)` for the thing there, and
 * for a thing `tip(thing)` and `operations(thing)`; `flat` views are enlarged to the sides only.
 */
class Surface {
  constructor(app, view, label) {
    Object.assign(this, { app, view, x: 0, y: 0, scale: 1, size: [0, 0] });
    this.canvas = make("canvas", { tabindex: "0", role: view.keys ? "application" : "img", "aria-label": label });
    this.tip = make("div", { class: "tip", hidden: true });
    this.element = make(
      "div",
      { class: "surface" },
      this.canvas,
      this.tip,
      make(
        "div",
        { class: "zoom", role: "group", "aria-label": "Size of the picture" },
        button("+", "Enlarge (+)", () => this.zoom(1.4), { class: "icon" }),
        button("−", "Reduce (-)", () => this.zoom(1 / 1.4), { class: "icon" }),
        button("⤢", "Show all (0)", () => this.fit(), { class: "icon" }),
      ),
    );
    this.drawSoon = onceAFrame(() => this.draw());
    this.watch = new ResizeObserver(() => this.resized());
    this.watch.observe(this.canvas);
    this.listen();
  }

  listen() {
    const { canvas } = this;
    let from = null;
    let moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY];
      moved = false;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from) {
        const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
        moved ||= Math.hypot(dx, dy) > 4;
        if (!moved) return;
        from = [event.clientX, event.clientY];
        this.pan(dx, dy);
        return;
      }
      this.pointAt(event);
    });
    const up = (event, chosen) => {
      if (from && !moved && chosen) this.choose(event);
      from = null;
    };
    canvas.addEventListener("pointerup", (event) => up(event, true));
    canvas.addEventListener("pointercancel", (event) => up(event, false));
    canvas.addEventListener("pointerleave", () => this.pointAt(null));
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const unit = event.deltaMode === 1 ? 18 : 1;
        if (event.shiftKey) this.pan(-(event.deltaX || event.deltaY) * unit, 0);
        else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(-event.deltaX * unit, 0);
        else
          this.zoom(Math.exp((-event.deltaY * unit) / (event.ctrlKey ? 120 : 480)), event.offsetX, event.offsetY);
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      "+": () => this.zoom(1.4),
      "=": () => this.zoom(1.4),
      "-": () => this.zoom(1 / 1.4),
      0: () => this.fit(),
    };
    const action = keys[event.key] ?? this.view.keys?.[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  }

  resized() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.size = [width, height];
    if (!width || !height) return;
    if (!this.placed) {
      this.placed = true;
      this.fit(true);
      this.selected();
    } else if (this.view.flat && !this.moved) this.fit();
    this.drawSoon();
  }

  /** Show all of the picture; at first, no smaller than can be read. */
  fit(readable = false) {
    this.moved = false;
    const [width, height] = this.size;
    const { view } = this;
    const [left, right, top] = [view.left ?? 24, view.right ?? 24, 24];
    const room = width - left - right;
    const wide = room / Math.max(1, view.width);
    this.scale = view.flat ? wide : Math.min(wide, (height - 2 * top) / Math.max(1, view.height), 1.2);
    if (readable && !view.flat) this.scale = Math.max(this.scale, 0.8);
    this.x = left + Math.max(0, (room - view.width * this.scale) / 2);
    if (view.width * this.scale > room + 1) this.x = width / 2 - view.start * this.scale;
    this.y = view.flat ? 0 : top;
    this.drawSoon();
  }

  pan(dx, dy) {
    this.x += dx;
    if (!this.view.flat) this.y += dy;
    this.keep();
  }

  zoom(factor, x = this.size[0] / 2, y = this.size[1] / 2) {
    const scale = Math.min(this.view.flat ? 1e6 : 4, Math.max(this.smallest(), this.scale * factor));
    const by = scale / this.scale;
    this.scale = scale;
    this.x = x + (this.x - x) * by;
    if (!this.view.flat) this.y = y + (this.y - y) * by;
    this.keep();
  }

  smallest() {
    const [width, height] = this.size;
    const all = Math.min(
      width / Math.max(1, this.view.width),
      this.view.flat ? Infinity : height / Math.max(1, this.view.height),
    );
    return Math.min(1, all * (this.view.flat ? 0.9 : 0.7));
  }

  /** Keep part of the picture in sight. */
  keep() {
    this.moved = true;
    const [width, height] = this.size;
    const room = 80;
    this.x = Math.min(width - room, Math.max(room - this.view.width * this.scale, this.x));
    if (!this.view.flat) this.y = Math.min(height - room, Math.max(room - this.view.height * this.scale, this.y));
    this.drawSoon();
  }

  /** Bring a rectangle of the picture into sight, where it is not. */
  reveal(left, top, right, bottom) {
    const [width, height] = this.size;
    const [x, y] = [left * this.scale + this.x, top * this.scale + this.y];
    const [xEnd, yEnd] = [right * this.scale + this.x, bottom * this.scale + this.y];
    if (x < 8 || xEnd > width - 8) this.x += width / 2 - (x + Math.min(xEnd, x + width)) / 2;
    if (!this.view.flat && (y < 8 || yEnd > height - 8))
      this.y += height / 2 - (y + Math.min(yEnd, y + height)) / 2;
    this.drawSoon();
  }

  under(event) {
    return this.view.at(
      (event.offsetX - this.x) / this.scale,
      this.view.flat ? event.offsetY : (event.offsetY - this.y) / this.scale,
      this,
    );
  }

  pointAt(event) {
    const thing = event ? this.under(event) : null;
    this.canvas.style.cursor = thing === null ? "grab" : "pointer";
    if (thing !== this.over) {
      this.over = thing;
      this.app.pointOperations(this.view.program, thing === null ? [] : this.view.operations(thing));
      this.drawSoon();
    }
    this.tip.hidden = thing === null;
    if (thing === null) return;
    this.tip.textContent = this.view.tip(thing);
    const [width, height] = this.size;
    this.tip.style.left = `${Math.max(4, Math.min(event.offsetX + 14, width - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${event.offsetY + 16 + this.tip.offsetHeight > height ? event.offsetY - this.tip.offsetHeight - 8 : event.offsetY + 16}px`;
  }

  choose(event) {
    const thing = this.under(event);
    if (thing === null) this.app.clear();
    else this.app.chooseOperations(this.view.program, this.view.operations(thing), event.ctrlKey || event.metaKey);
  }

  /** Show what is selected now. */
  selected() {
    if (this.placed) this.view.reveal?.(this);
    this.drawSoon();
  }

  draw() {
    const [width, height] = this.size;
    if (!width || !height) return;
    const pen = sharpen(this.canvas, width, height);
    this.view.draw(pen, this, width, height);
  }

  close() {
    this.watch.disconnect();
  }
}
