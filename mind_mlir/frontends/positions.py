"""Turns offsets into the text of a source into locations."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Location

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText


@dataclass(slots=True)
class Positions:
    """The line starts of one source, so that a span costs one binary search."""

    source: SourceText
    _line_starts: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts, position = [0], 0
        for line in self.source.text.split("\n")[:-1]:
            position += len(line) + 1
            starts.append(position)
        self._line_starts = starts

    def locate(self, start: int, end: int) -> Location:
        """Return the span ``[start, end)`` of the text, cut at the end of its first line."""
        starts = self._line_starts
        line = bisect_right(starts, start)
        if line < len(starts):
            end = min(end, starts[line] - 1)
        return Location(self.source, line, start - starts[line - 1] + 1, max(1, end - start))
