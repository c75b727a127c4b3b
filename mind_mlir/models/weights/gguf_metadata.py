"""The values that stand in a GGUF file: numbers, texts, and arrays of these.

The reader of the package gguf makes several numpy arrays of each text, which takes 9 s for a vocabulary of
128,000, and goes on for ever where a damaged file gives an array more elements than any file has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.models.weights.errors import WeightsProblem

if TYPE_CHECKING:
    from mind_mlir.models.weights.mapped_file import MappedFile

#: How numbers are packed, by what the format says their type is.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
#: How deep arrays of arrays go; no model has two.
_MOST_NESTED = 4
#: The least bytes that an element takes: the length of a text, the type and length of an array.
_LEAST = {_TEXT: 8, _ARRAY: 12}


class MetadataReader:
    """Reads a file on from a place.

    Attributes:
        file: The file.
        offset: The place.
    """

    def __init__(self, file: MappedFile, offset: int = 0) -> None:
        self.file, self.offset = file, offset

    def number(self, form: str) -> Any:
        """Return a number packed as `struct` calls it."""
        (value,) = self.numbers(form, 1)
        return value

    def numbers(self, form: str, count: int) -> tuple[Any, ...]:
        """Return several numbers of one kind."""
        size = {"B": 1, "b": 1, "?": 1, "H": 2, "h": 2, "I": 4, "i": 4, "f": 4}.get(form, 8)
        self.expect(count, size)
        found = self.file.unpack(f"<{count}{form}", self.offset)
        self.offset += count * size
        return found

    def expect(self, count: int, size: int) -> None:
        """Make sure that ``count`` elements of at least ``size`` bytes can follow."""
        if count > (self.file.size - self.offset) // size:
            raise WeightsProblem(
                f"it says at byte {self.offset} that {count} elements follow, "
                f"but ends at byte {self.file.size}"
            )

    def text(self) -> str:
        """Return a text; bytes that are not UTF-8 are surrogates."""
        (length,) = self.file.unpack("<Q", self.offset)
        self.offset += 8
        self.expect(length, 1)
        data = self.file.bytes(self.offset, length)
        self.offset += length
        return data.decode("utf-8", "surrogateescape")

    def value(self, kind: int, depth: int = 0) -> Any:
        """Return a value of a type: a number, a truth value, a text, or a list of these."""
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            raise WeightsProblem(f"it has a value of type {kind}, which there is not")
        inner, count = self.number("I"), self.number("Q")
        if inner in _NUMBERS:
            return list(self.numbers(_NUMBERS[inner], count))
        if depth == _MOST_NESTED or inner not in _LEAST:
            raise WeightsProblem(f"it has an array of elements of type {inner} in {depth} others")
        self.expect(count, _LEAST[inner])
        return [self.value(inner, depth + 1) for _ in range(count)]


class TensorInfo(NamedTuple):
    """The description of a tensor in the head of a file.

    Attributes:
        name: Its name.
        shape: Its extents, outermost first.
        kind: The number of its type.
        offset: Where its bytes begin, counted from the first byte of the data.
    """

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


def read_tensor_info(reader: MetadataReader) -> TensorInfo:
    """Return the description of the next tensor."""
    name = reader.text()
    rank = reader.number("I")
    extents = reader.numbers("Q", rank)
    return TensorInfo(name, tuple(reversed(extents)), reader.number("I"), reader.number("Q"))
