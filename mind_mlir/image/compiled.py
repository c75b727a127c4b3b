"""`CompiledCode`: a compiled module as one plain value, which needs neither a module nor MLIR to be run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.image.entry import Entry, check_entries, count, item, items
from mind_mlir.image.errors import CodeError
from mind_mlir.image.image import Image, Import, Symbol, as_places
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module


#: The form of the bytes.
_VERSION = 1
_PLACE_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Data of a program that its code reads where it lies: a large literal.

    Attributes:
        symbol: What the image imports it as.
        data: The bytes.
        aligned: Whether the code takes them to lie at a multiple of `ALIGNMENT`.
    """

    symbol: str
    data: bytes | memoryview
    aligned: bool


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCode:
    """The machine code of a module, and all that loading and calling it takes.

    Attributes:
        image: The code.
        entries: The functions that callers see.
        data: Large literals, which the image imports.
        features: What the processor has to have, as LLVM calls it.
    """

    image: Image
    entries: tuple[Entry, ...]
    data: tuple[Data, ...] = ()
    features: tuple[str, ...] = ()

    def to_parts(self, *, with_data: bool = True) -> list[bytes | memoryview]:
        """Return the code as bytes, with its `data` or without, in parts that stand one behind the other."""
        image = self.image
        pieces: list[bytes | memoryview] = [image.memory, image.rebased.tobytes()]
        pieces += [each.places.tobytes() for each in image.imports]
        pieces += [each.data for each in self.data] if with_data else []
        header = {
            "version": _VERSION,
            "machine": image.machine,
            "sizes": [image.text, image.constants, image.size],
            "memory": len(image.memory),
            "rebased": len(image.rebased),
            "imports": [[each.symbol, len(each.places)] for each in image.imports],
            "symbols": [[each.name, each.offset, each.size] for each in image.symbols],
            "entries": [each.to_json() for each in self.entries],
            "data": [[each.symbol, len(each.data), each.aligned] for each in self.data],
            "features": list(self.features),
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        start = len(text).to_bytes(8, "little") + text
        parts: list[bytes | memoryview] = []
        for piece in (start, *pieces):
            parts += [piece, bytes(-len(piece) % ALIGNMENT)]
        return parts

    @classmethod
    def from_bytes(
        cls, data: bytes | memoryview, kept: Sequence[bytes | memoryview] | None = None
    ) -> CompiledCode:
        """Return what `to_parts` made ``data`` of; it refers to these bytes.

        Where its `data` is not among them, that is ``kept``.

        Raises:
            CodeError: It made something else.
        """
        view = memoryview(data).cast("B")
        length = int.from_bytes(view[:8], "little")
        if length > len(view) - 8:
            raise CodeError("the code ends too early")
        try:
            header = json.loads(bytes(view[8 : 8 + length]))
        except (ValueError, RecursionError) as error:
            raise CodeError(f"the code has no header: {error}") from None
        if item(header, "version", int) != _VERSION:
            raise CodeError("the code is of another version")
        pieces = _Pieces(view, 8 + length)
        image = _image(header, pieces)
        rows = items(header, "data")
        if kept is None:
            found = tuple(_data(each, pieces.next) for each in rows)
        elif len(kept) != len(rows):
            raise CodeError(f"there are {len(kept)} constants instead of {len(rows)}")
        else:
            rest = iter(kept)
            found = tuple(_data(each, lambda _: memoryview(next(rest)).cast("B")) for each in rows)
        entries = tuple(Entry.from_json(each) for each in items(header, "entries"))
        check_entries(entries, image)
        features = tuple(_text(each) for each in items(header, "features"))
        return cls(image, entries, found, features)


class _Pieces:
    """The pieces behind a header, one after the other."""

    def __init__(self, view: memoryview, start: int) -> None:
        self._view, self._at = view, start

    def next(self, size: int) -> memoryview:
        start = -(-self._at // ALIGNMENT) * ALIGNMENT
        self._at = start + size
        if self._at > len(self._view):
            raise CodeError("the code ends too early")
        return self._view[start : self._at]

    def places(self, number: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
        return as_places(np.frombuffer(self.next(number * _PLACE_BYTES), "<u4"))


def _image(header: object, pieces: _Pieces) -> Image:
    sizes = items(header, "sizes")
    if [type(each) for each in sizes] != [int, int, int]:
        raise CodeError("the sizes of an image must be numbers")
    text, constants, size = sizes
    memory = pieces.next(count(header, "memory"))
    rebased = pieces.places(count(header, "rebased"))
    listed = [_row(each, str, int) for each in items(header, "imports")]
    imports = tuple(Import(name, pieces.places(number)) for name, number in listed)
    symbols = tuple(Symbol(*_row(each, str, int, int)) for each in items(header, "symbols"))
    return Image(item(header, "machine", str), memory, text, constants, size, rebased, imports, symbols)


def _data(row: object, taken: Callable[[int], memoryview]) -> Data:
    symbol, size, aligned = _row(row, str, int, bool)
    data = taken(size)
    if len(data) != size:
        raise CodeError(f"a constant has {len(data)} bytes instead of {size}")
    return Data(symbol, data, aligned)


def _row(row: object, *kinds: type) -> Sequence[Any]:
    if not isinstance(row, list) or tuple(type(each) for each in row) != kinds:
        raise CodeError("a row of the header has another form")
    if any(type(each) is int and each < 0 for each in row):
        raise CodeError("a number of the header is negative")
    return row


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise CodeError("a feature must be a name")
    return value


@dataclass(frozen=True, slots=True)
class Compilation:
    """The outcome of compiling a module.

    Attributes:
        code: Its code.
        canonical: The module in canonical form, which the entries of the code are those of.
        timings: Seconds that each stage took; code that was kept has gone through few.
    """

    code: CompiledCode
    canonical: Module
    timings: Mapping[str, float]
