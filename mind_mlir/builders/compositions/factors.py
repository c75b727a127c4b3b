"""LU factors of matrices, as LAPACK keeps them: both factors in one matrix.

They come in blocks of columns, whose rows are exchanged before the products with the rest; so each matrix of
a batch is taken on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions.matrices import (
    block_of,
    counted,
    counted_along,
    cut,
    less,
    replaced,
    scalar,
    staged,
    swapped,
    taken,
    where,
)
from mind_mlir.builders.compositions.triangular import forward
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value


def lu(to: Composer, matrix: Value) -> tuple[Value, Value, Value]:
    """Append the factors of ``P @ matrix``, the rows exchanged, counted from 1, and where one is zero.

    Returns:
        The factors, f[batch..., m, n], the lower one without its diagonal of ones; the rows, i32[batch...,
        min(m, n)]; i32[batch...], the first column whose pivot is zero, counted from 1, or 0.
    """
    *batch, rows, columns = matrix.type.extents
    count = math.prod(batch)
    flat = to.reshaped(matrix, (count, rows, columns))
    pivots = to.full(0, TensorType(DType.SI32, (count, min(rows, columns))))

    def each(number: Value, matrices: Value, found: Value) -> Sequence[Value]:
        one = to.reshaped(taken(to, matrices, -3, number), (rows, columns))
        factors, exchanged = _factored(to, one)
        factors = to.reshaped(factors, (1, rows, columns))
        exchanged = to.reshaped(exchanged, (1, min(rows, columns)))
        return replaced(to, matrices, factors, -3, number), replaced(to, found, exchanged, -2, number)

    if count == 1:
        factors, exchanged = _factored(to, to.reshaped(flat, (rows, columns)))
    else:
        factors, exchanged = counted(to, count, [flat, pivots], each)
    factors = to.reshaped(factors, (*batch, rows, columns))
    exchanged = to.reshaped(exchanged, (*batch, min(rows, columns)))
    return factors, exchanged, _zero_pivot(to, factors)


def _factored(to: Composer, matrix: Value) -> tuple[Value, Value]:
    """Append the factors of one matrix, and the rows that were exchanged, counted from 1."""
    rows, columns = matrix.type.extents
    least = min(rows, columns)
    block = block_of(least)
    count = -(-least // block)
    wide = to.padded(
        matrix, (0, 0), (max(0, count * block - rows), max(0, count * block - columns)), (0, 0), 0
    )
    pivots = to.full(0, TensorType(DType.SI32, (count * block,)))
    down = to.emit("Iota", shape=(wide.type.extents[0], 1), dtype=DType.SI32, axis=0)
    across = to.emit("Iota", shape=(1, wide.type.extents[1]), dtype=DType.SI32, axis=1)

    def step(number: Value, found: Value, exchanged: Value) -> Sequence[Value]:
        first = to.emit("Mul", number, scalar(to, block))
        panel, chosen = _panel(to, swapped(to, taken(to, found, -1, first, block)), first, rows)
        panel = swapped(to, panel)
        exchanged = replaced(to, exchanged, chosen, -1, first)
        if count == 1 and found.type.extents[1] == block:
            return panel, exchanged
        found = replaced(to, _reordered(to, found, first, chosen), panel, -1, first)
        behind = to.emit("Add", first, scalar(to, block))
        corner = taken(to, panel, -2, first, block)
        known = taken(to, found, -2, first, block)
        upper = forward(to, corner, known, unit=True)
        is_right = to.emit("Compare", across, to.stretched(behind, across.shape), op="GreaterEqual")
        known = to.emit("Select", to.stretched(is_right, known.shape), upper, known)
        found = replaced(to, found, known, -2, first)
        is_below = to.emit("Compare", down, to.stretched(behind, down.shape), op="GreaterEqual")
        left = to.emit("Select", to.stretched(is_below, panel.shape), panel, to.like(0, panel))
        right = to.emit("Select", to.stretched(is_right, known.shape), known, to.like(0, known))

        def rest(start: int, _end: int) -> Value:
            place = start * block
            below = to.part(left, 0, place, left.type.extents[0])
            behind_ = to.part(right, 1, place, right.type.extents[1])
            return less(to, found, below, behind_, place)

        return staged(to, number, count, rest), exchanged

    factors, exchanged = counted(to, count, [wide, pivots], step)
    return cut(to, factors, rows, columns), to.part(exchanged, 0, 0, least)


def _panel(to: Composer, panel: Value, first: Value, rows: int) -> tuple[Value, Value]:
    """Append the factors of a block of columns, which are rows here, and the places exchanged, from 1 on.

    Args:
        to: Appends the operations.
        panel: f[block, m].
        first: The place of its first pivot.
        rows: How many places are the matrix'; the others are never pivots of a column that has any.
    """
    block, height = panel.type.extents
    along = to.emit("Iota", shape=(height,), dtype=DType.SI32, axis=0)
    across = to.emit("Iota", shape=(1, height), dtype=DType.SI32, axis=1)
    down = to.emit("Iota", shape=(block, 1), dtype=DType.SI32, axis=0)
    chosen = to.full(0, TensorType(DType.SI32, (block,)))

    def step(number: Value, found: Value, exchanged: Value) -> Sequence[Value]:
        place = to.emit("Add", first, number)
        sizes = _sizes(to, to.reshaped(taken(to, found, -2, number), (height,)))
        least = to.like(-1, sizes)
        sizes = where(to, along, "Less", place, least, sizes)
        sizes = where(to, along, "Less", scalar(to, rows), sizes, least)
        best = to.emit("ArgMax", sizes, axis=0, keepdims=False, output_dtype=DType.SI32)
        best = to.emit("Maximum", best, place)  # where no place is left, the pivot is the padding's own
        found = _exchanged(to, found, -1, place, best)
        row = taken(to, found, -2, number)
        pivot = taken(to, row, -1, place)
        is_zero = to.emit("Compare", pivot, to.like(0, pivot), op="Equal")
        divisor = to.emit("Select", is_zero, to.like(1, pivot), pivot)
        factor = where(to, across, "Greater", place, to.emit("Div", row, to.stretched(divisor, row.shape)))
        row = where(to, across, "Greater", place, factor, row)
        others = where(to, down, "Greater", number, taken(to, found, -1, place))
        outer = (to.stretched(each, found.shape) for each in (others, factor))
        found = to.emit("Sub", found, to.emit("Mul", *outer))
        best = to.reshaped(to.emit("Add", best, scalar(to, 1)), (1,))
        return replaced(to, found, row, -2, number), replaced(to, exchanged, best, -1, number)

    panel, exchanged = counted(to, block, [panel, chosen], step)
    return panel, exchanged


def _reordered(to: Composer, matrix: Value, first: Value, exchanged: Value) -> Value:
    """Append a matrix with its rows from ``first`` on exchanged as a block of columns says."""

    def step(number: Value, found: Value) -> Sequence[Value]:
        other = to.emit("Sub", to.reshaped(taken(to, exchanged, -1, number), ()), scalar(to, 1))
        return [_exchanged(to, found, -2, to.emit("Add", first, number), other)]

    (result,) = counted(to, exchanged.type.extents[0], [matrix], step)
    return result


def _sizes(to: Composer, column: Value) -> Value:
    """Append what pivots are chosen by: of complex numbers their parts' sizes, as LAPACK does."""
    if not column.type.dtype.is_complex:
        return to.emit("Abs", column)
    return to.emit("Add", *(to.emit("Abs", part) for part in to.parts(column)))


def _exchanged(to: Composer, value: Value, axis: int, one: Value, other: Value) -> Value:
    here, there = taken(to, value, axis, one), taken(to, value, axis, other)
    return replaced(to, replaced(to, value, there, axis, one), here, axis, other)


def _zero_pivot(to: Composer, factors: Value) -> Value:
    """Append the first column whose pivot is zero, counted from 1; 0 where there is none."""
    rank, extents = factors.type.rank, factors.type.extents
    is_zero = to.emit("Compare", factors, to.like(0, factors), op="Equal")
    down, across = (counted_along(to, factors, axis) for axis in (-2, -1))
    on_diagonal = to.emit("And", is_zero, to.emit("Compare", down, across, op="Equal"))
    none = to.like(max(extents), down)
    first = to.reduced(to.emit("Select", on_diagonal, down, none), "Min", (rank - 2, rank - 1))
    following = to.emit("Add", first, to.like(1, first))
    return where(to, first, "Less", to.like(max(extents), first), following)
