"""Cholesky factors, and equations with triangular matrices: in blocks, so that most of it is products.

What has been found so far stands in a matrix that is zero elsewhere. So each block takes a product with all
of it, of one size whatever the block: two to six times the arithmetic of an algorithm whose products shrink,
but one loop of one body, at the speed of large products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions.matrices import (
    adjoint_numbers,
    block_of,
    counted,
    counted_along,
    cut,
    padded_to,
    replaced,
    scalar,
    staged,
    swapped,
    taken,
    times,
    where,
)
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value


def cholesky(to: Composer, matrix: Value, *, lower: bool) -> Value:
    """Append the lower or the upper factor of a Hermitian matrix, from the half of that name, else zeros.

    NaN where there is none. What loops make is the upper one, whose rows lie in memory as products want them.
    """
    *_, size, _ = matrix.type.extents
    block = block_of(size)
    count = -(-size // block)
    matrix = adjoint_numbers(to, swapped(to, matrix)) if lower else matrix
    wide = padded_to(to, matrix, count * block, count * block)

    def step(number: Value, found: Value) -> Sequence[Value]:
        first = to.emit("Mul", number, scalar(to, block))
        rows = taken(to, wide, -2, first, block)
        if count > 1:
            above = adjoint_numbers(to, swapped(to, taken(to, found, -1, first, block)))
            rank, width = found.type.rank, found.type.extents[-1]

            def known(start: int, end: int) -> Value:
                left = to.part(above, rank - 1, 0, end * block)
                right = to.part(to.part(found, rank - 2, 0, end * block), rank - 1, start * block, width)
                zeros, low = [0] * rank, [*[0] * (rank - 1), start * block]
                return to.padded(times(to, left, right), low, zeros, zeros, 0)

            rows = to.emit("Sub", rows, staged(to, number, count, known))
        return [replaced(to, found, _panel(to, rows, first), -2, first)]

    (result,) = counted(to, count, [to.like(0, wide)], step)
    result = adjoint_numbers(to, swapped(to, result)) if lower else result
    return cut(to, result, size, size)  # a transposition of a part would copy that


def _panel(to: Composer, rows: Value, first: Value) -> Value:
    """Append the factor's rows from those of the matrix; their first is the matrix' row ``first``."""
    across = counted_along(to, to.part(rows, rows.type.rank - 2, 0, 1), -1)

    def step(number: Value, found: Value) -> Sequence[Value]:
        place = to.emit("Add", first, number)
        above = adjoint_numbers(to, swapped(to, taken(to, found, -1, place)))
        row = to.emit("Sub", taken(to, rows, -2, number), times(to, above, found))
        root = to.stretched(_root(to, taken(to, row, -1, place)), row.shape)
        row = where(to, across, "Greater", place, to.emit("Div", row, root))
        return [replaced(to, found, where(to, across, "Equal", place, root, row), -2, number)]

    (result,) = counted(to, rows.type.extents[-2], [to.like(0, rows)], step)
    return result


def _root(to: Composer, pivot: Value) -> Value:
    """Append the square root of positive numbers, which have no imaginary part; NaN of others."""
    real = to.parts(pivot)[0] if pivot.type.dtype.is_complex else pivot
    is_positive = to.emit("Compare", real, to.like(0, real), op="Greater")
    root = to.emit("Sqrt", to.emit("Select", is_positive, real, to.like(float("nan"), real)))
    return to.complex_of(root, to.like(0, root)) if pivot.type.dtype.is_complex else root


def solved(to: Composer, matrix: Value, right: Value, *, unit: bool) -> Value:
    """Append ``x`` of ``matrix @ x = right``; only the lower half of ``matrix`` is looked at.

    Args:
        to: Appends the operations.
        matrix: f[batch..., n, n].
        right: f[batch..., n, m].
        unit: Whether its diagonal is taken as ones.
    """
    *_, size, width = right.type.extents
    block = block_of(size)
    count = -(-size // block)
    lower = padded_to(to, _lower(to, matrix), count * block, count * block)
    high = [0] * right.type.rank
    high[-2] = count * block - size
    wide = to.padded(right, [0] * right.type.rank, high, [0] * right.type.rank, 0)

    def step(number: Value, found: Value) -> Sequence[Value]:
        first = to.emit("Mul", number, scalar(to, block))
        rows = taken(to, lower, -2, first, block)
        wanted = taken(to, wide, -2, first, block)
        if count > 1:
            wanted = to.emit("Sub", wanted, times(to, rows, found))
        return [
            replaced(to, found, forward(to, taken(to, rows, -1, first, block), wanted, unit=unit), -2, first)
        ]

    (result,) = counted(to, count, [to.like(0, wide)], step)
    return cut(to, result, size, width)


def forward(to: Composer, matrix: Value, right: Value, *, unit: bool) -> Value:
    """Append ``x`` of ``matrix @ x = right``, a row after the other."""

    def step(number: Value, found: Value) -> Sequence[Value]:
        row = taken(to, matrix, -2, number)
        numbers = to.emit("Sub", taken(to, right, -2, number), times(to, row, found))
        if not unit:
            numbers = to.emit("Div", numbers, to.stretched(taken(to, row, -1, number), numbers.shape))
        return [replaced(to, found, numbers, -2, number)]

    (result,) = counted(to, right.type.extents[-2], [to.like(0, right)], step)
    return result


def _lower(to: Composer, matrix: Value) -> Value:
    down, across = (counted_along(to, matrix, axis) for axis in (-2, -1))
    return where(to, down, "GreaterEqual", across, matrix)


def triangular_solved(
    to: Composer, matrix: Value, right: Value, *, left_side: bool, lower: bool, unit: bool, transposed: str
) -> Value:
    """Append ``x`` of ``op(matrix) @ x = right``, or of ``x @ op(matrix) = right``.

    Args:
        to: Appends the operations.
        matrix: f[batch..., n, n].
        right: f[batch..., n, m], or f[batch..., m, n].
        left_side: Whether the matrix stands left of ``x``.
        lower: Whether its lower half is looked at, else the upper one.
        unit: Whether its diagonal is taken as ones.
        transposed: ``op``: ``NO_TRANSPOSE``, ``TRANSPOSE`` or ``ADJOINT``.
    """
    if transposed == "ADJOINT":
        matrix = adjoint_numbers(to, matrix)
    if (transposed == "NO_TRANSPOSE") != left_side:
        matrix, lower = swapped(to, matrix), not lower
    right = right if left_side else swapped(to, right)
    rank = matrix.type.rank
    if not lower:  # turned round, it is lower
        matrix, right = to.reversed(matrix, (rank - 2, rank - 1)), to.reversed(right, (rank - 2,))
    found = solved(to, matrix, right, unit=unit)
    found = found if lower else to.reversed(found, (rank - 2,))
    return found if left_side else swapped(to, found)


def cholesky_of(to: Composer, matrix: Value, *, lower: bool) -> Value:
    """Append the lower or the upper factor, from the half of the matrix of that name."""
    return matrix if 0 in matrix.shape else cholesky(to, matrix, lower=lower)


def failure(to: Composer, factor: Value) -> Value:
    """Append which leading minor of a matrix is not positive, counted from 1, or 0, as LAPACK does."""
    *batch, size, _ = factor.type.extents
    real = to.parts(factor)[0] if factor.type.dtype.is_complex else factor
    down, across = (counted_along(to, real, axis) for axis in (-2, -1))
    rank = factor.type.rank
    diagonal = to.reduced(where(to, down, "Equal", across, real), "Sum", (rank - 1,))
    is_none = to.emit("Compare", diagonal, diagonal, op="NotEqual")
    numbers = to.emit("Iota", shape=(*batch, size), dtype=DType.SI32, axis=rank - 2)
    late = to.like(size, numbers)
    first = to.reduced(to.emit("Select", is_none, numbers, late), "Min", (rank - 2,))
    fails = to.emit("Compare", first, to.like(size, first), op="Less")
    following = to.emit("Add", first, to.like(1, first))
    return to.emit("Select", fails, following, to.like(0, first))
