"""Tensors while C is written: arrays in memory, views of them, elements that are computed where read.

Accesses of linalg are affine expressions; they become terms of addresses here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mind_mlir.conversion.c.nodes import AffineIndex, Element, Expr
from mind_mlir.conversion.c.operations import unsupported
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.locations import label_of
from mind_mlir.support.lazy_dataclass import dataclass

#: Writes what is needed for one element at the current place, and returns the element.
Reader: TypeAlias = "Callable[[Sequence[AffineIndex]], Expr]"


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor.

    Attributes:
        shape: Its extents.
        read: Gives an element.
        reads: The arrays in memory that this needs.
        place: Where it lies, when in memory: the array, strides and offset in elements.
    """

    shape: tuple[int, ...]
    read: Reader
    reads: frozenset[str] = frozenset()
    place: tuple[str, tuple[int, ...], int] | None = None


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense array of ``shape``."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def in_memory(
    name: str, shape: Sequence[int], strides: Sequence[int] | None = None, offset: int = 0
) -> Array:
    """Return the tensor that lies in the array ``name``."""
    steps = row_major(shape) if strides is None else tuple(strides)

    def read(indices: Sequence[AffineIndex]) -> Expr:
        return Element(name, address(indices, steps, offset))

    return Array(tuple(shape), read, frozenset((name,)), (name, steps, offset))


def address(indices: Sequence[AffineIndex], strides: Sequence[int], offset: int = 0) -> AffineIndex:
    """Return where the element at ``indices`` lies."""
    total = AffineIndex((), offset)
    for index, stride in zip(indices, strides, strict=True):
        total = (
            AffineIndex().plus(index, stride).plus(total) if not total.terms else total.plus(index, stride)
        )
    return total


def reshaped(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return ``array`` in another shape without a copy, or None where its elements do not lie densely."""
    if array.place is not None:
        name, strides, offset = array.place
        dense = row_major(array.shape)
        if all(a == b or e == 1 for a, b, e in zip(strides, dense, array.shape, strict=True)):
            return in_memory(name, shape, offset=offset)
    long = [axis for axis, extent in enumerate(array.shape) if extent != 1]
    kept = [axis for axis, extent in enumerate(shape) if extent != 1]
    if [array.shape[axis] for axis in long] != [shape[axis] for axis in kept]:
        return None

    def read(indices: Sequence[AffineIndex]) -> Expr:
        given = [AffineIndex()] * len(array.shape)
        for axis, target in zip(long, kept, strict=True):
            given[axis] = indices[target]
        return array.read(given)

    return Array(shape, read, array.reads)


def label_for(value: Value) -> str:
    """Return what the program calls ``value``, or ``v``."""
    label = None if isinstance(value, ir.BlockArgument) else label_of(value.owner.operation.location)
    return label or "v"


def dimension(expr: Any) -> int | None:
    """Return the number of the loop that an affine expression is; None for others."""
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def depends(expr: Any, dim: int) -> bool:
    """Return whether an affine expression holds the variable of a loop."""
    return any(name == str(dim) for name, _ in affine_index(expr, None).terms)


def affine_index(expr: Any, given: Sequence[AffineIndex] | None) -> AffineIndex:
    """Return the value of an affine expression; the dimensions by their numbers where none are given."""
    if isinstance(expr, ir.AffineDimExpr):
        return AffineIndex(((str(expr.position), 1),)) if given is None else given[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return AffineIndex((), expr.value)
    if isinstance(expr, ir.AffineAddExpr):
        return affine_index(expr.lhs, given).plus(affine_index(expr.rhs, given))
    if isinstance(expr, ir.AffineMulExpr):
        left, right = affine_index(expr.lhs, given), affine_index(expr.rhs, given)
        return left.times(right.constant) if not right.terms else right.times(left.constant)
    raise unsupported("an access that is no sum of loop variables")


def extents_of(operands: Sequence[Value], maps: Sequence[Any]) -> list[int]:
    """Return the extents of the loops of an operation of linalg."""
    extents = [1] * maps[0].n_dims
    for value, affine in zip(operands, maps, strict=True):
        if isinstance(value.type, ir.RankedTensorType):
            for extent, expr in zip(value.type.shape, affine.results, strict=True):
                if isinstance(expr, ir.AffineDimExpr):
                    extents[expr.position] = extent
    return extents
