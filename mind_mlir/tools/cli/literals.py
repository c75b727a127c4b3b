"""Reads the values that are written on the command line, such as ``2.5`` and ``[[1, 2], [inf, -3e4]]``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]

#: numpy's limit of an array's rank.
_MAX_DEPTH = 64
_SHOWN = 20
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.])")
_WORD = re.compile(r"([+-]?)(nan|inf(?:inity)?|true|false)(?![A-Za-z0-9_.])", re.IGNORECASE)


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
    reader = _Reader(text)
    shape = reader.value(0)
    reader.end()
    return reader.elements, shape


@dataclass(slots=True)
class _Reader:
    text: str
    position: int = 0
    elements: list[str] = field(default_factory=list)

    def value(self, depth: int) -> Shape:
        """Read one value, add its elements to those before, and return its shape."""
        if self._take("["):
            return self._list(depth + 1)
        if match := _NUMBER.match(self.text, self.position):
            self.position = match.end()
            self.elements.append(match[0])
            return ()
        if match := _WORD.match(self.text, self.position):
            sign, word = match[1], match[2].lower()
            if not (sign and word in ("true", "false")):
                self.position = match.end()
                self.elements.append(f"{sign}{word.removesuffix('inity')}")
                return ()
        raise self._unexpected("a number, true, false, nan, inf or '['")

    def _list(self, depth: int) -> Shape:
        if depth > _MAX_DEPTH:
            raise LiteralError(f"lists nest more than {_MAX_DEPTH} deep")
        length = 0
        shape: Shape = ()
        while not self._take("]"):
            if length and not self._take(","):
                raise self._unexpected("',' or ']'")
            self._skip()
            start = self.position
            found = self.value(depth)
            if length and found != shape:
                raise LiteralError(
                    f"{_describe(found)} at character {start + 1} stands beside {_describe(shape)}"
                )
            length += 1
            shape = found
        return (length, *shape)

    def end(self) -> None:
        self._skip()
        if self.position < len(self.text):
            raise self._unexpected("the end")

    def _take(self, mark: str) -> bool:
        self._skip()
        found = self.text.startswith(mark, self.position)
        self.position += found
        return found

    def _skip(self) -> None:
        space = _SPACE.match(self.text, self.position)
        assert space is not None, "it matches the empty text"
        self.position = space.end()

    def _unexpected(self, wanted: str) -> LiteralError:
        rest = self.text[self.position :]
        if not rest:
            return LiteralError(f"it ends where {wanted} should stand")
        found = rest if len(rest) <= _SHOWN else f"{rest[:_SHOWN]}..."
        return LiteralError(f"{wanted} should stand at character {self.position + 1}, not '{found}'")


def _describe(shape: Shape) -> str:
    return f"a list of shape [{', '.join(map(str, shape))}]" if shape else "a single value"
