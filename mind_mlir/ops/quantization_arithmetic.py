"""The arithmetic of quantization on single elements, in bodies of linalg operations: all of it in f64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops.conversion import converted

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.mlir.context import LoweringContext

#: Beyond all that saturates, whatever the zero point, and far below where f64 ceases to hold all integers.
_ENOUGH = 2.0**34
#: Added to a number up to 2^51 and subtracted again, it leaves the nearest integer, the even one of two:
#: there is no instruction for that on all processors.
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

    def clamped(value: Any, least: float, greatest: float) -> Any:
        # For what is no NaN; arith.maximumf would look for zeros of either sign.
        low, high = number(least), number(greatest)
        above = arith.select(arith.cmpf(arith.CmpFPredicate.OLT, value, low), low, value)
        return arith.select(arith.cmpf(arith.CmpFPredicate.OGT, above, high), high, above)

    is_nan = arith.cmpf(arith.CmpFPredicate.UNO, quotient, quotient)
    known = clamped(arith.select(is_nan, number(0.0), quotient), -_ENOUGH, _ENOUGH)
    whole = arith.subf(arith.addf(known, number(_TO_INTEGER)), number(_TO_INTEGER))
    moved = clamped(arith.addf(whole, zero_point), *map(float, limits(dtype)))
    return arith.trunci(context.element(dtype), arith.fptosi(context.element(DType.SI32), moved))
