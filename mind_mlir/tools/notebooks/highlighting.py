"""Texts of Core IR with colours for what their words are."""

from __future__ import annotations

import re

from mind_mlir.tools.notebooks.fragments import escaped, marked

#: The kinds of words, each a class of the styles.
_WORDS = re.compile(
    r"""(?P<c>\#.*|//.*)|(?P<s>"(?:[^"\\]|\\.)*")|(?P<v>[%@^][^\s,():{}=]+)|(?P<t>\btensor<[^>]*>)"""
    r"""|(?P<k>^\s*[a-z_]+\b|\b[A-Z]\w*(?=\s*[({]))"""
)
#: Of longer texts, the beginning is shown.
MOST_LINES = 120
_MOST_COLUMNS = 400


def highlighted(text: str, rest: str) -> str:
    """Return a text as a preformatted block.

    Args:
        text: The text, of Core IR or like it.
        rest: Where the rest of a long text is to be had, for people.
    """
    lines = text.rstrip().split("\n")
    shown = [_line(line) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(marked(f"... {len(lines) - MOST_LINES:,} more lines: {rest}", "c"))
    return "<pre>" + "\n".join(shown) + "</pre>"


def _line(line: str) -> str:
    if len(line) > _MOST_COLUMNS:
        line = line[:_MOST_COLUMNS] + "..."
    parts, at = [], 0
    for match in _WORDS.finditer(line):
        parts += [escaped(line[at : match.start()]), marked(match[0], str(match.lastgroup))]
        at = match.end()
    return "".join([*parts, escaped(line[at:])])
