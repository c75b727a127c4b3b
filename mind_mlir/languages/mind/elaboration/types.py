"""Types of the surface language with numbers for all extents (surface.md, "Types").

    type ::= tensor type | tuple of types | struct of named types

A scalar is a tensor of rank 0, and unit the tuple of nothing. Types compare by what they are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support.lazy_dataclass import dataclass

#: The element types of the language by their names.
DTYPES: Mapping[str, DType] = {
    "i32": DType.SI32,
    "i64": DType.SI64,
    "f32": DType.F32,
    "f64": DType.F64,
    "bool": DType.I1,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class TupleOf:
    """``(A, B)``."""

    items: tuple[SurfaceType, ...]

    def __str__(self) -> str:
        return spell(self)


@dataclass(frozen=True, slots=True)
class StructOf:
    """A struct, its fields by name, in the order of their declaration."""

    name: str
    fields: tuple[tuple[str, SurfaceType], ...]

    def __str__(self) -> str:
        return spell(self)


SurfaceType: TypeAlias = TensorType | TupleOf | StructOf

#: Values that a struct or a tuple may hold, those of its parts counted in, and levels of such types.
MAX_LEAVES, MAX_LEVELS = 10_000, 64

TOO_LARGE = "use a tensor with one dimension more for many of something"

UNIT = TupleOf(())
BOOL = TensorType(DType.I1)
INDEX = TensorType(DType.SI64)


def spell_dtype(dtype: DType) -> str:
    """Return a dtype as the language writes it; one that it has not as Core IR does."""
    return _NAMES.get(dtype, dtype.core_name)


def spell(type_: SurfaceType) -> str:
    """Return a type as the language writes it."""
    if isinstance(type_, TensorType):
        dtype = spell_dtype(type_.dtype)
        return f"Tensor<{dtype}, [{', '.join(map(str, type_.shape))}]>" if type_.shape else dtype
    if isinstance(type_, StructOf):
        return type_.name
    if not type_.items:
        return "unit"
    comma = "," if len(type_.items) == 1 else ""
    return f"({', '.join(map(spell, type_.items))}{comma})"


def described(type_: SurfaceType | None) -> str:
    """Return the type of a value for a message; a value without one is a function."""
    return "a function" if type_ is None else spell(type_)


def too_large(what: str, count: int) -> str:
    """Return what is wrong with what holds ``count`` values: these are too many, or else its levels."""
    if count > MAX_LEAVES:
        return f"{what} holds more than {MAX_LEAVES:,} values"
    return f"{what} has more than {MAX_LEVELS} levels"


def parts(type_: SurfaceType) -> list[tuple[str, SurfaceType]]:
    """Return what a tuple or a struct is made of, by name; a tensor is made of nothing."""
    if isinstance(type_, StructOf):
        return list(type_.fields)
    if isinstance(type_, TupleOf):
        return [(str(place), item) for place, item in enumerate(type_.items)]
    return []


def leaves(type_: SurfaceType, prefix: str = "") -> Iterator[tuple[str, TensorType]]:
    """Yield the tensors that a value is made of, in order, and what they are called: ``params.w``."""
    if isinstance(type_, TensorType):
        yield prefix, type_
        return
    for name, part in parts(type_):
        yield from leaves(part, f"{prefix}.{name}" if prefix else name)
