/** An element with attributes, listeners (`onclick`) and children; strings are text, never HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A sentence as parts of an element; what stands in backticks is code. */
function prose(text) {
  return text.split("`").map((part, number) => (number % 2 ? make("code", {}, part) : part));
}

/** A button; what has no words on it is called by its title. */
function button(label, title, onclick, attributes = {}) {
  const name = /[a-z]/.test(label) ? null : title;
  return make("button", { type: "button", title, onclick, "aria-label": name, ...attributes }, label);
}

/** What a click or a key calls at most once a frame. */
function onceAFrame(action) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      action();
    });
  };
}

/** The colour that stands for an operation everywhere; neighbours differ by the golden angle. */
function tint(operation, alpha = 1) {
  const style = colours();
  return `hsl(${Math.round((operation * 137.508 + 210) % 360)} ${style.saturation} ${style.lightness} / ${alpha})`;
}

let known = null;

/** The colours of the style sheet, for what is drawn on a canvas. */
function colours() {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  known = {};
  for (const name of [
    "ink",
    "muted",
    "faint",
    "line",
    "paper",
    "raised",
    "accent",
    "found",
    "changed",
    "saturation",
    "lightness",
  ]) {
    known[name] = style.getPropertyValue(`--${name}`).trim();
  }
  return known;
}

function forgetColours() {
  known = null;
}

/** A canvas that is as fine as the screen, and its pen, whose units are those of the page. */
function sharpen(canvas, width, height) {
  const fine = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * fine) || canvas.height !== Math.round(height * fine)) {
    canvas.width = Math.round(width * fine);
    canvas.height = Math.round(height * fine);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(fine, 0, 0, fine, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}
