"""Sum and mean over axes (core-ir.md, "Reductions"; shapes.md, "Reductions")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import Dim, DType, Shape, TensorType
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.accumulation import ACCURACY
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract_forms import mean_form, sum_form
from mind_mlir.ops.dims_rules import reducing as reducing_dims
from mind_mlir.ops.opdef import Alias, AttributeDef, Example, OpDef, OperandDef, Rounding
from mind_mlir.ops.open_sums import averaging, reducing
from mind_mlir.ops.reassociation import reshape

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


def reduced_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return valid ``axes`` as ascending numbers in ``[0, rank)``; no axes means all of them."""
    return tuple(sorted(axis % rank for axis in axes)) if axes else tuple(range(rank))


def _normalize(attributes: Mapping[str, AttributeValue], result: TensorType) -> Mapping[str, AttributeValue]:
    """Let axes count from the front, ascending; none stays none."""
    axes = cast("tuple[int, ...]", attributes["axes"])
    rank = result.rank + (0 if attributes["keepdims"] else len(axes))
    return {**attributes, "axes": reduced_axes(axes, rank) if axes else ()}


def _reduction_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    axes: tuple[int, ...] = context.attributes["axes"]
    check_axes(context, axes, operand.rank)
    if not axes:
        return operand.with_shape(())
    reduced = reduced_axes(axes, operand.rank)
    return operand.with_shape(reduced_shape(operand.shape, reduced, context.attributes["keepdims"]))


def check_axes(context: TypeContext, axes: tuple[int, ...], rank: int) -> None:
    """Report the axes that the first operand, of ``rank``, lacks (E3004) or that are given twice (E3005)."""
    seen: dict[int, int] = {}
    for axis in axes:
        if not -rank <= axis < rank:
            context.report(
                "E3004",
                f"axis {axis} is outside the operand's rank {rank}",
                attribute="axes",
                notes=(f"the operand has type {context.operands[0]}",),
                help=f"axes must lie in [{-rank}, {rank - 1}]; negative ones count from the end"
                if rank
                else "a scalar has no axes: leave the list empty",
                axis=axis,
                rank=rank,
            )
        elif axis % rank in seen:
            twin = seen[axis % rank]
            context.report(
                "E3005",
                f"axis {axis} is given twice"
                if twin == axis
                else f"axis {axis} is given twice: it is axis {twin}",
                attribute="axes",
                notes=(f"axes {list(axes)} of the type {context.operands[0]}",),
                help="name each axis once",
                axes=axes,
                axis=axis,
            )
        else:
            seen[axis % rank] = axis
    context.stop_if_reported()


def reduced_shape(shape: Shape, reduced: Sequence[int], keepdims: bool) -> Shape:
    """Return ``shape`` without the axes ``reduced``, or with extents of 1 for them."""
    result: list[Dim] = []
    for axis, extent in enumerate(shape):
        if axis not in reduced:
            result.append(extent)
        elif keepdims:
            result.append(1)
    return tuple(result)


