/** The most lines that a search keeps for one text. */
const MOST_FOUND = 200000;
/** How much of a line is shown, and so searched when it is drawn. */
const LONGEST_LINE = 4000;

/** The expression for what somebody looks for: capital letters count where there is one; null for nothing. */
function wanted(query, regular) {
  if (!query) return null;
  const source = regular ? query : query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const capitals = regular ? /(?<!\\)[A-Z]/ : /\p{Lu}/u;
  return new RegExp(source, capitals.test(query) ? "gm" : "gim");
}

/** The numbers of the lines that hold it, ascending, and whether there are more. */
function linesWith(text, expression, most = MOST_FOUND) {
  const found = [];
  expression.lastIndex = 0;
  let line = 0;
  for (let match = expression.exec(text.joined); match; match = expression.exec(text.joined)) {
    if (match.index >= text.starts[line + 1]) line = text.lineAt(match.index);
    if (match[0] !== "") {
      if (found.length === most) return { lines: Uint32Array.from(found), more: true };
      found.push(line);
      expression.lastIndex = text.starts[line + 1];
    } else {
      expression.lastIndex = match.index + 1;
    }
    if (expression.lastIndex >= text.joined.length) break;
  }
  return { lines: Uint32Array.from(found), more: false };
}

/** Where a line holds it: first characters and the ones after the last. */
function within(line, expression) {
  const found = [];
  if (!expression) return found;
  expression.lastIndex = 0;
  for (let match = expression.exec(line); match; match = expression.exec(line)) {
    if (match[0] === "") expression.lastIndex += 1;
    else found.push([match.index, match.index + match[0].length]);
  }
  return found;
}

/** Those of many ascending lines of which each is the first in its stretch of so many lines. */
function apart(lines, stretch) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    found.push(lines[at]);
    const next = Math.ceil((Math.floor(lines[at] / stretch) + 1) * stretch);
    at = Math.max(at + 1, above(lines, next - 1));
  }
  return found;
}

/**
 * The next of what was found, text after text: `found` holds the lines of each text that is looked at.
 * From line `line` of text `at`; after the last comes the first. Null where nothing was found.
 */
function following(found, at, line, step) {
  const count = found.length;
  for (let turn = 0; turn <= count; turn += 1) {
    const text = (((at + step * turn) % count) + count) % count;
    const lines = found[text];
    if (!lines.length) continue;
    let number = step > 0 ? 0 : lines.length - 1;
    if (turn === 0) number = step > 0 ? above(lines, line) : above(lines, line - 1) - 1;
    if (number >= 0 && number < lines.length) return { text, line: lines[number], number };
  }
  return null;
}
