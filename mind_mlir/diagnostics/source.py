"""Source texts, and where in them something stands."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Literal, overload

from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

#: Characters between two entries of an index.
_BLOCK = 1 << 10


class LineIndex:
    """Finds the line of an offset and the offsets of a line.

    It holds two numbers for every block of characters and looks at one block to answer, so that neither a
    text of nothing but line feeds nor one of a single line makes it large or slow.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._feeds_before = array("q")
        self._line_starts = array("q")  # of the lines that hold the first characters of the blocks
        feeds = start = 0
        for block in range(0, len(text) + 1, _BLOCK):
            self._feeds_before.append(feeds)
            self._line_starts.append(start)
            feeds += text.count("\n", block, block + _BLOCK)
            start = text.rfind("\n", block, block + _BLOCK) + 1 or start
        #: How many lines there are; a text that ends with a line feed has an empty one after it.
        self.count = feeds + 1

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line that holds the character at ``offset``, and the offset of its start."""
        block, first = offset // _BLOCK, offset // _BLOCK * _BLOCK
        line = self._feeds_before[block] + self._text.count("\n", first, offset) + 1
        return line, self._text.rfind("\n", first, offset) + 1 or self._line_starts[block]

    def span(self, line: int) -> tuple[int, int]:
        """Return the offsets of the 1-based ``line``, without its line feed."""
        start = 0
        if line > 1:
            block = bisect_left(self._feeds_before, line - 1) - 1
            start = block * _BLOCK
            for _ in range(line - 1 - self._feeds_before[block]):
                start = self._text.index("\n", start) + 1
        end = self._text.find("\n", start)
        return start, len(self._text) if end < 0 else end


@dataclass(frozen=True)
class SourceText:
    """A source file as read: its display name and its text."""

    name: str
    text: str = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", argument_checks.text(self.name, "name"))
        object.__setattr__(self, "text", argument_checks.text(self.text, "text"))

    def __reduce__(self) -> tuple[type[SourceText], tuple[str, str]]:
        return SourceText, (self.name, self.text)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the text split at line feeds, without them."""
        return tuple(line.removesuffix("\r") for line in self.text.split("\n"))

    @cached_property
    def index(self) -> LineIndex:
        """Return what tells lines from offsets."""
        return LineIndex(self.text)

    def locate(self, start: int, end: int) -> Location:
        """Return the span ``[start, end)`` of the text, cut at the end of its first line."""
        line, line_start = self.index.locate(start)
        feed = self.text.find("\n", start, end)
        end = feed if feed >= 0 else end
        return Location(self, line, start - line_start + 1, max(1, end - start))


@dataclass(frozen=True, slots=True)
class Location:
    """A span of source text: 1-based line and column, and a length, both counted in code points."""

    source: SourceText
    line: int
    column: int
    length: int = 1

    @property
    def text(self) -> str:
        """Return the characters of the span."""
        start, end = self.offsets
        return self.source.text[start:end]

    @property
    def offsets(self) -> tuple[int, int]:
        """Return the offsets of the span in the text."""
        start = self.source.index.span(self.line)[0] + self.column - 1
        return start, start + self.length

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, eq=False)
class Spans(Sequence[Location]):
    """Places in one source; each is held as two offsets, and its location made when it is asked for."""

    source: SourceText
    packed: bytes

    @classmethod
    def of(cls, source: SourceText, offsets: Iterable[int]) -> Spans:
        """Build it from the starts and ends of the spans, in turn."""
        return cls(source, pack_offsets(source, offsets))

    def __len__(self) -> int:
        return len(unpack_offsets(self.source, self.packed)) // 2

    @overload
    def __getitem__(self, index: int) -> Location: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Location]: ...
    def __getitem__(self, index: int | slice) -> Location | Sequence[Location]:
        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        position = range(len(self))[index]
        offsets = unpack_offsets(self.source, self.packed)
        return self.source.locate(offsets[2 * position], offsets[2 * position + 1])


def pack_offsets(source: SourceText, offsets: Iterable[int]) -> bytes:
    """Return offsets into a source as bytes: four for each, where that is enough."""
    return array(_typecode(source), offsets).tobytes()


def unpack_offsets(source: SourceText, packed: bytes) -> memoryview[int]:
    """Return what `pack_offsets` was given."""
    return memoryview(packed).cast(_typecode(source))


def _typecode(source: SourceText) -> Literal["I", "Q"]:
    """Return the type of the integers that hold offsets of a source."""
    return "I" if len(source.text) < 2**32 else "Q"
