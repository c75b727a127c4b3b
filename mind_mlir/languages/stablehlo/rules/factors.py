"""LU and QR factors of matrices, as LAPACK keeps them: both factors in one matrix.

LU factors come in blocks of columns, whose rows are exchanged before the products with the rest; so each
matrix of a batch is taken on its own. QR factors are made of a reflection for each column.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.stablehlo.rules.complex_numbers import magnitude
from mind_mlir.languages.stablehlo.rules.matrices import (
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
from mind_mlir.languages.stablehlo.rules.triangular import forward

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use

_BLOCK = 32


def lu(use: Use, matrix: Value) -> tuple[Value, Value, Value]:
    """Append the factors of ``P @ matrix``, the rows exchanged, counted from 1, and where one is zero.

    Returns:
        The factors, f[batch..., m, n], the lower one without its diagonal of ones; the rows, i32[batch...,
        min(m, n)]; i32[batch...], the first column whose pivot is zero, counted from 1, or 0.
    """
    *batch, rows, columns = matrix.type.extents
    count = math.prod(batch)
    flat = use.reshaped(matrix, (count, rows, columns))
    pivots = use.full(0, TensorType(DType.SI32, (count, min(rows, columns))))

    def each(number: Value, matrices: Value, found: Value) -> Sequence[Value]:
        one = use.reshaped(taken(use, matrices, -3, number), (rows, columns))
        factors, exchanged = _factored(use, one)
        factors = use.reshaped(factors, (1, rows, columns))
        exchanged = use.reshaped(exchanged, (1, min(rows, columns)))
        return replaced(use, matrices, factors, -3, number), replaced(use, found, exchanged, -2, number)

    if count == 1:
        factors, exchanged = _factored(use, use.reshaped(flat, (rows, columns)))
    else:
        factors, exchanged = counted(use, count, [flat, pivots], each)
    factors = use.reshaped(factors, (*batch, rows, columns))
    exchanged = use.reshaped(exchanged, (*batch, min(rows, columns)))
    return factors, exchanged, _zero_pivot(use, factors)


def _factored(use: Use, matrix: Value) -> tuple[Value, Value]:
    """Append the factors of one matrix, and the rows that were exchanged, counted from 1."""
    rows, columns = matrix.type.extents
    least = min(rows, columns)
    block = least if least <= 2 * _BLOCK else _BLOCK
    count = -(-least // block)
    wide = use.padded(
        matrix, (0, 0), (max(0, count * block - rows), max(0, count * block - columns)), (0, 0), 0
    )
    pivots = use.full(0, TensorType(DType.SI32, (count * block,)))
    down = use.emit("Iota", shape=(wide.type.extents[0], 1), dtype=DType.SI32, axis=0)
    across = use.emit("Iota", shape=(1, wide.type.extents[1]), dtype=DType.SI32, axis=1)

    def step(number: Value, found: Value, exchanged: Value) -> Sequence[Value]:
        first = use.emit("Mul", number, scalar(use, block))
        panel, order, chosen = _panel(use, taken(use, found, -1, first, block), first, rows)
        exchanged = replaced(use, exchanged, chosen, -1, first)
        if count == 1 and found.type.extents[1] == block:
            return panel, exchanged
        found = replaced(use, use.emit("Take", found, order), panel, -1, first)
        behind = use.emit("Add", first, scalar(use, block))
        corner = taken(use, panel, -2, first, block)
        known = taken(use, found, -2, first, block)
        upper = forward(use, corner, known, unit=True)
        is_right = use.emit("Compare", across, use.stretched(behind, across.shape), op="GreaterEqual")
        known = use.emit("Select", use.stretched(is_right, known.shape), upper, known)
        found = replaced(use, found, known, -2, first)
        is_below = use.emit("Compare", down, use.stretched(behind, down.shape), op="GreaterEqual")
        left = use.emit("Select", use.stretched(is_below, panel.shape), panel, use.like(0, panel))
        right = use.emit("Select", use.stretched(is_right, known.shape), known, use.like(0, known))
        return use.emit("Sub", found, times(use, left, right)), exchanged

    factors, exchanged = counted(use, count, [wide, pivots], step)
    return cut(use, factors, rows, columns), use.part(exchanged, 0, 0, least)


def _panel(use: Use, panel: Value, first: Value, rows: int) -> tuple[Value, Value, Value]:
    """Append the factors of a block of columns, the order in which it has the rows, and those exchanged.

    Args:
        use: Appends the operations.
        panel: f[m, block].
        first: The row of its first pivot.
        rows: How many of its rows are the matrix'; the others are never pivots of a column that has any.
    """
    height, block = panel.type.extents
    down = use.emit("Iota", shape=(height,), dtype=DType.SI32, axis=0)
    across = use.emit("Iota", shape=(1, block), dtype=DType.SI32, axis=1)
    chosen = use.full(0, TensorType(DType.SI32, (block,)))

    def step(number: Value, found: Value, order: Value, exchanged: Value) -> Sequence[Value]:
        place = use.emit("Add", first, number)
        column = use.reshaped(taken(use, found, -1, number), (height,))
        sizes = _sizes(use, column)
        least = use.like(-1, sizes)
        sizes = where(use, down, "Less", place, least, sizes)
        sizes = where(use, down, "Less", scalar(use, rows), sizes, least)
        best = use.emit("ArgMax", sizes, axis=0, keepdims=False, output_dtype=DType.SI32)
        best = use.emit("Maximum", best, place)  # where no row is left, the pivot is the padding's own
        found, order = (_exchanged(use, each, axis, place, best) for each, axis in ((found, -2), (order, -1)))
        row = taken(use, found, -2, place)
        pivot = taken(use, row, -1, number)
        is_zero = use.emit("Compare", pivot, use.like(0, pivot), op="Equal")
        divisor = use.emit("Select", is_zero, use.like(1, pivot), pivot)
        column = taken(use, found, -1, number)
        factor = use.emit("Div", column, use.stretched(divisor, column.shape))
        below = use.reshaped(down, (height, 1))
        factor = where(use, below, "Greater", place, factor)
        right = where(use, across, "Greater", number, row)
        column = where(use, below, "Greater", place, factor, column)
        found = use.emit("Sub", found, _outer(use, factor, right))
        best = use.emit("Add", best, scalar(use, 1))
        exchanged = replaced(use, exchanged, use.reshaped(best, (1,)), -1, number)
        return replaced(use, found, column, -1, number), order, exchanged

    panel, order, exchanged = counted(use, block, [panel, down, chosen], step)
    return panel, order, exchanged


def _sizes(use: Use, column: Value) -> Value:
    """Append what pivots are chosen by: of complex numbers their parts' sizes, as LAPACK does."""
    if not column.type.dtype.is_complex:
        return use.emit("Abs", column)
    return use.emit("Add", *(use.emit("Abs", part) for part in use.parts(column)))


