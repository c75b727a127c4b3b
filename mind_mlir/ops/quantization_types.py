"""The dtypes of affine quantization, its type rules, and its arithmetic on single elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from mind_mlir.ir.types import DType, DTypeKind, TensorType, format_shape
from mind_mlir.ops.conversion import converted
from mind_mlir.ops.opdef import ALL_FLOATS, ALL_SIGNED, ALL_UNSIGNED, DTypeSet

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext


#: What numbers are quantized to.
QUANTIZED: DTypeSet = tuple(dtype for dtype in ALL_SIGNED + ALL_UNSIGNED if dtype.bits <= 16)
#: What quantized numbers may be read from: sums of their products, too.
ACCUMULATED: DTypeSet = (*QUANTIZED, DType.SI32)
#: What real numbers, and scales, may be.
REAL: DTypeSet = ALL_FLOATS
#: The operands by their number.
_NAMES = {
    3: ("x", "scale", "zero_point"),
    5: ("x", "in_scale", "in_zero_point", "out_scale", "out_zero_point"),
}


def type_rule(allowed: DTypeSet, given: int, made: int) -> Callable[[TypeContext], TensorType]:
    """Return the type rule of one of the operations.

    Args:
        allowed: What the result may be.
        given: The operand that is the scale of a quantized first operand, before its zero point; 0 where
            that is not quantized.
        made: The operand that is the scale of the result, before its zero point; 0 where that is not
            quantized.
    """

    def rule(context: TypeContext) -> TensorType:
        x, dtype = context.operands[0], cast("DType", context.attributes["output_dtype"])
        context.allows_dtype("output_dtype", allowed)
        shape = _parameter_shape(context, x)
        for first, quantized in ((given, x.dtype), (made, dtype)):
            if first:
                _check_parameters(context, first, shape, quantized)
        context.stop_if_reported()
        return x.with_dtype(dtype)

    return rule


def _parameter_shape(context: TypeContext, x: TensorType) -> tuple[int, ...]:
    """Return the shape of scales and zero points."""
    axes: tuple[int, ...] = context.attributes["axis"]
    if len(axes) > 1:
        context.fail(
            "E1103",
            f"{context.opcode} has {len(axes)} axes",
            attribute="axis",
            help="give one axis, or none for one scale and one zero point",
        )
    if not axes:
        return ()
    (axis,) = axes
    if not -x.rank <= axis < x.rank:
        context.fail(
            "E3004",
            f"axis {axis} is outside the operand's rank {x.rank}",
            attribute="axis",
            notes=(f"the operand has type {x}",),
            help=f"the axis must lie in [{-x.rank}, {x.rank - 1}]" if x.rank else "leave the axis out",
            axis=axis,
            rank=x.rank,
        )
    return (x.extents[axis],)


def _check_parameters(context: TypeContext, first: int, shape: tuple[int, ...], quantized: DType) -> None:
    """Check a scale and the zero point behind it, which belong to numbers of ``quantized``."""
    names = _NAMES[len(context.operands)]
    for index in (first, first + 1):
        found = context.operands[index]
        wanted = f"the {names[index]} of {context.opcode} must have shape {format_shape(shape)}"
        if found.rank != len(shape):
            context.report(
                "E3002",
                f"{wanted}, found {found}",
                operand=index,
                help="without an axis, scales and zero points have rank 0, else one entry for each position",
                expected=len(shape),
                found=found.rank,
            )
        elif found.extents != shape:
            context.report(
                "E3003",
                f"{wanted}, found {found}",
                operand=index,
                help="give one entry for each position on the axis",
                dimension=0,
                extents=(shape[0], found.extents[0]),
            )
    zero_point = context.operands[first + 1]
    if zero_point.dtype is not quantized:
        context.report(
            "E2004",
            f"Dtype mismatch: the {names[first + 1]} of {context.opcode} is {zero_point.dtype}, "
            f"but what it belongs to is {quantized}",
            operand=first + 1,
            help="a zero point has the dtype of the quantized numbers",
            left=quantized.core_name,
            right=zero_point.dtype.core_name,
        )


# Single elements, in bodies of linalg operations: all of it in f64


#: Added to a number up to 2^51, it leaves the nearest integer, the even one of two, in the low bits of the
#: sum: there is no instruction for that on all processors.
_TO_INTEGER = 1.5 * 2.0**52


def from_integer(context: LoweringContext, value: Any, dtype: DType) -> Any:
    """Emit an integer of up to 32 bits as f64."""
    arith = context.mlir.arith
    if dtype.kind is DTypeKind.UNSIGNED:  # fits in an i32: fewer processors convert unsigned integers
        value = arith.extui(context.element(DType.SI32), value)
    return arith.sitofp(context.element(DType.F64), value)


def from_real(context: LoweringContext, value: Any, dtype: DType) -> Any:
    """Emit a float as f64."""
    return converted(context, value, dtype, DType.F64)


def to_real(context: LoweringContext, value: Any, dtype: DType) -> Any:
    """Emit an f64 rounded to a float dtype."""
    return converted(context, value, DType.F64, dtype)


def to_integer(
    context: LoweringContext,
    quotient: Any,
    zero_point: Any,
    dtype: DType,
    limits: Callable[[DType], tuple[int, int]],
) -> Any:
    """Emit a quotient of f64 as an integer of up to 16 bits: rounded, moved by the zero point, saturated."""
    arith, f64 = context.mlir.arith, context.element(DType.F64)

    def number(value: float) -> Any:
        return arith.constant(f64, value)

    is_nan = arith.cmpf(arith.CmpFPredicate.UNO, quotient, quotient)
    known = arith.select(is_nan, number(0.0), quotient)
    # Saturated first, at integers: rounding leaves it so. arith.maximumf would look for zeros of either sign.
    for end, beyond in zip(limits(dtype), (arith.CmpFPredicate.OLT, arith.CmpFPredicate.OGT), strict=True):
        most = arith.subf(number(float(end)), zero_point)
        known = arith.select(arith.cmpf(beyond, known, most), most, known)
    # The integer is in the low bits of the sum.
    total = arith.addf(arith.addf(known, number(_TO_INTEGER)), zero_point)
    return arith.trunci(context.element(dtype), arith.bitcast(context.element(DType.SI64), total))