def _reduced_count(shape: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(shape[axis] for axis in reduced_axes(axes, len(shape)))


def _numpy_sum(context: EvalContext, dtype: np.dtype[Any]) -> Array:
    (operand,) = context.operands
    axes = reduced_axes(context.attributes["axes"], operand.ndim)
    kept = tuple(axis for axis in range(operand.ndim) if axis not in axes)
    # Along contiguous memory numpy sums pairwise; along other axes its error would grow with the length.
    count = _reduced_count(operand.shape, context.attributes["axes"])
    if operand.size:
        operand, axes = np.ascontiguousarray(operand.transpose(*kept, *axes)).reshape(-1, count), (-1,)
    total = np.sum(operand, axis=axes, dtype=dtype, initial=dtype.type(0))
    return np.asarray(total).reshape(context.result_type.extents)


def _mean(context: EvalContext) -> Array:
    (operand,) = context.operands
    count = _reduced_count(operand.shape, context.attributes["axes"])
    if context.result_type.dtype.is_float:
        return np.asarray(_numpy_sum(context, operand.dtype) / operand.dtype.type(count))
    total = _numpy_sum(context, np.dtype(np.int64))
    quotient = total // max(count, 1)
    truncated = quotient + ((total < 0) & (quotient * max(count, 1) != total))
    return np.asarray(truncated, dtype=operand.dtype)


def _spread(context: VjpContext, value: Value) -> Value:
    """Repeat ``value``, of the result's shape, along the reduced axes to the operand's shape."""
    shape = context.operands[0].shape
    axes = reduced_axes(context.attributes["axes"], len(shape))
    # A scalar lines up with any shape; otherwise the axes that went away come back as extents of 1.
    if value.shape and len(value.shape) < len(shape):
        value = context.emit("ExpandDims", value, axes=axes)
    return value if value.shape == shape else context.emit("BroadcastTo", value, result_shape=shape)


def spread_along(context: VjpContext, value: Value, axes: Sequence[int], like: Value) -> Value:
    """Repeat ``value``, whose shape is that of ``like`` but for ``axes``, along these."""
    ones = tuple(1 if axis in axes else extent for axis, extent in enumerate(like.shape))
    if value.shape != ones:
        value = context.emit("Reshape", value, new_shape=ones)
    return value if ones == like.shape else context.emit("BroadcastTo", value, result_shape=like.shape)


def _mean_vjp(context: VjpContext) -> Sequence[Value | None]:
    count = _reduced_count(context.operands[0].shape, context.attributes["axes"])
    # Scaled before it is spread, where it is smallest. Of no elements at all, any scale will do.
    scaled = context.emit("Mul", context.cotangent, context.scalar(1 / max(count, 1)))
    return (_spread(context, scaled),)


def _reduce(context: LoweringContext, accumulator: DType) -> Any:
    """Append the sum in ``accumulator``, without the reduced axes."""
    arith, source = context.mlir.arith, context.operand_types[0]
    axes = reduced_axes(context.attributes["axes"], source.rank)
    init = context.filled(TensorType(accumulator, reduced_shape(source.shape, axes, keepdims=False)), 0)

    def body(element: Any, total: Any) -> Any:
        if accumulator.is_float:
            return arith.addf(total, element)
        if accumulator is not source.dtype:
            element = arith.extsi(context.element(accumulator), element)
        return arith.addi(total, element)

    return context.reduce(context.operands[0], init, axes, body)


def _restore_axes(context: LoweringContext, value: Any) -> Any:
    """Insert the reduced axes with extent 1 where the result keeps them."""
    reduced = context.result_type.with_shape(tuple(value.type.shape))
    return reshape(context, value, reduced, context.result_type.extents)


def _lower_mean(context: LoweringContext) -> Any:
    arith, dtype = context.mlir.arith, context.result_type.dtype
    count = _reduced_count(context.operand_types[0].extents, context.attributes["axes"])
    accumulator = dtype if dtype.is_float else DType.SI64
    # Of no elements, an integer sum is 0 and stays 0; the divisor must not be 0 (undefined in LLVM).
    divisor = context.scalar(count if dtype.is_float else max(count, 1), accumulator)
    total = _reduce(context, accumulator)

    def body(element: Any) -> Any:
        if dtype.is_float:
            return arith.divf(element, divisor)
        quotient = arith.divsi(element, divisor)
        return quotient if dtype is accumulator else arith.trunci(context.element(dtype), quotient)

    mean = context.elementwise(body, [total], TensorType(dtype, tuple(total.type.shape)))
    return _restore_axes(context, mean)


_SHAPE = (
    "The reduced axes are removed from the shape, or become 1 with `keepdims=true`. No axes means all of "
    "them, and the result is then a scalar whatever `keepdims` says. An axis outside the rank is E3004, an "
    "axis named twice E3005."
)
_ATTRIBUTES = (
    AttributeDef("axes", AttrKind.I64_LIST, "the axes to reduce; none reduces all", default=()),
    AttributeDef("keepdims", AttrKind.BOOL, "whether reduced axes stay with extent 1", default=False),
)
#: What the reductions of all elements fix.
_ALL: Mapping[str, AttributeValue] = MappingProxyType({"axes": (), "keepdims": False})
_NEGATIVE_AXES = "Negative axes count from the end: -1 is the last, and naming it by both numbers is E3005."
_ORDER = (
    "Floats accumulate in the input dtype from +0.0 on (so a sum of negative zeros is +0.0), in an order "
    "that depends only on the shape, the instruction set and the compiler's version, never on the number of "
    f"threads. {ACCURACY} The last step of a long sum may be taken in f64."
)
_EXAMPLES = (
    Example(("T[3, 4, 5]",), {"axes": (1,), "keepdims": False}),
    Example(("T[3, 4, 5]",), {"axes": (1,), "keepdims": True}),
    Example(("T[3, 4, 5]",), {"axes": (2, 0), "keepdims": True}, "the order of the axes has no effect"),
    Example(("T[2, 3, 37]",), {"axes": (-1,), "keepdims": False}, "a negative axis counts from the end"),
    Example(("T[37, 5]",), {"axes": (0,), "keepdims": False}),
    Example(("T[5, 1]",), {"axes": (1,), "keepdims": False}, "one element each"),
    Example(("T[6, 7]",), {"axes": (0, 1), "keepdims": True}, "all axes, kept"),
    Example(("T[6, 7]",), {"axes": (), "keepdims": True}, "no axes: a full reduction to a scalar"),
    Example(("T[]",), {"axes": (), "keepdims": False}),
)

#: What the records have alike.
_reduction = partial(
    OpDef,
    spec="core-ir.md, Reductions; shapes.md, Reductions",
    operands=(OperandDef("input"),),
    attributes=_ATTRIBUTES,
    type_rule=_reduction_type,
    normalize=_normalize,
    rounding=Rounding.ACCUMULATING,
    terms=lambda shapes, attributes: _reduced_count(shapes[0], cast("tuple[int, ...]", attributes["axes"])),
    examples=_EXAMPLES,
)

OPERATIONS = (
    _reduction(
        opcode="Sum",
        summary="Computes the sum of elements along axes.",
        description=f"Adds the elements along `axes`. {_SHAPE} The sum of no elements is 0.",
        evaluate=lambda context: _numpy_sum(context, context.operands[0].dtype),
        derivative=lambda context: (_spread(context, context.cotangent),),
        dims=reducing_dims(lambda _: "sum", all_of_none=True),
        open_axes=reducing(lambda *_: 0, all_of_none=True),
        lower=lambda context: _restore_axes(context, _reduce(context, context.result_type.dtype)),
        stablehlo=hlo.sum_,
        in_contract=sum_form,
        choices=(_NEGATIVE_AXES, _ORDER, "Integers wrap around on overflow (two's complement)."),
        aliases=(Alias("core-functions", "tensor.sum"), Alias("core-functions", "tensor.sum_all", _ALL)),
    ),
    _reduction(
        opcode="Mean",
        summary="Computes the arithmetic mean of elements along axes.",
        description="Divides the sum of the elements along `axes` by the number of elements summed (the "
        f"product of the reduced extents). {_SHAPE} The mean of no elements is NaN for floats.",
        evaluate=_mean,
        derivative=_mean_vjp,
        dims=reducing_dims(lambda _: "mean", all_of_none=True),
        open_axes=averaging,
        lower=_lower_mean,
        stablehlo=hlo.mean,
        in_contract=mean_form,
        choices=(
            _NEGATIVE_AXES,
            _ORDER,
            "The mean of integers is an integer: the quotient is truncated toward zero, as numpy's mean cast "
            "back to the dtype is. The sum is taken in i64, so i32 means never overflow; an i64 sum wraps "
            "around.",
            "The mean of no integers is 0.",
        ),
        aliases=(Alias("core-functions", "tensor.mean"), Alias("core-functions", "tensor.mean_all", _ALL)),
    ),
)
