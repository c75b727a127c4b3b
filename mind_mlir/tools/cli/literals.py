"""Reads the values that are written on the command line, such as ``2.5`` and ``[[1, 2], [inf, -3e4]]``."""

from __future__ import annotations

import re
from typing import TypeAlias

from mind_mlir.languages.text.cursor import Cursor, Token

Shape: TypeAlias = tuple[int, ...]

#: numpy's limit of an array's rank.
_MAX_DEPTH = 64
_SHOWN = 20
_END = r"(?![A-Za-z0-9_.])"
_TOKEN = re.compile(
    r"\s*+(?:"
    rf"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?{_END})"
    rf"|(?P<word>(?:[+-]?(?:nan|inf(?:inity)?)|true|false){_END})"
    r"|(?P<mark>[\[\],]))?",
    re.IGNORECASE,
)


class LiteralError(ValueError):
    """A text that is no value; the message says what is wrong, and where."""


def looks_like_literal(text: str) -> bool:
    """Return whether ``text`` was meant as a value rather than as the name of a file."""
    return text.lstrip()[:1] in set("[]+-.,0123456789")


def parse_literal(text: str) -> tuple[list[str], Shape]:
    """Take the value that ``text`` writes apart: a number, true, false, nan, inf, or nested lists of these.

    Returns:
        The elements in row-major order, as the Core text spells them, and the shape.

    Raises:
        LiteralError: It writes none, or lists side by side differ in shape.
    """
    reader = _LiteralReader(text)
    shape = reader.value(0)
    reader.end()
    return reader.elements, shape


class _LiteralReader(Cursor):
    """Reads one value; its elements stand in `elements`, row by row."""

    def __init__(self, text: str) -> None:
        self.elements: list[str] = []
        self._text = text
        self._go_to(0)

    def advance(self) -> Token:
        """Go behind the next token, and return it."""
        token = self.token
        self._go_to(token.end)
        return token

    def _go_to(self, position: int) -> None:
        found = _TOKEN.match(self._text, position)
        assert found is not None, "it matches nothing, too"
        self.word = found[found.lastgroup] if found.lastgroup else ""
        self.token = Token(found.lastgroup or "", self.word, found.end() - len(self.word), found.end())

    def expected(self, what: str, help_: str | None = None) -> LiteralError:
        """Return what is wrong where ``what`` should stand."""
        wanted = "',' or ']'" if what == "','" else what
        rest = self._text[self.token.start :]
        if not rest:
            return LiteralError(f"it ends where {wanted} should stand")
        found = rest if len(rest) <= _SHOWN else f"{rest[:_SHOWN]}..."
        return LiteralError(
            f"{wanted} should stand at character {self.token.start + 1}, not '{found}'{help_ or ''}"
        )

    def value(self, depth: int) -> Shape:
        """Read one value, add its elements to those before, and return its shape."""
        if self.accept("["):
            return self._list(depth + 1)
        if self.token.kind not in ("number", "word"):
            self.fail("a number, true, false, nan, inf or '['")
        word = self.advance().text
        self.elements.append(word if word[-1:] in "0123456789." else word.lower().removesuffix("inity"))
        return ()

    def _list(self, depth: int) -> Shape:
        if depth > _MAX_DEPTH:
            raise LiteralError(f"lists nest more than {_MAX_DEPTH} deep")
        length = 0
        shape: Shape = ()
        for _ in self.separated("]", trailing=False):
            start = self.token.start
            found = self.value(depth)
            if length and found != shape:
                raise LiteralError(
                    f"{_describe(found)} at character {start + 1} stands beside {_describe(shape)}"
                )
            length += 1
            shape = found
        return (length, *shape)

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self.token.start < len(self._text):
            self.fail("the end")


def _describe(shape: Shape) -> str:
    return f"a list of shape [{', '.join(map(str, shape))}]" if shape else "a single value"