def _exchanged(use: Use, value: Value, axis: int, one: Value, other: Value) -> Value:
    here, there = taken(use, value, axis, one), taken(use, value, axis, other)
    return replaced(use, replaced(use, value, there, axis, one), here, axis, other)


def _outer(use: Use, column: Value, row: Value) -> Value:
    shape = (*column.type.extents[:-1], row.type.extents[-1])
    return use.emit("Mul", use.stretched(column, shape), use.stretched(row, shape))


def _zero_pivot(use: Use, factors: Value) -> Value:
    """Append the first column whose pivot is zero, counted from 1; 0 where there is none."""
    rank, extents = factors.type.rank, factors.type.extents
    is_zero = use.emit("Compare", factors, use.like(0, factors), op="Equal")
    down, across = (counted_along(use, factors, axis) for axis in (-2, -1))
    on_diagonal = use.emit("And", is_zero, use.emit("Compare", down, across, op="Equal"))
    none = use.like(max(extents), down)
    first = use.reduced(use.emit("Select", on_diagonal, down, none), "Min", (rank - 2, rank - 1))
    following = use.emit("Add", first, use.like(1, first))
    return where(use, first, "Less", use.like(max(extents), first), following)


def qr(use: Use, matrix: Value) -> tuple[Value, Value]:
    """Append the factors of ``matrix``: R, with the reflections below it, and the scales of these.

    Returns:
        f[batch..., m, n], and f[batch..., min(m, n)].
    """
    *batch, rows, columns = matrix.type.extents
    count, rank = min(rows, columns), matrix.type.rank
    down, across = _counts(use, rows, columns, rank)

    def step(number: Value, found: Value, scales: Value) -> Sequence[Value]:
        column = taken(use, found, -1, number)
        head = taken(use, column, -2, number)
        tail = where(use, use.stretched(down, column.shape), "Greater", number, column)
        beta, scale, divisor = _reflection(use, head, tail)
        vector = use.emit("Div", tail, use.stretched(divisor, tail.shape))
        vector = where(use, use.stretched(down, vector.shape), "Equal", number, use.like(1, vector), vector)
        rest = where(
            use, use.stretched(across, (*batch, 1, columns)), "Greater", number, _row(use, vector, found)
        )
        weights = use.emit("Mul", rest, use.stretched(adjoint_numbers(use, scale), rest.shape))
        found = use.emit("Sub", found, _outer(use, vector, weights))
        column = where(use, use.stretched(down, column.shape), "Greater", number, vector, column)
        column = where(
            use, use.stretched(down, column.shape), "Equal", number, use.stretched(beta, column.shape), column
        )
        scale = use.reshaped(scale, (*batch, 1))
        return replaced(use, found, column, -1, number), replaced(use, scales, scale, -1, number)

    scales = use.full(0, TensorType(matrix.type.dtype, (*batch, count)))
    found, scales = counted(use, count, [matrix, scales], step)
    return found, scales


