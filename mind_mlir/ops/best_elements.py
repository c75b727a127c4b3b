"""The greatest or the least element of an axis, and where it lies, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import Dim, DType, TensorType
from mind_mlir.ops.accumulators import default_accumulator, identity_number
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.reductions import reduced_shape

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext


def fits_i32(extent: Dim) -> bool:
    """Return whether i32 has all indices of an axis of ``extent``, and that itself."""
    return not isinstance(extent, int) or extent < 2**31


def place_of_best(
    context: LoweringContext, source: TensorType, axis: int, dtype: DType, *, least: bool = False
) -> Any:
    """Append where along ``axis``, which goes away, the greatest or the ``least`` element of the operand is.

    Of equal ones it is the first; of floats, which are not asked for the least one, the first NaN if there is
    one. One pass takes each element and its index together (`lowering/schedule/folds/greatest.py`).
    """
    mlir, affine = context.mlir, context.mlir.ir.AffineMap
    arith, arithmetic = mlir.arith, context.arithmetic(source.dtype)
    kept = reduced_shape(source.shape, (axis,), keepdims=False)
    index_dtype = DType.SI32 if fits_i32(source.extents[axis]) else dtype
    if source.dtype.bits <= DType.SI16.bits and not source.dtype.is_float and source.extents[axis] < 2**15:
        index_dtype = DType.SI16  # so that vectors have more elements
    computed = DType.UI8 if source.dtype is DType.I1 else default_accumulator(source.dtype)

    def body(x: Any, best: Any, place: Any) -> Sequence[Any]:
        if source.dtype.is_float:
            x = arithmetic.widened(x)
            better = arith.cmpf(arith.CmpFPredicate.UGT, x, best)
            better = arith.andi(better, arith.cmpf(arith.CmpFPredicate.ORD, best, best))
        else:
            x = arith.extui(context.element(computed), x) if source.dtype is DType.I1 else x
            better = context.arithmetic(computed).compare("Less" if least else "Greater", x, best)
        index = arith.index_cast(context.element(index_dtype), context.iteration(axis))
        return [arith.select(better, x, best), arith.select(better, index, place)]

    dims = [mlir.ir.AffineDimExpr.get(dim) for dim in range(source.rank) if dim != axis]
    reduced = affine.get(source.rank, 0, dims)
    starts = ((computed, identity_number("Min" if least else "Max", computed)), (index_dtype, 0))
    _, place = context.generic(
        [context.operands[0]],
        [affine.get_identity(source.rank), reduced, reduced],
        [context.filled(TensorType(each, kept), start) for each, start in starts],
        ["reduction" if dim == axis else "parallel" for dim in range(source.rank)],
        body,
    )
    if index_dtype is dtype:
        return place
    wide = context.element(dtype)
    return context.elementwise(lambda index: arith.extsi(wide, index), [place], TensorType(dtype, kept))


def best_element(context: LoweringContext, axis: int, *, least: bool) -> list[Any]:
    """Append the two results of an operation: the best element along ``axis``, and its place.

    The least one of floats is not asked for: NaN counts as the greatest there, too.
    """
    (operand,), (source,), results = context.operands, context.operand_types, context.result_types
    mlir, dtype = context.mlir, results[1].dtype
    place = place_of_best(context, source, axis, dtype, least=least)
    kept = source.with_shape(reduced_shape(source.shape, (axis,), keepdims=False))
    identity = mlir.ir.AffineMap.get_identity(kept.rank)

    def body(index: Any, _: Any) -> Any:
        at = [context.iteration(dim) for dim in range(kept.rank)]
        at.insert(axis, mlir.arith.index_cast(mlir.ir.IndexType.get(), index))
        return mlir.tensor.extract(operand, at)

    (value,) = context.generic(
        [place], [identity, identity], [context.empty(kept)], ["parallel"] * kept.rank, body
    )
    types = kept, kept.with_dtype(dtype)
    found = zip((value, place), types, results, strict=True)
    return [reshape(context, each, type_, result.extents) for each, type_, result in found]
