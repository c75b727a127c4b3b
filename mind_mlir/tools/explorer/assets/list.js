/**
 * A list of any length of which only what is seen is in the document.
 *
 * `row(number)` gives the inner HTML of a line, and `classes(number)` its classes, which change more often.
 */
class List {
  constructor({ label, count, widest, digits = String(count).length, row, classes, chosen, pointed }) {
    List.made = (List.made ?? 0) + 1;
    Object.assign(this, { count, row, classes, chosen, id: `list${List.made}` });
    this.current = -1;
    this.rows = make("div", { class: "rows" });
    this.content = make("div", { class: "content" }, this.rows);
    this.element = make(
      "div",
      { class: "list", role: "listbox", tabindex: "0", "aria-label": label },
      this.content,
    );
    this.content.style.height = `${contentHeight(count)}px`;
    this.content.style.setProperty("--widest", Math.min(widest, LONGEST_LINE));
    this.content.style.setProperty("--digits", digits);
    this.drawSoon = onceAFrame(() => this.draw());
    this.element.addEventListener("scroll", this.drawSoon, { passive: true });
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    if (pointed) {
      this.element.addEventListener("pointerover", (event) => pointed(this.lineOf(event.target)));
      this.element.addEventListener("pointerleave", () => pointed(-1));
    }
    this.watch = new ResizeObserver(this.drawSoon);
    this.watch.observe(this.element);
  }

  lineOf(target) {
    const row = target.closest?.(".row");
    return row ? Number(row.dataset.line) : -1;
  }

  clicked(event) {
    const line = this.lineOf(event.target);
    if (line < 0 || !document.getSelection().isCollapsed) return;
    this.go(line);
    this.chosen(line, event);
  }

  key(event) {
    const page = Math.max(1, this.seen() - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[
      event.key
    ];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const from = this.current < 0 ? this.firstSeen() - Math.sign(step) : this.current;
    this.go(Math.max(0, Math.min(this.count - 1, from + step)));
    this.chosen(this.current, event);
  }

  /** How many whole lines there is room for. */
  seen() {
    return Math.floor(this.element.clientHeight / ROW);
  }

  firstSeen() {
    return shownRows(this.element.scrollTop, this.element.clientHeight, this.count).first;
  }

  /** Make a line the current one, and show it, `offset` lines below the top where it is not seen. */
  go(line, offset = null) {
    this.current = line;
    this.show(line, line + 1, offset);
    this.paint();
  }

  /** Scroll so that the lines from `first` to before `end` are seen, as many as there is room for. */
  show(first, end, offset = null) {
    const height = this.element.clientHeight;
    const top = this.firstSeen();
    const seen = Math.max(1, this.seen() - 1);
    if (first >= top && Math.min(end, first + seen) <= top + seen + 1) return;
    const above = offset ?? (first < top ? 2 : Math.min(seen - 2, Math.max(0, seen - 1 - (end - first))));
    this.element.scrollTop = topOf(
      Math.max(0, first - Math.max(0, Math.min(above, seen - 1))),
      height,
      this.count,
    );
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.element;
    const { from, to, shift } = shownRows(scrollTop, clientHeight, this.count);
    let html = "";
    for (let line = from; line < to; line += 1) {
      html += `<div class="row" role="option" id="${this.id}-${line}" data-line="${line}" aria-posinset="${line + 1}" aria-setsize="${this.count}">${this.row(line)}</div>`;
    }
    this.rows.innerHTML = html;
    this.rows.style.transform = `translateY(${shift}px)`;
    this.paint();
    this.drawn?.();
  }

  /** Set the classes of the lines that are drawn. */
  paint() {
    let current = false;
    for (const row of this.rows.children) {
      const line = Number(row.dataset.line);
      row.className = `row ${this.classes(line)}${line === this.current ? " current" : ""}`;
      row.setAttribute("aria-selected", String(row.classList.contains("lit")));
      current ||= line === this.current;
    }
    if (current) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  close() {
    this.watch.disconnect();
  }
}
