"""LU and QR factors of matrices, as LAPACK keeps them: both factors in one matrix.

LU factors come in blocks of columns, whose rows are exchanged before the products with the rest; so each
matrix of a batch is taken on its own. QR factors are made of a reflection for each column.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions.complex_numbers import magnitude
from mind_mlir.builders.compositions.matrices import (
    adjoint_numbers,
    counted,
    counted_along,
    cut,
    replaced,
    scalar,
    taken,
    times,
    where,
)
from mind_mlir.builders.compositions.triangular import forward
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value

_BLOCK = 32


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
    block = least if least <= 2 * _BLOCK else _BLOCK
    count = -(-least // block)
    wide = to.padded(
        matrix, (0, 0), (max(0, count * block - rows), max(0, count * block - columns)), (0, 0), 0
    )
    pivots = to.full(0, TensorType(DType.SI32, (count * block,)))
    down = to.emit("Iota", shape=(wide.type.extents[0], 1), dtype=DType.SI32, axis=0)
    across = to.emit("Iota", shape=(1, wide.type.extents[1]), dtype=DType.SI32, axis=1)

    def step(number: Value, found: Value, exchanged: Value) -> Sequence[Value]:
        first = to.emit("Mul", number, scalar(to, block))
        panel, order, chosen = _panel(to, taken(to, found, -1, first, block), first, rows)
        exchanged = replaced(to, exchanged, chosen, -1, first)
        if count == 1 and found.type.extents[1] == block:
            return panel, exchanged
        found = replaced(to, to.emit("Take", found, order), panel, -1, first)
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
        return to.emit("Sub", found, times(to, left, right)), exchanged

    factors, exchanged = counted(to, count, [wide, pivots], step)
    return cut(to, factors, rows, columns), to.part(exchanged, 0, 0, least)


def _panel(to: Composer, panel: Value, first: Value, rows: int) -> tuple[Value, Value, Value]:
    """Append the factors of a block of columns, the order in which it has the rows, and those exchanged.

    Args:
        to: Appends the operations.
        panel: f[m, block].
        first: The row of its first pivot.
        rows: How many of its rows are the matrix'; the others are never pivots of a column that has any.
    """
    height, block = panel.type.extents
    down = to.emit("Iota", shape=(height,), dtype=DType.SI32, axis=0)
    across = to.emit("Iota", shape=(1, block), dtype=DType.SI32, axis=1)
    chosen = to.full(0, TensorType(DType.SI32, (block,)))

    def step(number: Value, found: Value, order: Value, exchanged: Value) -> Sequence[Value]:
        place = to.emit("Add", first, number)
        column = to.reshaped(taken(to, found, -1, number), (height,))
        sizes = _sizes(to, column)
        least = to.like(-1, sizes)
        sizes = where(to, down, "Less", place, least, sizes)
        sizes = where(to, down, "Less", scalar(to, rows), sizes, least)
        best = to.emit("ArgMax", sizes, axis=0, keepdims=False, output_dtype=DType.SI32)
        best = to.emit("Maximum", best, place)  # where no row is left, the pivot is the padding's own
        found, order = (_exchanged(to, each, axis, place, best) for each, axis in ((found, -2), (order, -1)))
        row = taken(to, found, -2, place)
        pivot = taken(to, row, -1, number)
        is_zero = to.emit("Compare", pivot, to.like(0, pivot), op="Equal")
        divisor = to.emit("Select", is_zero, to.like(1, pivot), pivot)
        column = taken(to, found, -1, number)
        factor = to.emit("Div", column, to.stretched(divisor, column.shape))
        below = to.reshaped(down, (height, 1))
        factor = where(to, below, "Greater", place, factor)
        right = where(to, across, "Greater", number, row)
        column = where(to, below, "Greater", place, factor, column)
        found = to.emit("Sub", found, _outer(to, factor, right))
        best = to.emit("Add", best, scalar(to, 1))
        exchanged = replaced(to, exchanged, to.reshaped(best, (1,)), -1, number)
        return replaced(to, found, column, -1, number), order, exchanged

    panel, order, exchanged = counted(to, block, [panel, down, chosen], step)
    return panel, order, exchanged


def _sizes(to: Composer, column: Value) -> Value:
    """Append what pivots are chosen by: of complex numbers their parts' sizes, as LAPACK does."""
    if not column.type.dtype.is_complex:
        return to.emit("Abs", column)
    return to.emit("Add", *(to.emit("Abs", part) for part in to.parts(column)))


def _exchanged(to: Composer, value: Value, axis: int, one: Value, other: Value) -> Value:
    here, there = taken(to, value, axis, one), taken(to, value, axis, other)
    return replaced(to, replaced(to, value, there, axis, one), here, axis, other)


def _outer(to: Composer, column: Value, row: Value) -> Value:
    shape = (*column.type.extents[:-1], row.type.extents[-1])
    return to.emit("Mul", to.stretched(column, shape), to.stretched(row, shape))


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


