"""The points of the atlas: every record's examples in several sizes and dtypes, and pairs of operations.

Nothing here knows an operation: the extents of an example are made larger together, those that are equal by
the same number, with the attributes that repeat them, until the verifier takes the use.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import Builder, DType, MindError, Module, TensorType
from mind_mlir.ir.module import Functions
from mind_mlir.ir.profiles import ANY_PROFILE, CORE_FUNCTIONS, CORE_V1, PTIR
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.example_types import dtypes_of, parse_type
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from mind_mlir import Array
    from mind_mlir.ops.opdef import OpDef

#: The classes of sizes: bytes that operands and results take together, about.
SIZES = {"L1": 12 << 10, "L2": 384 << 10, "memory": 48 << 20}
#: The class of sizes whose extents are primes.
ODD, _ODD_BYTES = "odd", 256 << 10
#: The dtypes that are tried unless all are.
USUAL = (DType.F32, DType.SI32, DType.I1, None)
_MOST_EXTENT = 1 << 24
_PAIR_EXTENT = 512
#: Operations that read a part of an operand, which what they are lowered to says.
_PARTS = frozenset(("Slice", "DynamicSlice", "GatherWindows", "Gather", "Take", "Index"))


@dataclass(frozen=True, slots=True)
class Point:
    """One program of the atlas.

    Attributes:
        name: The operation, or the pair.
        dtype: The dtype of its numbers, as text.
        size: The class of its size.
        shapes: Its operands, as text.
        module: The program.
        is_pair: Whether it is of two operations.
        reads_part: Whether it reads a part of its operands.
    """

    name: str
    dtype: str
    size: str
    shapes: str
    module: Module
    is_pair: bool = False
    reads_part: bool = False


@dataclass(frozen=True, slots=True)
class _Use:
    record: OpDef
    types: tuple[TensorType, ...]
    attributes: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        """Return the bytes of operands and results; 0 where the verifier refuses the use."""
        results = self.results()
        if results is None:
            return 0
        return sum(math.prod(each.extents) * each.dtype.numpy.itemsize for each in (*self.types, *results))

    def results(self) -> tuple[TensorType, ...] | None:
        """Return the types of the results; None where the verifier refuses the use."""
        context = TypeContext(self.record.opcode, 0, self.types, self.attributes, profile=ANY_PROFILE)
        return infer_types(self.record, context)

    def scaled(self, extents: Mapping[int, int]) -> Iterator[_Use]:
        """Yield the use with other extents, its attributes as they are and with theirs changed alike."""
        types = tuple(
            type_.with_shape(tuple(extents.get(each, each) for each in type_.extents)) for type_ in self.types
        )
        yield replace(self, types=types)
        changed = {name: _changed(value, extents) for name, value in self.attributes.items()}
        if changed != self.attributes:
            yield replace(self, types=types, attributes=changed)


def _changed(value: Any, extents: Mapping[int, int]) -> Any:
    """Return an attribute whose list of numbers repeats extents with the new ones."""
    if isinstance(value, tuple | list) and all(type(each) is int for each in value):
        return type(value)(extents.get(each, each) for each in value)
    return value


def points(*, every_dtype: bool, sizes: Sequence[str], only: Collection[str] = ()) -> Iterator[Point]:
    """Yield all points, or those of some opcodes and pairs: those of records first."""
    for record in sorted(all_ops(), key=lambda each: each.opcode):
        if only and record.opcode not in only:
            continue
        for dtype in dtypes_of(record) if every_dtype else _usual(record):
            for number, example in enumerate(record.examples):
                types = tuple(parse_type(spelled, dtype) for spelled in example.operands)
                use = _Use(record, types, dict(example.attributes))
                if not types or use.results() is None:
                    continue
                for size in sizes:
                    found = _sized(use, size)
                    point = None if found is None else _point(found, dtype, size, number)
                    if point is not None:
                        yield point
    yield from (pair for pair in pairs() if not only or pair.name in only)


def _softmax(x: Array, _w: Array) -> Array:
    powers = mnp.exp(x - mnp.max(x, axis=1, keepdims=True))
    return powers / mnp.sum(powers, axis=1, keepdims=True)


#: A representative of each class of operations, as a function of a matrix and one that products take.
CLASSES: Mapping[str, Callable[[Array, Array], Array]] = {
    "elementwise": lambda x, w: mnp.exp(x),
    "reduction of rows": lambda x, w: mnp.sum(x, axis=1, keepdims=True),
    "reduction of columns": lambda x, w: mnp.sum(x, axis=0, keepdims=True),
    "product": lambda x, w: x @ w[: x.shape[1]],
    "transposition": lambda x, w: mnp.transpose(x),
    "scan of rows": lambda x, w: mnp.cumsum(x, axis=1),
    "scan of columns": lambda x, w: mnp.cumsum(x, axis=0),
    "softmax": _softmax,
    "arg of rows": lambda x, w: mnp.argmax(x, axis=1, keepdims=True),
    "sort of rows": lambda x, w: mnp.sort(x, axis=1),
    "slice": lambda x, w: x[1:-1, 1:-1],
}


def _behind(
    one: Callable[[Array, Array], Array], other: Callable[[Array, Array], Array]
) -> Callable[[Array, Array], Array]:
    return lambda x, w: other(one(x, w), w)


def pairs() -> Iterator[Point]:
    """Yield each class of operations behind each."""
    w = mnp.ones((_PAIR_EXTENT, _PAIR_EXTENT), mnp.float32)
    for one, other in itertools.product(CLASSES, repeat=2):
        module = mind_mlir.jit(_behind(CLASSES[one], CLASSES[other])).lower(w, w).module
        yield Point(f"{one}, {other}", "f32", "L2", f"{_PAIR_EXTENT} x {_PAIR_EXTENT}", module, is_pair=True)


def _sized(use: _Use, size: str) -> _Use | None:
    """Return a use of so many bytes, about; None where its extents cannot be changed."""
    wanted = SIZES.get(size, _ODD_BYTES)
    extents = sorted({each for type_ in use.types for each in type_.extents if each > 1})
    for chosen in (extents, *([each] for each in reversed(extents))):
        best: _Use | None = None
        factor = 2.0
        while factor < _MOST_EXTENT:
            found = _first(use, {each: _extent(each * factor, size) for each in chosen})
            if found is None or (best is not None and found.bytes > 2 * wanted):
                break
            best = found
            if found.bytes >= wanted:
                break
            factor *= 1.3
        if best is not None and best.bytes >= wanted / 4:
            return best
    return None


def _extent(extent: float, size: str) -> int:
    number = max(2, round(extent))
    if size != ODD:
        return number if number < 16 else number // 8 * 8
    while any(number % each == 0 for each in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


def _first(use: _Use, extents: Mapping[int, int]) -> _Use | None:
    """Return the first use with other extents that the verifier takes."""
    return next((each for each in use.scaled(extents) if each.results() is not None), None)


def _point(use: _Use, dtype: DType | None, size: str, number: int) -> Point | None:
    dtypes = {type_.dtype for type_ in (*use.types, *(use.results() or ()))}
    dtypes |= {value for value in use.attributes.values() if isinstance(value, DType)}
    profile = PTIR if not dtypes <= {*CORE_V1.dtypes} else CORE_FUNCTIONS
    builder = Builder(profile=profile.name)
    try:
        inputs = [builder.parameter(type_, f"x{place}") for place, type_ in enumerate(use.types)]
        results = builder.emit_all(use.record.opcode, *inputs, **use.attributes)
        module = Module(Functions((builder.function("main", list(results)),)), profile.name)
    except (MindError, ValueError):
        return None
    shapes = ", ".join(" x ".join(map(str, type_.extents)) or "1" for type_ in use.types)
    name = f"{use.record.opcode} {number}" if number else use.record.opcode
    reads_part = use.record.opcode in _PARTS
    return Point(name, "" if dtype is None else dtype.value, size, shapes, module, reads_part=reads_part)


def _usual(record: OpDef) -> list[DType | None]:
    return [each for each in dtypes_of(record) if each in USUAL][:2] or dtypes_of(record)[:1]
