/** What is highlighted in each language: classes and what they look like, the first that fits counts. */
const NUMBER = String.raw`\b0x[0-9a-fA-F]+\b|(?<![\w.%])-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w.])`;
const STRING = String.raw`"(?:[^"\\]|\\.)*"?`;
const SHAPED = String.raw`\b(?:tensor|memref|vector)<[^<>]*(?:<[^<>]*>[^<>]*)*>`;
const SCALAR = String.raw`\b(?:bf16|f16|f32|f64|f8\w*|[iu]\d+|si\d+|ui\d+|index|bool|complex<\w+>|!llvm\.[\w.<>, ]*\w>?)(?![\w.])`;
const words = (text) => String.raw`\b(?:${text.split(" ").join("|")})\b`;

const CORE_TOKENS = [
  ["comment", String.raw`(?:\/\/|#).*`],
  ["string", STRING],
  ["value", String.raw`%[\w.$-]+`],
  ["symbol", String.raw`[@^][\w.$-]+`],
  ["type", `${SHAPED}|${SCALAR}`],
  [
    "keyword",
    words("func export return yield from to if else while for branch cond_branch call input output module"),
  ],
  ["operation", String.raw`\b[A-Z]\w*(?=\s*[({:])`],
  ["attribute", String.raw`\b[a-z_]\w*(?=\s*=)`],
  ["number", NUMBER],
];
const LANGUAGES = {
  core: CORE_TOKENS,
  ptir: CORE_TOKENS,
  mlir: [
    ["comment", String.raw`\/\/.*`],
    ["string", STRING],
    ["value", String.raw`%[\w.$-]+(?:#\d+)?`],
    ["symbol", String.raw`[@^#][\w.$-]+`],
    ["type", `${SHAPED}|${SCALAR}`],
    ["operation", String.raw`(?<![\w!."])(?:[a-z_]\w*\.)+[a-z_]\w*`],
    ["attribute", String.raw`\b[A-Za-z_]\w*(?=\s*=)`],
    [
      "keyword",
      words(
        "module attributes dense array true false unit loc iter_args step to ins outs private constant affine_map else do",
      ),
    ],
    ["number", NUMBER],
  ],
  mind: [
    ["comment", String.raw`\/\/.*`],
    ["string", STRING],
    [
      "keyword",
      words(
        "let fn export import struct type if else while for in return mut const true false use as match break continue",
      ),
    ],
    ["type", String.raw`\b(?:[A-Z]\w*|bf16|f\d+|[iu]\d+|bool)\b`],
    ["operation", String.raw`\b[a-z_]\w*(?=\s*\()`],
    ["symbol", String.raw`\b[a-z_]\w*::(?:[a-z_]\w*)?`],
    ["number", NUMBER],
  ],
  python: [
    ["comment", String.raw`#.*`],
    ["string", String.raw`[rbfu]{0,2}(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)`],
    ["symbol", String.raw`@[\w.]+`],
    [
      "keyword",
      words(
        "def class return if elif else for while in is not and or lambda import from as with try except finally " +
          "raise yield pass break continue None True False async await global nonlocal assert match case",
      ),
    ],
    ["operation", String.raw`\b[A-Za-z_]\w*(?=\s*\()`],
    ["number", NUMBER],
  ],
  asm: [
    ["comment", String.raw`(?:;|\/\/|#).*`],
    ["symbol", String.raw`^[\w.$@<>+-]+:|<[\w.$@+-]+>|\.?L\w*\d+\b`],
    ["operation", String.raw`(?<=^\s*)[a-z][\w.]*(?=\s|$)`],
    ["type", String.raw`\b(?:[xyz]mmword|[bdqw]?word|byte|ptr)\b`],
    [
      "value",
      String.raw`\b(?:[re]?[abcd]x|[re]?[sd]i|[re]?[sb]p|[abcd][lh]|r\d+[dwb]?|[xyz]mm\d+|k[0-7]|[re]ip|[vqdswx]\d+(?:\.\w+)?|sp)\b`,
    ],
    ["number", NUMBER],
  ],
  text: [
    ["value", String.raw`%[\w.$-]+`],
    ["string", STRING],
    ["number", NUMBER],
  ],
};

const SCANNERS = {};

function scanner(language) {
  const name = Object.hasOwn(LANGUAGES, language) ? language : "text";
  SCANNERS[name] ??= {
    classes: LANGUAGES[name].map(([kind]) => kind),
    expression: new RegExp(LANGUAGES[name].map(([, source]) => `(${source})`).join("|"), "g"),
  };
  return SCANNERS[name];
}

/** The parts of a line that are highlighted: class, first character and the one after the last, ascending. */
function tokens(language, line) {
  const { classes, expression } = scanner(language);
  const found = [];
  expression.lastIndex = 0;
  for (let match = expression.exec(line); match; match = expression.exec(line)) {
    if (match[0] === "") {
      expression.lastIndex += 1;
      continue;
    }
    const kind = classes[match.findIndex((group, number) => number > 0 && group !== undefined) - 1];
    found.push([kind, match.index, match.index + match[0].length]);
  }
  return found;
}

/**
 * A line as HTML, highlighted; `stretches` are what is wrapped in it, an element's name each with its ascending
 * first characters and the ones after the last.
 */
function marked(language, line, stretches = {}) {
  const parts = tokens(language, line);
  const wrapped = Object.entries(stretches).map(([tag, ranges]) => ({ tag, ranges, at: 0 }));
  const cuts = new Set([0, line.length]);
  for (const [, first, end] of parts) cuts.add(first).add(end);
  for (const { ranges } of wrapped)
    for (const [first, end] of ranges) cuts.add(first).add(Math.min(end, line.length));
  const places = [...cuts].sort((one, other) => one - other);
  let html = "";
  let part = 0;
  for (let at = 0; at + 1 < places.length; at += 1) {
    const [first, end] = [places[at], places[at + 1]];
    let piece = escaped(line.slice(first, end));
    for (const each of wrapped) {
      while (each.at < each.ranges.length && each.ranges[each.at][1] <= first) each.at += 1;
      if (each.at < each.ranges.length && each.ranges[each.at][0] <= first)
        piece = `<${each.tag}>${piece}</${each.tag}>`;
    }
    while (part < parts.length && parts[part][2] <= first) part += 1;
    const within = part < parts.length && parts[part][1] <= first;
    html += within ? `<span class="t-${parts[part][0]}">${piece}</span>` : piece;
  }
  return html;
}
