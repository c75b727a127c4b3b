"""Rounding, signs and finiteness said with operations that PTIR has, bit for bit (`OpDef.in_contract`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import DTypeKind

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import ExpandContext


def _where(
    context: ExpandContext, left: Value, op: str, right: Value, on_true: Value, on_false: Value
) -> Value:
    return context.emit("Select", context.emit("Compare", left, right, op=op), on_true, on_false)


def _rounding(context: ExpandContext, x: Value) -> tuple[Value, Value, Value]:
    """Append the operands of a Select: ``x`` rounded to the nearest integer, of two the even one."""
    # A sum with a number whose last place is one, as it is of the power of two from which on all numbers
    # are integers, is rounded to an integer; the difference is exact.
    magnitude, large = context.emit("Abs", x), context.full(2.0**x.type.dtype.format.mantissa, x)
    whole = context.emit("Sub", context.emit("Add", magnitude, large), large)
    is_small = context.emit("Compare", magnitude, large, op="Less")
    return is_small, context.emit("Select", *_signed(context, whole, x)), x


def _signed(context: ExpandContext, magnitude: Value, x: Value) -> tuple[Value, Value, Value]:
    """Append the operands of a Select: ``magnitude`` with the sign of ``x``; zeros and NaN stay."""
    zero = context.full(0, x)
    upwards = _where(context, x, "Greater", zero, magnitude, x)
    return context.emit("Compare", x, zero, op="Less"), context.emit("Neg", magnitude), upwards


def _floor(context: ExpandContext, x: Value) -> Value:
    nearest = context.emit("Select", *_rounding(context, x))
    lower = context.emit("Sub", nearest, context.full(1, x))
    return _where(context, nearest, "Greater", x, lower, nearest)


def round_even_form(context: ExpandContext) -> bool:
    """Append the sum with a number whose last place is one, less that number, where that rounds."""
    (x,) = context.operands
    return context.define("Select", *_rounding(context, x))


def floor_form(context: ExpandContext) -> bool:
    """Append the nearest integer, less one where that is greater."""
    (x,) = context.operands
    nearest = context.emit("Select", *_rounding(context, x))
    lower = context.emit("Sub", nearest, context.full(1, x))
    return context.define("Select", context.emit("Compare", nearest, x, op="Greater"), lower, nearest)


def ceil_form(context: ExpandContext) -> bool:
    """Append the negated floor of the negated operand, so that what becomes zero keeps its sign."""
    (x,) = context.operands
    return context.define("Neg", _floor(context, context.emit("Neg", x)))


def round_form(context: ExpandContext) -> bool:
    """Append the floor of the magnitude, and one more where half or more is left, with the sign."""
    (x,) = context.operands
    magnitude = context.emit("Abs", x)
    whole = _floor(context, magnitude)
    rest = context.emit("Sub", magnitude, whole)  # exact; NaN of infinities, which are not rounded up
    up = _where(
        context,
        rest,
        "GreaterEqual",
        context.full(0.5, x),
        context.emit("Add", whole, context.full(1, x)),
        whole,
    )
    return context.define("Select", *_signed(context, up, x))


def sign_form(context: ExpandContext) -> bool:
    """Append 1 or -1 where the operand is greater or less than 0, else the operand."""
    (x,) = context.operands
    zero, one = context.full(0, x), context.full(1, x)
    positive = context.emit("Compare", x, zero, op="Greater")
    if x.type.dtype.kind is DTypeKind.UNSIGNED:
        return context.define("Select", positive, one, x)
    return context.define("Select", positive, one, _where(context, x, "Less", zero, context.full(-1, x), x))


def is_finite_form(context: ExpandContext) -> bool:
    """Append whether the magnitude is at most the greatest number."""
    (x,) = context.operands
    greatest = context.full(x.type.dtype.format.greatest, x)
    return context.define("Compare", context.emit("Abs", x), greatest, op="LessEqual")
