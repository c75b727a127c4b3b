"""Cholesky factors, and equations with triangular matrices: in blocks, so that most of it is products.

What has been found so far stands in a matrix that is zero elsewhere. So each block takes a product with all
of it, of one size whatever the block: two to six times the arithmetic of an algorithm whose products shrink,
but one loop of one body, at the speed of large products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.matrices import (
    adjoint_numbers,
    counted,
    counted_along,
    cut,
    padded_to,
    replaced,
    scalar,
    swapped,
    taken,
    times,
    where,
)
from mind_mlir.languages.stablehlo.rules.use import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use

#: The columns of a block; matrices of no more than twice as many are one.
_BLOCK = 32


def _block(size: int) -> int:
    return size if size <= 2 * _BLOCK else _BLOCK


def cholesky(use: Use, matrix: Value) -> Value:
    """Append the lower factor, with zeros above; NaN where there is none. Only the lower half counts."""
    *_, size, _ = matrix.type.extents
    block = _block(size)
    count = -(-size // block)
    wide = padded_to(use, matrix, count * block, count * block)

    def step(number: Value, found: Value) -> Sequence[Value]:
        first = use.emit("Mul", number, scalar(use, block))
        columns = taken(use, wide, -1, first, block)
        if count > 1:
            known = times(use, found, taken(use, found, -2, first, block), turned=True)
            columns = use.emit("Sub", columns, known)
        return [replaced(use, found, _panel(use, columns, first), -1, first)]

    (result,) = counted(use, count, [use.like(0, wide)], step)
    return cut(use, result, size, size)


def _panel(use: Use, columns: Value, first: Value) -> Value:
    """Append the factor's columns from those of the matrix; their first is the matrix' column ``first``."""
    rows = counted_along(use, use.part(columns, columns.type.rank - 1, 0, 1), -2)

    def step(number: Value, found: Value) -> Sequence[Value]:
        place = use.emit("Add", first, number)
        known = times(use, found, taken(use, found, -2, place), turned=True)
        column = use.emit("Sub", taken(use, columns, -1, number), known)
        pivot = taken(use, column, -2, place)
        root = _root(use, pivot)
        column = use.emit("Div", column, use.stretched(root, column.shape))
        column = where(use, rows, "GreaterEqual", place, column)
        column = where(use, rows, "Equal", place, use.stretched(root, column.shape), column)
        return [replaced(use, found, column, -1, number)]

    (result,) = counted(use, columns.type.extents[-1], [use.like(0, columns)], step)
    return result


def _root(use: Use, pivot: Value) -> Value:
    """Append the square root of positive numbers, which have no imaginary part; NaN of others."""
    real = use.parts(pivot)[0] if pivot.type.dtype.is_complex else pivot
    is_positive = use.emit("Compare", real, use.like(0, real), op="Greater")
    root = use.emit("Sqrt", use.emit("Select", is_positive, real, use.like(float("nan"), real)))
    return use.complex_of(root, use.like(0, root)) if pivot.type.dtype.is_complex else root


def solved(use: Use, matrix: Value, right: Value, *, unit: bool) -> Value:
    """Append ``x`` of ``matrix @ x = right``; only the lower half of ``matrix`` is looked at.

    Args:
        use: Appends the operations.
        matrix: f[batch..., n, n].
        right: f[batch..., n, m].
        unit: Whether its diagonal is taken as ones.
    """
    *_, size, width = right.type.extents
    block = _block(size)
    count = -(-size // block)
    lower = padded_to(use, _lower(use, matrix), count * block, count * block)
    high = [0] * right.type.rank
    high[-2] = count * block - size
    wide = use.padded(right, [0] * right.type.rank, high, [0] * right.type.rank, 0)

    def step(number: Value, found: Value) -> Sequence[Value]:
        first = use.emit("Mul", number, scalar(use, block))
        rows = taken(use, lower, -2, first, block)
        wanted = taken(use, wide, -2, first, block)
        if count > 1:
            wanted = use.emit("Sub", wanted, times(use, rows, found))
        return [
            replaced(
                use, found, forward(use, taken(use, rows, -1, first, block), wanted, unit=unit), -2, first
            )
        ]

    (result,) = counted(use, count, [use.like(0, wide)], step)
    return cut(use, result, size, width)


def forward(use: Use, matrix: Value, right: Value, *, unit: bool) -> Value:
    """Append ``x`` of ``matrix @ x = right``, a row after the other."""

    def step(number: Value, found: Value) -> Sequence[Value]:
        row = taken(use, matrix, -2, number)
        numbers = use.emit("Sub", taken(use, right, -2, number), times(use, row, found))
        if not unit:
            numbers = use.emit("Div", numbers, use.stretched(taken(use, row, -1, number), numbers.shape))
        return [replaced(use, found, numbers, -2, number)]

    (result,) = counted(use, right.type.extents[-2], [use.like(0, right)], step)
    return result


def _lower(use: Use, matrix: Value) -> Value:
    down, across = (counted_along(use, matrix, axis) for axis in (-2, -1))
    return where(use, down, "GreaterEqual", across, matrix)


def triangular_solved(
    use: Use, matrix: Value, right: Value, *, left_side: bool, lower: bool, unit: bool, transposed: str
) -> Value:
    """Append ``x`` of ``op(matrix) @ x = right``, or of ``x @ op(matrix) = right``.

    Args:
        use: Appends the operations.
        matrix: f[batch..., n, n].
        right: f[batch..., n, m], or f[batch..., m, n].
        left_side: Whether the matrix stands left of ``x``.
        lower: Whether its lower half is looked at, else the upper one.
        unit: Whether its diagonal is taken as ones.
        transposed: ``op``: ``NO_TRANSPOSE``, ``TRANSPOSE`` or ``ADJOINT``.
    """
    if transposed == "ADJOINT":
        matrix = adjoint_numbers(use, matrix)
    if (transposed == "NO_TRANSPOSE") != left_side:
        matrix, lower = swapped(use, matrix), not lower
    right = right if left_side else swapped(use, right)
    rank = matrix.type.rank
    if not lower:  # turned round, it is lower
        matrix, right = use.reversed(matrix, (rank - 2, rank - 1)), use.reversed(right, (rank - 2,))
    found = solved(use, matrix, right, unit=unit)
    found = found if lower else use.reversed(found, (rank - 2,))
    return found if left_side else swapped(use, found)


def cholesky_of(use: Use, matrix: Value, *, lower: bool) -> Value:
    """Append the lower or the upper factor, from the half of the matrix of that name."""
    if 0 in matrix.shape:
        return matrix
    if lower:
        return cholesky(use, matrix)
    adjoint = adjoint_numbers(use, swapped(use, matrix))
    return adjoint_numbers(use, swapped(use, cholesky(use, adjoint)))


def _cholesky(use: Use) -> Value:
    return cholesky_of(use, use.operands[0], lower=use.flag("lower"))


def _triangular_solve(use: Use) -> Value:
    matrix, right = use.operands
    if 0 in right.shape:
        return right
    return triangular_solved(
        use,
        matrix,
        right,
        left_side=use.flag("left_side"),
        lower=use.flag("lower"),
        unit=use.flag("unit_diagonal"),
        transposed=use.keyword("transpose_a", "NO_TRANSPOSE"),
    )


def failure(use: Use, factor: Value) -> Value:
    """Append which leading minor of a matrix is not positive, counted from 1, or 0, as LAPACK does."""
    *batch, size, _ = factor.type.extents
    real = use.parts(factor)[0] if factor.type.dtype.is_complex else factor
    down, across = (counted_along(use, real, axis) for axis in (-2, -1))
    rank = factor.type.rank
    diagonal = use.reduced(where(use, down, "Equal", across, real), "Sum", (rank - 1,))
    is_none = use.emit("Compare", diagonal, diagonal, op="NotEqual")
    numbers = use.emit("Iota", shape=(*batch, size), dtype=DType.SI32, axis=rank - 2)
    late = use.like(size, numbers)
    first = use.reduced(use.emit("Select", is_none, numbers, late), "Min", (rank - 2,))
    fails = use.emit("Compare", first, use.like(size, first), op="Less")
    following = use.emit("Add", first, use.like(1, first))
    return use.emit("Select", fails, following, use.like(0, first))


RULES: Mapping[str, Rule] = {
    "stablehlo.cholesky": Rule(_cholesky),
    "stablehlo.triangular_solve": Rule(_triangular_solve),
}
