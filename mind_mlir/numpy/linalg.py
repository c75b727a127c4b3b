"""Factors of matrices and equations with these; axes before the last two are batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.builders.compositions import factors, triangular
from mind_mlir.ir.types import DType
from mind_mlir.numpy.arrays import filled, floats, op, stretched, together, traced
from mind_mlir.numpy.assembling import diagonal
from mind_mlir.numpy.calling import callable_anywhere, defined_in
from mind_mlir.numpy.elementwise import absolute
from mind_mlir.numpy.shaping import diagonals
from mind_mlir.support import argument_checks
from mind_mlir.tracing.composing import composed
from mind_mlir.tracing.operators import choose, common_shape, compare
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike, Axes
    from mind_mlir.tracing.array import TracedArray

_KEPT = (DType.F32, DType.F64, DType.CF32, DType.CF64)


@callable_anywhere
def cholesky(a: ArrayLike, /, *, upper: bool = False) -> Array:
    """Return the lower factor of positive definite matrices, or the ``upper`` one; NaN where they are not."""
    (x,) = _matrices(a)
    lower = not argument_checks.flag(upper, "upper")
    return composed(lambda to, value: [triangular.cholesky_of(to, value, lower=lower)], x)[0]


@callable_anywhere
def solve_triangular(
    a: ArrayLike, b: ArrayLike, /, *, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """Return ``x`` of ``a @ x = b``, where only the lower or the upper half of ``a`` counts: as scipy's."""
    x, y = _matrices(a, b)
    matrix, right = _alike(x, y)
    lower, unit = argument_checks.flag(lower, "lower"), argument_checks.flag(unit_diagonal, "unit_diagonal")
    found = _solved(matrix, right, lower=lower, unit=unit)
    return found[..., 0] if y.ndim == 1 else found


@callable_anywhere
def solve(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Return ``x`` of ``a @ x = b``; where there is none, infinities or NaN."""
    x, y = _matrices(a, b)
    matrix, right = _alike(x, y)
    size = x.shape[-1]
    if not right.size:
        return right[..., 0] if y.ndim == 1 else right
    upper, _ = _factors(op("Concat", matrix, right, axis=matrix.ndim - 1))
    found = _solved(upper[..., :size], upper[..., size:], lower=False, unit=False)
    return found[..., 0] if y.ndim == 1 else found


@callable_anywhere
def inv(a: ArrayLike, /) -> Array:
    """Return the inverses of matrices; where there is none, infinities or NaN."""
    (x,) = _matrices(a)
    found: TracedArray = solve(x, (diagonals(x.shape[-1], x.shape[-1]) == 0).astype(x.dtype))
    return found


@callable_anywhere
def det(a: ArrayLike, /) -> Array:
    """Return the determinants of matrices."""
    (x,) = _matrices(a)
    if not x.size:
        return filled(x.shape[:-2], 1, x.value.type.dtype)
    upper, exchanged = _factors(x)
    here = op("Iota", shape=exchanged.shape, dtype="i32", axis=exchanged.ndim - 1) + 1
    signs = choose(compare("Equal", exchanged, here), 1, -1).prod(-1).astype(x.dtype)
    return traced(diagonal(upper, 0, -2, -1)).prod(-1) * signs


@callable_anywhere
def norm(
    x: ArrayLike,
    /,
    ord: float | str | None = None,  # noqa: A002 -- numpy's name
    axis: Axes = None,
    *,
    keepdims: bool = False,
) -> Array:
    """Return the norm of vectors, or of all elements: the root of the sum of squares if ``ord`` is not given.

    Args:
        x: The array.
        ord: 2, 1 or an infinity for norms of vectors along one axis; ``"fro"`` for that of matrices.
        axis: The axes to reduce; None for all.
        keepdims: Whether the axes stay with extent 1.
    """
    sizes = traced(absolute(floats(x)))
    rank = sizes.ndim if axis is None else len(axes_of(axis, sizes.ndim))
    wanted = (None, "fro") if rank == 2 else (None, 2) if rank != 1 else (None, 2, 1, math.inf, -math.inf)
    if ord not in wanted:
        raise ValueError(f"ord must be one of {', '.join(map(repr, wanted))} for {rank} axes, not {ord!r}")
    if ord == 1:
        return sizes.sum(axis, keepdims=keepdims)
    if ord in (math.inf, -math.inf):
        return (sizes.max if ord == math.inf else sizes.min)(axis, keepdims=keepdims)
    return op("Sqrt", (sizes * sizes).sum(axis, keepdims=keepdims))


def _factors(matrix: TracedArray) -> list[TracedArray]:
    """Return the factors of matrices with their rows exchanged, and which ones were, counted from 1."""
    return list(composed(lambda to, value: list(factors.lu(to, value)[:2]), matrix))


def _matrices(*arrays: ArrayLike) -> list[TracedArray]:
    """Return arrays of a dtype that equations are solved in, of which the first are matrices.

    Raises:
        ValueError: They are not, or not square.
    """
    found = together(*arrays)
    matrix = found[0]
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"square matrices are wanted, not an array of shape {matrix.shape}")
    kept = matrix.value.type.dtype in _KEPT
    return found if kept else [each.astype(DType.F64) for each in found]


def _alike(matrix: TracedArray, right: TracedArray) -> tuple[TracedArray, TracedArray]:
    """Return a matrix and what is right of it, a vector as a column, with the same batches."""
    right = right.reshape((-1, 1)) if right.ndim == 1 else right
    batch: Sequence[int] = common_shape([matrix.shape[:-2], right.shape[:-2]])
    return stretched(matrix, (*batch, *matrix.shape[-2:])), stretched(right, (*batch, *right.shape[-2:]))


def _solved(matrix: TracedArray, right: TracedArray, *, lower: bool, unit: bool) -> TracedArray:
    if not right.size:
        return right
    how: dict[str, Any] = {"left_side": True, "lower": lower, "unit": unit, "transposed": "NO_TRANSPOSE"}
    return composed(lambda to, *given: [triangular.triangular_solved(to, *given, **how)], matrix, right)[0]


def __dir__() -> list[str]:
    return defined_in(globals())
