"""Reads the values that are written on the command line, such as ``2.5`` and ``[[1, 2], [inf, -3e4]]``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

Literal: TypeAlias = "bool | int | float | list[Literal]"
Shape: TypeAlias = tuple[int, ...]

#: numpy's limit of an array's rank.
_MAX_DEPTH = 64
#: Whole numbers with more digits are in no integer's range.
_INTEGER_DIGITS = 20
_INTEGERS = range(-(1 << 63), 1 << 64)
_SHOWN = 20
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_.])")
_WORD = re.compile(r"([+-]?)(nan|inf(?:inity)?|true|false)(?![A-Za-z0-9_.])", re.IGNORECASE)


class LiteralError(ValueError):
    """A text that is no value; the message says what is wrong, and where."""


def looks_like_literal(text: str) -> bool:
    """Return whether ``text`` was meant as a value rather than as the name of a file."""
    return text.lstrip()[:1] in set("[]+-.,0123456789")


def parse_literal(text: str) -> Literal:
    """Return the value that ``text`` writes: a number, true, false, nan, inf, or nested lists of these.

    Raises:
        LiteralError: It writes none, or lists side by side differ in shape.
    """
    reader = _Reader(text)
    value, _ = reader.value(0)
    reader.end()
    return value


@dataclass(slots=True)
class _Reader:
    text: str
    position: int = 0

    def value(self, depth: int) -> tuple[Literal, Shape]:
        if self._take("["):
            return self._list(depth + 1)
        if match := _NUMBER.match(self.text, self.position):
            self.position = match.end()
            return _number(match[0]), ()
        if match := _WORD.match(self.text, self.position):
            sign, word = match[1], match[2].lower()
            if not (sign and word in ("true", "false")):
                self.position = match.end()
                return (word == "true" if word in ("true", "false") else float(sign + word)), ()
        raise self._unexpected("a number, true, false, nan, inf or '['")

    def _list(self, depth: int) -> tuple[Literal, Shape]:
        if depth > _MAX_DEPTH:
            raise LiteralError(f"lists nest more than {_MAX_DEPTH} deep")
        elements: list[Literal] = []
        shape: Shape = ()
        while not self._take("]"):
            if elements and not self._take(","):
                raise self._unexpected("',' or ']'")
            self._skip()
            start = self.position
            element, found = self.value(depth)
            if elements and found != shape:
                raise LiteralError(
                    f"{_describe(found)} at character {start + 1} stands beside {_describe(shape)}"
                )
            elements.append(element)
            shape = found
        return elements, (len(elements), *shape)

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


def _number(text: str) -> int | float:
    if text.lstrip("+-").isdigit() and len(text) <= _INTEGER_DIGITS + 1 and int(text) in _INTEGERS:
        return int(text)
    value = float(text)
    if math.isinf(value):
        raise LiteralError(f"{text[:_SHOWN]} is beyond every float; infinity is written inf")
    return value


def _describe(shape: Shape) -> str:
    return f"a list of shape [{', '.join(map(str, shape))}]" if shape else "a single value"