def _counts(use: Use, rows: int, columns: int, rank: int) -> tuple[Value, Value]:
    ones = (1,) * (rank - 2)
    down = use.emit("Iota", shape=(*ones, rows, 1), dtype=DType.SI32, axis=rank - 2)
    return down, use.emit("Iota", shape=(*ones, 1, columns), dtype=DType.SI32, axis=rank - 1)


def _row(use: Use, vector: Value, matrix: Value) -> Value:
    """Append the adjoint of a column times a matrix."""
    turned = adjoint_numbers(use, vector)
    rank = vector.type.rank
    return times(use, use.transposed(turned, (*range(rank - 2), rank - 1, rank - 2)), matrix)


def _reflection(use: Use, head: Value, tail: Value) -> tuple[Value, Value, Value]:
    """Append what a reflection makes of a column's head, its scale, and what its vector's tail is divided by.

    It is LAPACK's: where the tail is zero, and the head real, nothing is reflected and the scale is zero.
    """
    is_complex = head.type.dtype.is_complex
    real = use.parts(head)[0] if is_complex else head
    sizes = magnitude(use, tail) if is_complex else use.emit("Abs", tail)
    rank, shape = tail.type.rank, head.shape
    most = use.reshaped(use.reduced(sizes, "Max", (rank - 2, rank - 1)), shape)
    is_zero = use.emit("Compare", most, use.like(0, most), op="Equal")
    unit = use.emit("Select", is_zero, use.like(1, most), most)
    scaled = use.emit("Div", sizes, use.stretched(unit, sizes.shape))
    squares = use.reduced(use.emit("Mul", scaled, scaled), "Sum", (rank - 2, rank - 1))
    length = use.emit("Mul", unit, use.emit("Sqrt", use.reshaped(squares, shape)))
    whole = _hypotenuse(use, magnitude(use, head) if is_complex else use.emit("Abs", head), length)
    is_negative = use.emit("Compare", real, use.like(0, real), op="Less")
    beta = use.emit("Select", is_negative, whole, use.emit("Neg", whole))
    if is_complex:
        _, imaginary = use.parts(head)
        is_real = use.emit("Compare", imaginary, use.like(0, imaginary), op="Equal")
        is_zero = use.emit("And", is_zero, is_real)
    safe = use.emit("Select", is_zero, use.like(1, beta), beta)
    reflected = use.complex_of(beta, use.like(0, beta)) if is_complex else beta
    divided = use.complex_of(safe, use.like(0, safe)) if is_complex else safe
    scale = use.emit("Div", use.emit("Sub", reflected, head), divided)
    divisor = use.emit("Sub", head, reflected)
    return (
        use.emit("Select", is_zero, head, reflected),
        use.emit("Select", is_zero, use.like(0, head), scale),
        use.emit("Select", is_zero, use.like(1, head), divisor),
    )


def _hypotenuse(use: Use, one: Value, other: Value) -> Value:
    most, least = use.emit("Maximum", one, other), use.emit("Minimum", one, other)
    is_zero = use.emit("Compare", most, use.like(0, most), op="Equal")
    ratio = use.emit("Div", least, use.emit("Select", is_zero, use.like(1, most), most))
    square = use.emit("Add", use.like(1, ratio), use.emit("Mul", ratio, ratio))
    return use.emit("Mul", most, use.emit("Sqrt", square))


def reflected(use: Use, vectors: Value, scales: Value) -> Value:
    """Append the product of reflections, as far as it has columns: Q of `qr`'s factors, f[batch..., m, n]."""
    *batch, rows, columns = vectors.type.extents
    rank, count = vectors.type.rank, scales.type.extents[-1]
    down, across = _counts(use, rows, columns, rank)
    diagonal = use.emit(
        "Compare",
        use.stretched(down, (*down.shape[:-1], columns)),
        use.stretched(across, (*across.shape[:-2], rows, columns)),
        op="Equal",
    )
    unit = use.emit(
        "Select", use.stretched(diagonal, vectors.shape), use.like(1, vectors), use.like(0, vectors)
    )

    def step(number: Value, found: Value) -> Sequence[Value]:
        place = use.emit("Sub", scalar(use, count - 1), number)
        vector = taken(use, vectors, -1, place)
        vector = where(use, use.stretched(down, vector.shape), "Greater", place, vector)
        vector = where(use, use.stretched(down, vector.shape), "Equal", place, use.like(1, vector), vector)
        scale = use.reshaped(taken(use, scales, -1, place), (*batch, 1, 1))
        rest = _row(use, vector, found)
        return [
            use.emit(
                "Sub", found, _outer(use, vector, use.emit("Mul", rest, use.stretched(scale, rest.shape)))
            )
        ]

    (result,) = counted(use, count, [unit], step)
    return result
