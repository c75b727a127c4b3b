"""The word at a place of a text, and what stands around it, for texts that need not be well-formed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span
    from mind_mlir.tools.lsp.documents import Document

_WORD = re.compile(r"[%@^]?[\w.]+|[%@^]")
_LETTERS = re.compile(r"\w+")
_CLOSING = {")": "(", "]": "[", "}": "{"}
#: Characters in front of a place in which an open bracket is looked for.
_FAR = 10_000
#: What is passed over when brackets are counted.
_PASSED = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|#[^\n]*|[()\[\]{},]')


def word_at(document: Document, offset: int) -> Span:
    """Return where the word is that an offset stands in or behind, which may be empty."""
    text, start = document.text, offset
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    found = _LETTERS.match(text, start)
    return (start, found.end()) if found else (offset, offset)


class OpenBracket(NamedTuple):
    """A bracket that is open at a place.

    Attributes:
        kind: The bracket.
        start: Where it stands.
        commas: How many commas stand between it and the place, outside of other brackets.
        last: Where the last of them stands, or the bracket.
    """

    kind: str
    start: int
    commas: int
    last: int


def open_brackets(text: str, offset: int) -> list[OpenBracket]:
    """Return the brackets that are open at an offset, the innermost last."""
    first = text.rfind("\n", 0, max(0, offset - _FAR)) + 1
    found: list[OpenBracket] = []
    for match in _PASSED.finditer(text, first, offset):
        mark = match[0]
        if mark in ("(", "[", "{"):
            found.append(OpenBracket(mark, match.start(), 0, match.start()))
        elif mark in _CLOSING:
            while found and found.pop().kind != _CLOSING[mark]:
                pass
        elif mark == "," and found:
            last = found[-1]
            found[-1] = last._replace(commas=last.commas + 1, last=match.start())
    return found
