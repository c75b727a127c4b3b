/** The height of a line in pixels, and the tallest element that all browsers can scroll. */
const ROW = 18;
const TALLEST = 15000000;
/** Lines that are drawn above and below what is seen. */
const MORE = 12;

/** How tall the content of a list is. */
function contentHeight(count) {
  return Math.min(count * ROW, TALLEST);
}

/**
 * The lines to draw when a list of `count` is scrolled to `top`, and where: above the tallest element, a step of
 * the scroll bar is several lines.
 */
function shownRows(top, height, count) {
  const inner = contentHeight(count);
  const seen = Math.ceil(height / ROW);
  const exact = inner === count * ROW;
  const share = inner > height ? Math.min(1, Math.max(0, top / (inner - height))) : 0;
  const first = exact ? Math.floor(top / ROW) : Math.round(share * Math.max(0, count - Math.floor(height / ROW)));
  const from = Math.max(0, first - MORE);
  const to = Math.min(count, first + seen + MORE);
  return { first, from, to, shift: exact ? from * ROW : top - (first - from) * ROW };
}

/** Where to scroll so that `line` is the first. */
function topOf(line, height, count) {
  const inner = contentHeight(count);
  if (inner === count * ROW) return Math.max(0, Math.min(line * ROW, inner - height));
  return (inner - height) * Math.min(1, line / Math.max(1, count - Math.floor(height / ROW)));
}
