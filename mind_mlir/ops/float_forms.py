"""Rounding, signs and finiteness said with operations that PTIR has, bit for bit (`OpDef.in_contract`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DTypeKind

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import ExpandContext


class _Form:
    """Appends operations on tensors of the operand's type."""

    def __init__(self, context: ExpandContext) -> None:
        self.context = context
        self.type = context.operands[0].type

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        return self.context.builder.emit(opcode, *operands, **attributes)

    def define(self, opcode: str, *operands: Value, **attributes: Any) -> bool:
        """Append the operation whose result is that of the one that is expanded; return True."""
        self.context.builder.emit_all(opcode, *operands, defines=self.context.results, **attributes)
        return True

    def full(self, number: float) -> Value:
        scalar = self.context.builder.constant(number, self.type.dtype)
        extents = self.type.extents
        return self.emit("BroadcastTo", scalar, result_shape=extents) if extents else scalar

    def where(self, left: Value, op: str, right: Value, on_true: Value, on_false: Value) -> Value:
        return self.emit("Select", self.emit("Compare", left, right, op=op), on_true, on_false)

    def rounding(self, x: Value) -> tuple[Value, Value, Value]:
        """Append the operands of a Select: ``x`` rounded to the nearest integer, of two the even one."""
        # A sum with a number whose last place is one, as it is of the power of two from which on all numbers
        # are integers, is rounded to an integer; the difference is exact.
        magnitude, large = self.emit("Abs", x), self.full(2.0**self.type.dtype.format.mantissa)
        whole = self.emit("Sub", self.emit("Add", magnitude, large), large)
        return (
            self.emit("Compare", magnitude, large, op="Less"),
            self.emit("Select", *self.signed(whole, x)),
            x,
        )

    def rounded(self, x: Value) -> Value:
        return self.emit("Select", *self.rounding(x))

    def signed(self, magnitude: Value, x: Value) -> tuple[Value, Value, Value]:
        """Append the operands of a Select: ``magnitude`` with the sign of ``x``; zeros and NaN stay."""
        zero = self.full(0)
        upwards = self.where(x, "Greater", zero, magnitude, x)
        return self.emit("Compare", x, zero, op="Less"), self.emit("Neg", magnitude), upwards

    def floor(self, x: Value) -> Value:
        nearest = self.rounded(x)
        return self.where(nearest, "Greater", x, self.emit("Sub", nearest, self.full(1)), nearest)


def round_even_form(context: ExpandContext) -> bool:
    """Append the sum with a number whose last place is one, less that number, where that rounds."""
    form, (x,) = _Form(context), context.operands
    return form.define("Select", *form.rounding(x))


def floor_form(context: ExpandContext) -> bool:
    """Append the nearest integer, less one where that is greater."""
    form, (x,) = _Form(context), context.operands
    nearest = form.rounded(x)
    lower = form.emit("Sub", nearest, form.full(1))
    return form.define("Select", form.emit("Compare", nearest, x, op="Greater"), lower, nearest)


def ceil_form(context: ExpandContext) -> bool:
    """Append the negated floor of the negated operand, so that what becomes zero keeps its sign."""
    form, (x,) = _Form(context), context.operands
    return form.define("Neg", form.floor(form.emit("Neg", x)))


def round_form(context: ExpandContext) -> bool:
    """Append the floor of the magnitude, and one more where half or more is left, with the sign."""
    form, (x,) = _Form(context), context.operands
    magnitude = form.emit("Abs", x)
    whole = form.floor(magnitude)
    rest = form.emit("Sub", magnitude, whole)  # exact; NaN of infinities, which are not rounded up
    up = form.where(rest, "GreaterEqual", form.full(0.5), form.emit("Add", whole, form.full(1)), whole)
    return form.define("Select", *form.signed(up, x))


def sign_form(context: ExpandContext) -> bool:
    """Append 1 or -1 where the operand is greater or less than 0, else the operand."""
    form, (x,) = _Form(context), context.operands
    zero, one = form.full(0), form.full(1)
    positive = form.emit("Compare", x, zero, op="Greater")
    if form.type.dtype.kind is DTypeKind.UNSIGNED:
        return form.define("Select", positive, one, x)
    return form.define("Select", positive, one, form.where(x, "Less", zero, form.full(-1), x))


def is_finite_form(context: ExpandContext) -> bool:
    """Append whether the magnitude is at most the greatest number."""
    form, (x,) = _Form(context), context.operands
    greatest = form.full(form.type.dtype.format.greatest)
    return form.define("Compare", form.emit("Abs", x), greatest, op="LessEqual")