def qr(to: Composer, matrix: Value) -> tuple[Value, Value]:
    """Append the factors of ``matrix``: R, with the reflections below it, and the scales of these.

    Returns:
        f[batch..., m, n], and f[batch..., min(m, n)].
    """
    *batch, rows, columns = matrix.type.extents
    count, rank = min(rows, columns), matrix.type.rank
    down, across = _counts(to, rows, columns, rank)

    def step(number: Value, found: Value, scales: Value) -> Sequence[Value]:
        column = taken(to, found, -1, number)
        head = taken(to, column, -2, number)
        tail = where(to, to.stretched(down, column.shape), "Greater", number, column)
        beta, scale, divisor = _reflection(to, head, tail)
        vector = to.emit("Div", tail, to.stretched(divisor, tail.shape))
        vector = where(to, to.stretched(down, vector.shape), "Equal", number, to.like(1, vector), vector)
        rest = where(
            to, to.stretched(across, (*batch, 1, columns)), "Greater", number, _row(to, vector, found)
        )
        weights = to.emit("Mul", rest, to.stretched(adjoint_numbers(to, scale), rest.shape))
        found = to.emit("Sub", found, _outer(to, vector, weights))
        column = where(to, to.stretched(down, column.shape), "Greater", number, vector, column)
        column = where(
            to, to.stretched(down, column.shape), "Equal", number, to.stretched(beta, column.shape), column
        )
        scale = to.reshaped(scale, (*batch, 1))
        return replaced(to, found, column, -1, number), replaced(to, scales, scale, -1, number)

    scales = to.full(0, TensorType(matrix.type.dtype, (*batch, count)))
    found, scales = counted(to, count, [matrix, scales], step)
    return found, scales


def _counts(to: Composer, rows: int, columns: int, rank: int) -> tuple[Value, Value]:
    ones = (1,) * (rank - 2)
    down = to.emit("Iota", shape=(*ones, rows, 1), dtype=DType.SI32, axis=rank - 2)
    return down, to.emit("Iota", shape=(*ones, 1, columns), dtype=DType.SI32, axis=rank - 1)


def _row(to: Composer, vector: Value, matrix: Value) -> Value:
    """Append the adjoint of a column times a matrix."""
    turned = adjoint_numbers(to, vector)
    rank = vector.type.rank
    return times(to, to.transposed(turned, (*range(rank - 2), rank - 1, rank - 2)), matrix)


def _reflection(to: Composer, head: Value, tail: Value) -> tuple[Value, Value, Value]:
    """Append what a reflection makes of a column's head, its scale, and what its vector's tail is divided by.

    It is LAPACK's: where the tail is zero, and the head real, nothing is reflected and the scale is zero.
    """
    is_complex = head.type.dtype.is_complex
    real = to.parts(head)[0] if is_complex else head
    sizes = magnitude(to, tail) if is_complex else to.emit("Abs", tail)
    rank, shape = tail.type.rank, head.shape
    most = to.reshaped(to.reduced(sizes, "Max", (rank - 2, rank - 1)), shape)
    is_zero = to.emit("Compare", most, to.like(0, most), op="Equal")
    unit = to.emit("Select", is_zero, to.like(1, most), most)
    scaled = to.emit("Div", sizes, to.stretched(unit, sizes.shape))
    squares = to.reduced(to.emit("Mul", scaled, scaled), "Sum", (rank - 2, rank - 1))
    length = to.emit("Mul", unit, to.emit("Sqrt", to.reshaped(squares, shape)))
    whole = _hypotenuse(to, magnitude(to, head) if is_complex else to.emit("Abs", head), length)
    is_negative = to.emit("Compare", real, to.like(0, real), op="Less")
    beta = to.emit("Select", is_negative, whole, to.emit("Neg", whole))
    if is_complex:
        _, imaginary = to.parts(head)
        is_real = to.emit("Compare", imaginary, to.like(0, imaginary), op="Equal")
        is_zero = to.emit("And", is_zero, is_real)
    safe = to.emit("Select", is_zero, to.like(1, beta), beta)
    reflected = to.complex_of(beta, to.like(0, beta)) if is_complex else beta
    divided = to.complex_of(safe, to.like(0, safe)) if is_complex else safe
    scale = to.emit("Div", to.emit("Sub", reflected, head), divided)
    divisor = to.emit("Sub", head, reflected)
    return (
        to.emit("Select", is_zero, head, reflected),
        to.emit("Select", is_zero, to.like(0, head), scale),
        to.emit("Select", is_zero, to.like(1, head), divisor),
    )


def _hypotenuse(to: Composer, one: Value, other: Value) -> Value:
    most, least = to.emit("Maximum", one, other), to.emit("Minimum", one, other)
    is_zero = to.emit("Compare", most, to.like(0, most), op="Equal")
    ratio = to.emit("Div", least, to.emit("Select", is_zero, to.like(1, most), most))
    square = to.emit("Add", to.like(1, ratio), to.emit("Mul", ratio, ratio))
    return to.emit("Mul", most, to.emit("Sqrt", square))


def reflected(to: Composer, vectors: Value, scales: Value) -> Value:
    """Append the product of reflections, as far as it has columns: Q of `qr`'s factors, f[batch..., m, n]."""
    *batch, rows, columns = vectors.type.extents
    rank, count = vectors.type.rank, scales.type.extents[-1]
    down, across = _counts(to, rows, columns, rank)
    diagonal = to.emit(
        "Compare",
        to.stretched(down, (*down.shape[:-1], columns)),
        to.stretched(across, (*across.shape[:-2], rows, columns)),
        op="Equal",
    )
    unit = to.emit("Select", to.stretched(diagonal, vectors.shape), to.like(1, vectors), to.like(0, vectors))

    def step(number: Value, found: Value) -> Sequence[Value]:
        place = to.emit("Sub", scalar(to, count - 1), number)
        vector = taken(to, vectors, -1, place)
        vector = where(to, to.stretched(down, vector.shape), "Greater", place, vector)
        vector = where(to, to.stretched(down, vector.shape), "Equal", place, to.like(1, vector), vector)
        scale = to.reshaped(taken(to, scales, -1, place), (*batch, 1, 1))
        rest = _row(to, vector, found)
        return [
            to.emit("Sub", found, _outer(to, vector, to.emit("Mul", rest, to.stretched(scale, rest.shape))))
        ]

    (result,) = counted(to, count, [unit], step)
    return result
