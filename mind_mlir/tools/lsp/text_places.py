"""Places in a text as the protocol says them: a line, and units of an encoding within it."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from lsprotocol.types import Position, Range

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span

_LINE_END = re.compile(r"\r\n?|\n")


class TextPlaces:
    """Turns offsets of a text into positions, and back."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        """Take a text, and what characters of a line are counted in: ``utf-8``, ``utf-16`` or ``utf-32``."""
        self.text = text
        self._encoding = encoding
        ends = [(found.start(), found.end()) for found in _LINE_END.finditer(text)]
        #: The last offset whose position was asked for, and its units: lines may be long, and places many.
        self._last = 0, 0
        self._starts = [0, *(end for _, end in ends)]
        self._ends = [*(start for start, _ in ends), len(text)]

    def position(self, offset: int) -> Position:
        """Return the position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        start, units = (
            self._last if self._starts[line] <= self._last[0] <= offset else (self._starts[line], 0)
        )
        self._last = offset, units + self._units(self.text[start:offset])
        return Position(line, self._last[1])

    def range(self, span: Span) -> Range:
        """Return the range of a span."""
        return Range(self.position(span[0]), self.position(span[1]))

    def whole(self) -> Range:
        """Return the range of the text."""
        return self.range((0, len(self.text)))

    def line(self, number: int) -> Span:
        """Return where a line, counted from 1, begins and ends; the end of the text if there is none."""
        if not 1 <= number <= len(self._starts):
            return len(self.text), len(self.text)
        return self._starts[number - 1], self._ends[number - 1]

    def offset(self, position: Position) -> int:
        """Return the offset of a position; one outside of the text is the nearest in it."""
        if position.line >= len(self._starts):
            return len(self.text)
        start, end = self.line(position.line + 1)
        line = self.text[start:end]
        if line.isascii() or self._encoding == "utf-32":
            return min(start + position.character, end)
        units = 0
        for place, character in enumerate(line):
            if units >= position.character:
                return start + place
            units += self._units(character)
        return end

    def _units(self, text: str) -> int:
        if text.isascii() or self._encoding == "utf-32":
            return len(text)
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
