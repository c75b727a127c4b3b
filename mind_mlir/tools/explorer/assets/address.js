/**
 * What is shown, as the part of the address after `#`: `panes=0.source*2+0.asm*3&view=graph&line=0.asm.120`.
 * What cannot be read is left out, so that old addresses open.
 */
function toAddress(state) {
  const parts = [
    `panes=${state.panes.map(({ key, share }) => `${encodeURIComponent(key)}*${rounded(share)}`).join("+")}`,
  ];
  parts.push(`view=${state.view}*${Math.round(state.dock)}${state.side ? "r" : "b"}`);
  if (state.line) parts.push(`line=${encodeURIComponent(state.line)}`);
  if (state.operations?.length) parts.push(`ops=${state.operations.join(".")}`);
  if (state.query) parts.push(`find=${encodeURIComponent(state.query)}`);
  if (state.regular) parts.push("regular");
  return parts.join("&");
}

function fromAddress(text) {
  const fields = {};
  for (const part of text.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    fields[at < 0 ? part : part.slice(0, at)] = at < 0 ? "" : part.slice(at + 1);
  }
  const read = (name) => {
    try {
      return decodeURIComponent(fields[name] ?? "");
    } catch {
      return "";
    }
  };
  const panes = [];
  for (const part of (fields.panes ?? "").split("+")) {
    const [, key, share] = /^(.+?)(?:\*([\d.]+))?$/.exec(part) ?? [];
    try {
      if (key)
        panes.push({ key: decodeURIComponent(key), share: Math.min(100, Math.max(0.05, Number(share) || 1)) });
    } catch {
      continue;
    }
  }
  const view = /^(\w*)\*(\d+)([rb])$/.exec(fields.view ?? "");
  return {
    panes,
    view: view ? view[1] : null,
    dock: view ? Number(view[2]) : null,
    side: view ? view[3] === "r" : null,
    line: read("line") || null,
    operations: (fields.ops ?? "")
      .split(".")
      .filter((part) => /^\d+$/.test(part))
      .map(Number),
    query: read("find"),
    regular: "regular" in fields,
  };
}
