"""Programs whose operations are numbered, so that places tell what becomes of each.

A text is made up that has a line for each set of operations, and operations have their places in it. Passes
keep places, and MLIR and debug information carry them on: so a line that comes back says which operations
something was made for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics.source import Location, SourceText, pack_offsets
from mind_mlir.ir.source_info import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What the text is called; no file is.
NUMBERED = "<operations>"


class _Lines:
    """The offsets of the lines of a numbered text, each of one character (see `LineIndex`).

    Attributes:
        count: How many lines there are to be quoted.
    """

    count = 0

    def span(self, line: int) -> tuple[int, int]:
        """Return the offsets of a line."""
        return line - 1, line


class NumberedText(SourceText):
    """The text of a program whose operations are numbered.

    Attributes:
        sets: The numbers that each line stands for.
    """

    sets: list[frozenset[int]]

    def __init__(self) -> None:
        super().__init__(NUMBERED, "")
        object.__setattr__(self, "sets", [])
        object.__setattr__(self, "_known", {})

    def __reduce__(self) -> tuple[type[SourceText], tuple[str, str]]:
        return SourceText, (self.name, self.text)

    index = _Lines()  # type: ignore[assignment]  # in place of a cached property: there is no text to look at

    def locate(self, start: int, end: int) -> Location:
        """Return the line that begins at ``start``."""
        return Location(self, start + 1, 1)

    def line(self, numbers: frozenset[int]) -> int:
        """Return the line that stands for ``numbers``."""
        known: dict[frozenset[int], int] = self._known  # type: ignore[attr-defined]  # set past the frozen class
        if numbers not in known:
            self.sets.append(numbers)
            known[numbers] = len(self.sets)
        return known[numbers]

    def source(self, numbers: Iterable[int]) -> SourceInfo:
        """Return the place of what is made for the operations of ``numbers``."""
        line = self.line(frozenset(numbers))
        return SourceInfo(self, pack_offsets(self, (line - 1, line)))

    def location(self, *numbers: int) -> Location:
        """Return the same as a location."""
        return Location(self, self.line(frozenset(numbers)), 1)

    def numbers(self, location: Location | None) -> frozenset[int]:
        """Return which operations something at ``location`` is for."""
        return (
            self.of_line(location.line) if location is not None and location.source is self else frozenset()
        )

    def of_line(self, line: int) -> frozenset[int]:
        """Return which operations a line stands for."""
        return self.sets[line - 1] if 0 < line <= len(self.sets) else frozenset()


def joined(places: Iterable[SourceInfo | None]) -> SourceInfo | None:
    """Return the place of what is computed once for several operations.

    It is that of all of them in a numbered program, and else that of the first.
    """
    known = list(places)
    first = known[0]
    text = None if first is None else first.source
    if not isinstance(text, NumberedText):
        return first
    return text.source(
        number for each in known if each is not None for number in text.numbers(each.statement)
    )
