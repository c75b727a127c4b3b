"""Pieces of HTML: no script, all text escaped, colours that follow those of the page, dark or light."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from mind_mlir.diagnostics.display import visible

#: Colours are mixed with that of the page's text, so that they can be read on dark pages and on light ones.
_STYLE = """\
.mind-mlir{--mm-line:color-mix(in srgb,currentColor 20%,transparent);\
--mm-dim:color-mix(in srgb,currentColor 65%,transparent);\
--mm-blue:color-mix(in srgb,currentColor 35%,#2f81f7);--mm-green:color-mix(in srgb,currentColor 35%,#2da44e);\
--mm-violet:color-mix(in srgb,currentColor 35%,#a371f7);\
--mm-orange:color-mix(in srgb,currentColor 35%,#e07b23);\
--mm-red:color-mix(in srgb,currentColor 20%,#f0443e);line-height:1.45;max-width:100%}
.mind-mlir pre{margin:.3em 0;padding:.5em .7em;overflow:auto;max-height:28em;border:1px solid var(--mm-line);\
border-radius:4px;background:none;color:inherit;font-size:.92em}
.mind-mlir table{border-collapse:collapse;margin:.3em 0;display:block;overflow:auto;border:none}
.mind-mlir :is(th,td){text-align:left;padding:.15em .8em .15em 0;border:none;background:none;color:inherit;\
vertical-align:top;border-bottom:1px solid var(--mm-line)}
.mind-mlir th{color:var(--mm-dim);font-weight:normal}.mind-mlir .n{text-align:right;white-space:nowrap}
.mind-mlir summary{cursor:pointer;color:var(--mm-dim)}.mind-mlir .d{color:var(--mm-dim)}
.mind-mlir .v{color:var(--mm-blue)}.mind-mlir .t{color:var(--mm-green)}.mind-mlir .k{color:var(--mm-violet)}
.mind-mlir .c{color:var(--mm-dim);font-style:italic}.mind-mlir .s{color:var(--mm-orange)}
.mind-mlir .e{color:var(--mm-red);font-weight:bold}.mind-mlir .w{color:var(--mm-orange);font-weight:bold}
.mind-mlir .l{color:var(--mm-blue);font-weight:bold}.mind-mlir .b{font-weight:bold}
.mind-mlir svg{max-width:100%;height:auto;font:12px system-ui,sans-serif;fill:currentColor}
.mind-mlir svg .o{fill:none;stroke:var(--mm-dim)}.mind-mlir svg .i{stroke:var(--mm-blue)}
.mind-mlir svg .r{stroke-width:2.5}.mind-mlir svg .p{fill:none;stroke:var(--mm-line);stroke-width:1.5}
.mind-mlir svg .d{fill:var(--mm-dim);font-size:10.5px}
.mind-mlir .g{display:inline-block;height:.7em;background:var(--mm-blue);min-width:1px}
"""


def fragment(*parts: str) -> str:
    """Return what a notebook is given: parts that are HTML, with the styles that they take."""
    return f'<div class="mind-mlir"><style>{_STYLE}</style>{"".join(parts)}</div>'


def escaped(text: object) -> str:
    """Return a line of text as HTML; what could act on a page or a terminal is written as an escape."""
    return html.escape(visible(str(text)))


def marked(text: object, kind: str) -> str:
    """Return a line of text in the colour of its kind, a class of the styles."""
    return f'<span class="{kind}">{escaped(text)}</span>'


def heading(name: str, facts: Iterable[object]) -> str:
    """Return the first line: what it is, and facts about it."""
    return f'<div><b>{escaped(name)}</b> <span class="d">{" · ".join(map(escaped, facts))}</span></div>'


def folded(title: str, body: str, *, is_open: bool = False) -> str:
    """Return a part that is opened by a click on its title; nothing where there is none."""
    shown = " open" if is_open else ""
    return f"<details{shown}><summary>{escaped(title)}</summary>{body}</details>" if body else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Return rows, whose cells are HTML, below a head of plain text; columns of numbers end at the right.

    The last cell of a row that has fewer takes the room of the others.
    """
    right = set(numbers)

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="n"' if place in right else "" for place in range(len(cells))]
        if len(cells) < len(head):
            kinds[-1] = f' colspan="{len(head) - len(cells) + 1}"'
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))

    lines = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{row([*map(escaped, head)], 'th')}</tr></thead><tbody>{lines}</tbody></table>"
