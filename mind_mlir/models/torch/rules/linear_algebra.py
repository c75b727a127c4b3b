"""Factors of matrices, equations, determinants, eigenvalues and singular values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.builders.compositions import factors, reflections, spectra, triangular
from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.products import product
from mind_mlir.models.torch.rules.reductions import summed
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import cast, dtype_of, expanded, full, number, reshaped, select
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.composing import composed
from mind_mlir.tracing.control import scan
from mind_mlir.tracing.operators import common_shape, compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _adjoint(x: TracedArray) -> TracedArray:
    turned = x.swapaxes(-1, -2)
    if dtype_of(x).is_complex:
        return op("Complex", op("Real", turned), -op("Imag", turned))
    return turned


def _no_failures(x: TracedArray) -> TracedArray:
    return full(x.shape[:-2], 0, DType.SI32)


def _counted(x: TracedArray, axis: int) -> TracedArray:
    """Return the number of each element's row (axis -2) or column (axis -1)."""
    return op("Iota", shape=x.shape, dtype=DType.SI32, axis=x.ndim + axis)


def _half(x: TracedArray, relation: str) -> TracedArray:
    """Return the elements whose column and row compare so, and zeros in the place of others."""
    if not x.size:
        return x
    return select(compare(relation, _counted(x, -1), _counted(x, -2)), x, 0, dtype_of(x))


def _lower_with_ones(x: TracedArray) -> TracedArray:
    below = _half(x, "Less")
    if not x.size:
        return x
    return select(compare("Equal", _counted(x, -1), _counted(x, -2)), 1, below, dtype_of(x))


def _diagonal(x: TracedArray) -> TracedArray:
    return summed(_half(x, "Equal"), [x.ndim - 1], keepdim=False)


def _cut(x: TracedArray, rows: int, columns: int) -> TracedArray:
    return x[..., :rows, :columns]


def _alike(x: TracedArray, y: TracedArray) -> list[TracedArray]:
    """Return matrices with the same extents before the last two."""
    batch = common_shape([x.shape[:-2], y.shape[:-2]])
    return [expanded(each, (*batch, *each.shape[-2:])) for each in (x, y)]


def solved(
    matrix: TracedArray,
    right: TracedArray,
    *,
    upper: bool,
    left: bool = True,
    unit: bool = False,
    transposed: str = "NO_TRANSPOSE",
) -> TracedArray:
    """Return ``x`` of ``matrix @ x = right`` for a triangular matrix; of ``x @ matrix`` unless ``left``."""
    matrix, right = _alike(matrix, right)
    if not right.size or not matrix.size:
        return right
    how: dict[str, Any] = {"left_side": left, "lower": not upper, "unit": unit, "transposed": transposed}
    return composed(lambda to, *given: [triangular.triangular_solved(to, *given, **how)], matrix, right)[0]


