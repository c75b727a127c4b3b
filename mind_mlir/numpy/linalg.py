"""Factors of matrices and equations with these; axes before the last two are batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.builders.compositions import triangular
from mind_mlir.ir.types import DType
from mind_mlir.numpy.arrays import stretched, together
from mind_mlir.numpy.calling import callable_anywhere
from mind_mlir.support import argument_checks
from mind_mlir.tracing.composing import composed
from mind_mlir.tracing.operators import common_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.numpy.arrays import Array, ArrayLike
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