def _old_solve_triangular(
    _: OperatorUse,
    right: TracedArray,
    matrix: TracedArray,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> list[TracedArray]:
    turned = "TRANSPOSE" if transpose else "NO_TRANSPOSE"
    return [solved(matrix, right, upper=upper, unit=unitriangular, transposed=turned), matrix]


def _cholesky(
    _: OperatorUse, x: TracedArray, *, upper: bool = False, check_errors: bool = False
) -> list[TracedArray]:
    if not x.size:
        return [x, _no_failures(x)]

    def append(to: Any, value: Any) -> list[Any]:
        factor = triangular.cholesky_of(to, value, lower=not upper)
        return [factor, triangular.failure(to, factor)]

    return composed(append, x)


def _cholesky_solved(
    _: OperatorUse, right: TracedArray, factor: TracedArray, upper: bool = False
) -> TracedArray:
    first, second = ("ADJOINT", "NO_TRANSPOSE") if upper else ("NO_TRANSPOSE", "ADJOINT")
    inner = solved(factor, right, upper=upper, transposed=first)
    return solved(factor, inner, upper=upper, transposed=second)


def identity_like(x: TracedArray) -> TracedArray:
    """Return matrices of the shape of ``x`` with ones on the diagonal."""
    return _lower_with_ones(full(x.shape, 0, dtype_of(x)))


def lu(x: TracedArray) -> list[TracedArray]:
    """Return both factors in one matrix, the rows that were exchanged, counted from 1, and failures."""
    if not x.size:
        least = min(x.shape[-2:])
        return [x, full((*x.shape[:-2], least), 0, DType.SI32), _no_failures(x)]
    return composed(factors.lu, x)


def _lu_factor(
    _: OperatorUse, x: TracedArray, *, pivot: bool = True, check_errors: bool = False
) -> list[TracedArray]:
    if not pivot:
        raise UnreadUse("it factors matrices without exchanging rows")
    return lu(x)


def _order_of(pivots: TracedArray, rows: int) -> TracedArray:
    """Return which row of a matrix each row of its factors is, from the rows that were exchanged in turn."""
    batch = pivots.shape[:-1]
    at = op("Iota", shape=(*batch, rows), dtype=DType.SI32, axis=len(batch))
    if not pivots.size:
        return at
    columns = pivots.transpose([pivots.ndim - 1, *range(pivots.ndim - 1)])
    steps = op("Iota", shape=columns.shape, dtype=DType.SI32, axis=0)

    def step(order: TracedArray, places: list[TracedArray]) -> tuple[TracedArray, TracedArray]:
        one, other = (op("ExpandDims", each, axes=[len(batch)]) for each in places)
        is_one, is_other = compare("Equal", at, one), compare("Equal", at, other)
        here, there = (
            select(chosen, order, 0, DType.SI32).sum([len(batch)], keepdims=True)
            for chosen in (is_one, is_other)
        )
        order = select(is_one, there, select(is_other, here, order, DType.SI32), DType.SI32)
        return order, one

    found, _ = scan(step, at, [steps, columns - number(1, DType.SI32)])
    return found


def _rows_in(x: TracedArray, order: TracedArray) -> TracedArray:
    """Return the rows of matrices in an order."""
    if not x.size:
        return x
    places = expanded(op("ExpandDims", order, axes=[order.ndim]), x.shape)
    return op("GatherElements", x, places, axis=x.ndim - 2)


def _inverse_of(order: TracedArray) -> TracedArray:
    return op("ArgSort", order, axis=order.ndim - 1, indices_dtype=DType.SI32) if order.size else order


def lu_solved(
    both: TracedArray, pivots: TracedArray, right: TracedArray, *, left: bool = True, adjoint: bool = False
) -> TracedArray:
    """Return ``x`` of ``matrix @ x = right``, or with its adjoint, or of ``x @ matrix``, by LU factors."""
    if not left:
        return _adjoint(lu_solved(both, pivots, _adjoint(right), adjoint=not adjoint))
    both, right = _alike(both, right)
    pivots = expanded(pivots, (*both.shape[:-2], pivots.shape[-1]))
    order = _order_of(pivots, both.shape[-1])
    if not adjoint:
        inner = solved(both, _rows_in(right, order), upper=False, unit=True)
        return solved(both, inner, upper=True)
    inner = solved(both, right, upper=True, transposed="ADJOINT")
    found = solved(both, inner, upper=False, unit=True, transposed="ADJOINT")
    return _rows_in(found, _inverse_of(order))


def _factors(both: TracedArray, pivots: TracedArray) -> list[TracedArray]:
    """Return the permutation and the factors, ``P @ L @ U``."""
    rows, columns = both.shape[-2:]
    least = min(rows, columns)
    order = _inverse_of(_order_of(pivots, rows))
    square = full((*both.shape[:-2], rows, rows), 0, dtype_of(both))
    one = compare("Equal", _counted(square, -1), op("ExpandDims", order, axes=[order.ndim]))
    lower, upper = _cut(both, rows, least), _cut(both, least, columns)
    return [one.astype(dtype_of(both)), _lower_with_ones(lower), _half(upper, "GreaterEqual")]


def _lu(_: OperatorUse, x: TracedArray, *, pivot: bool = True) -> list[TracedArray]:
    if not pivot or not x.size:
        raise UnreadUse("it factors matrices without exchanging rows, or without elements")
    return _factors(*lu(x)[:2])


def _lu_unpack(
    _: OperatorUse, both: TracedArray, pivots: TracedArray, data: bool = True, permutation: bool = True
) -> list[TracedArray]:
    if not both.size:
        raise UnreadUse("it takes factors without elements apart")
    nothing = full((0,), 0, dtype_of(both))
    order, lower, upper = _factors(both, pivots)
    return [order if permutation else nothing, *((lower, upper) if data else (nothing, nothing))]


def _factored(x: TracedArray, *, is_contiguous: bool) -> list[TracedArray]:
    """Return factors as gradients of determinants expect them: of the transpose of real matrices by rows."""
    return lu(x.swapaxes(-1, -2) if is_contiguous and not dtype_of(x).is_complex else x)


def _solve(
    _: OperatorUse,
    x: TracedArray,
    right: TracedArray,
    *,
    left: bool = True,
    check_errors: bool = False,
) -> list[TracedArray]:
    # A vector for each matrix, rather than a matrix.
    is_vector = right.ndim == 1 or (right.ndim == x.ndim - 1 and right.shape == x.shape[:-1])
    columns = op("ExpandDims", right, axes=[right.ndim]) if is_vector else right
    both, pivots, failed = lu(x)
    found = lu_solved(both, pivots, columns, left=left)
    return [found.squeeze(-1) if is_vector else found, both, pivots, failed]


def _inverse(_: OperatorUse, x: TracedArray, *, check_errors: bool = False) -> list[TracedArray]:
    both, pivots, failed = lu(x)
    return [lu_solved(both, pivots, identity_like(x)), failed]


def _swaps(pivots: TracedArray, dtype: DType) -> TracedArray:
    """Return -1 where an odd number of rows was exchanged, else 1."""
    if not pivots.size:
        return full(pivots.shape[:-1], 1, dtype)
    own = op("Iota", shape=pivots.shape, dtype=DType.SI32, axis=pivots.ndim - 1) + number(1, DType.SI32)
    count = compare("NotEqual", pivots, own).astype(DType.SI32).sum([pivots.ndim - 1])
    return select(compare("Equal", count & number(1, DType.SI32), number(0, DType.SI32)), 1, -1, dtype)


def _product_of(x: TracedArray) -> TracedArray:
    if not x.size:
        return full(x.shape[:-1], 1, dtype_of(x))
    if not dtype_of(x).is_complex:
        return op("ReduceProd", x, axes=[x.ndim - 1], keepdims=False)
    found = x[..., 0]
    for place in range(1, x.shape[-1]):
        found = found * x[..., place]
    return found


def _determinant(_: OperatorUse, x: TracedArray, *, is_contiguous: bool = True) -> list[TracedArray]:
    both, pivots, _failed = _factored(x, is_contiguous=is_contiguous)
    return [_product_of(_diagonal(both)) * _swaps(pivots, dtype_of(x)), both, pivots]


def _sign_and_logarithm(_: OperatorUse, x: TracedArray, *, is_contiguous: bool = True) -> list[TracedArray]:
    dtype = dtype_of(x)
    if dtype.is_complex:
        raise UnreadUse("it takes the sign of complex determinants")
    both, pivots, _failed = _factored(x, is_contiguous=is_contiguous)
    diagonal = _diagonal(both)
    zero = number(0, dtype)
    negative, none = (compare(relation, diagonal, zero) for relation in ("Less", "Equal"))
    signs = select(none, 0, select(negative, -1, 1, dtype), dtype)
    size = summed(op("Log", abs(diagonal)), [diagonal.ndim - 1], keepdim=False)
    return [_product_of(signs) * _swaps(pivots, dtype), size, both, pivots]


def _qr(_: OperatorUse, x: TracedArray, mode: str = "reduced") -> list[TracedArray]:
    rows, columns = x.shape[-2:]
    if not x.size:
        raise UnreadUse("it factors matrices without elements")
    least = min(rows, columns)
    count = rows if mode == "complete" else least

    def append(to: Any, value: Any) -> list[Any]:
        both, scales = reflections.qr(to, value)
        zeros = [0] * x.ndim
        vectors = to.part(both, x.ndim - 1, 0, least)
        wide = to.padded(vectors, zeros, [*zeros[:-1], max(0, count - least)], zeros, 0)
        return [both, reflections.reflected(to, wide, scales)]

    both, q = composed(append, x)
    r = _half(_cut(both, count, columns), "GreaterEqual")
    return [full((0,), 0, dtype_of(x)) if mode == "r" else q, r]


def _reflections(_: OperatorUse, x: TracedArray) -> list[TracedArray]:
    if not x.size:
        raise UnreadUse("it factors matrices without elements")
    return composed(reflections.qr, x)


def _reflected(_: OperatorUse, vectors: TracedArray, scales: TracedArray) -> TracedArray:
    if not vectors.size or not scales.size:
        return identity_like(vectors)
    return composed(lambda to, *given: [reflections.reflected(to, *given)], vectors, scales)[0]


def _eigh(_: OperatorUse, x: TracedArray, half: str = "L", vectors: bool = True) -> list[TracedArray]:
    if not x.size:
        return [full(x.shape[:-1], 0, dtype_of(x)), x]
    found = composed(lambda to, value: spectra.eigh(to, value, lower=half.upper() == "L"), x)
    return [found[1], found[0] if vectors else full((0,), 0, dtype_of(x))]


def _svd(
    to: OperatorUse, x: TracedArray, full_matrices: bool = False, vectors: bool = True, **_: Any
) -> list[TracedArray]:
    if not x.size:
        raise UnreadUse("it takes singular values of matrices without elements")
    found = composed(lambda to, value: spectra.svd(to, value, full=full_matrices, vectors=vectors), x)
    if not vectors:
        nothing = full((0,), 0, dtype_of(x))
        return [nothing, found[1], nothing]
    return list(found[:3])


def _eig(_: OperatorUse, x: TracedArray) -> list[TracedArray]:
    if not x.size or dtype_of(x).is_complex:
        raise UnreadUse("it takes eigenvalues of complex matrices, or of those without elements")
    real, imaginary, _left, right, _failed = composed(lambda to, value: spectra.eig(to, value, left=False), x)
    return [op("Complex", real, imaginary), right]


def _pseudo_inverse(
    to: OperatorUse,
    x: TracedArray,
    *,
    atol: TracedArray | None = None,
    rtol: TracedArray | None = None,
    hermitian: bool = False,
) -> TracedArray:
    if not x.size:
        return x.swapaxes(-1, -2)
    dtype = dtype_of(x)
    if dtype.is_complex:
        raise UnreadUse("it inverts complex matrices that are not square")
    if hermitian:
        values, right = _eigh(to, x)
        left = right
    else:
        left, values, turned = _svd(to, x)
        right = _adjoint(turned)
    size = abs(values)
    least = size.max([size.ndim - 1], keepdims=True)
    epsilon = float(np.finfo(dtype.numpy).eps) * max(x.shape[-2:])
    share = number(0.0 if atol is not None and rtol is None else epsilon, dtype) if rtol is None else rtol
    limit = least * _as_column(cast(share, dtype))
    if atol is not None:
        limit = op("Maximum", limit, _as_column(cast(atol, dtype)))
    inverse = select(compare("Greater", size, limit), number(1, dtype) / values, 0, dtype)
    scaled = right * op("ExpandDims", inverse, axes=[inverse.ndim - 1])
    return product(scaled, _adjoint(left))


def _as_column(x: TracedArray) -> TracedArray:
    return reshaped(x, (*x.shape, 1)) if x.ndim else x


RULES: Mapping[str, Rule] = {
    "aten.linalg_cholesky_ex": _cholesky,
    "aten.cholesky": lambda to, x, upper=False: _cholesky(to, x, upper=upper)[0],
    "aten.cholesky_solve": _cholesky_solved,
    "aten.cholesky_inverse": lambda to, factor, upper=False: _cholesky_solved(
        to, identity_like(factor), factor, upper
    ),
    "aten.linalg_solve_triangular": lambda _, matrix, right, *, upper, left=True, unitriangular=False: solved(
        matrix, right, upper=upper, left=left, unit=unitriangular
    ),
    "aten.triangular_solve": _old_solve_triangular,
    "aten.linalg_lu_factor_ex": _lu_factor,
    "aten.linalg_lu_solve": lambda _, both, pivots, right, *, left=True, adjoint=False: lu_solved(
        both, pivots, right, left=left, adjoint=adjoint
    ),
    "aten.linalg_lu": _lu,
    "aten.lu_unpack": _lu_unpack,
    "aten._linalg_solve_ex": _solve,
    "aten.linalg_inv_ex": _inverse,
    "aten._linalg_det": _determinant,
    "aten._linalg_slogdet": _sign_and_logarithm,
    "aten.linalg_qr": _qr,
    "aten.geqrf": _reflections,
    "aten.linalg_householder_product": _reflected,
    "aten._linalg_eigh": _eigh,
    "aten.linalg_eig": _eig,
    "aten._linalg_svd": _svd,
    "aten.linalg_pinv.atol_rtol_tensor": _pseudo_inverse,
}
