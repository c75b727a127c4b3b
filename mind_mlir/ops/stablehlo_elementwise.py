"""Rules of elementwise operations: those that StableHLO has, and those that take a few of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DTypeKind
from mind_mlir.mlir.special_tables import ERF_SPLIT, TABLES
from mind_mlir.ops.accumulators import default_accumulator

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def divide(context: StablehloContext) -> HloValue:
    """Rule of `Div`."""
    left, right = context.stretched(*context.operands)
    return _smith(context, left, right) if left.dtype.is_complex else context.divide(left, right)


def reciprocal(context: StablehloContext) -> HloValue:
    """Rule of `Reciprocal`."""
    (x,) = context.operands
    if not x.dtype.is_complex:
        return context.divide(1, x)
    real, imaginary = context.parts(x)
    is_real, ratio, total = _ratio(context, real, imaginary)
    one = context.like(1, real)
    return context.complex_of(
        context.divide(context.select(is_real, one, ratio), total),
        context.unary("negate", context.divide(context.select(is_real, ratio, one), total)),
    )


def _smith(context: StablehloContext, left: HloValue, right: HloValue) -> HloValue:
    """Append a quotient of complex numbers by Smith's method, which StableHLO's own need not be."""
    c = context
    (a, b), (real, imaginary) = c.parts(left), c.parts(right)
    is_real, ratio, total = _ratio(c, real, imaginary)
    scale = c.divide(1, total)
    first, second = c.select(is_real, a, b), c.select(is_real, b, a)
    forth = c.multiply(first, ratio)
    upper = c.multiply(c.add(first, c.multiply(second, ratio)), scale)
    lower = c.select(is_real, c.subtract(second, forth), c.subtract(forth, second))
    lower = c.multiply(lower, scale)
    is_zero = c.both(c.compare("Equal", real, 0), c.compare("Equal", imaginary, 0))
    return c.complex_of(c.select(is_zero, c.divide(a, 0), upper), c.select(is_zero, c.divide(b, 0), lower))


def _ratio(
    context: StablehloContext, real: HloValue, imaginary: HloValue
) -> tuple[HloValue, HloValue, HloValue]:
    """Append whether the real part is the greater one, the ratio of the parts, and what scales."""
    c = context
    is_real = c.compare("GreaterEqual", c.unary("abs", real), c.unary("abs", imaginary))
    greater, lesser = c.select(is_real, real, imaginary), c.select(is_real, imaginary, real)
    ratio = c.divide(lesser, greater)
    return is_real, ratio, c.add(greater, c.multiply(lesser, ratio))


def relu(context: StablehloContext) -> HloValue:
    """Rule of `Relu`: not a maximum, which hands NaN through."""
    (x,) = context.operands
    return context.select(context.compare("Greater", x, 0), x, 0)


def magnitude(context: StablehloContext) -> HloValue:
    """Rule of `Abs`."""
    (x,) = context.operands
    return x if x.dtype.kind is DTypeKind.UNSIGNED else context.unary("abs", x)


def sign(context: StablehloContext) -> HloValue:
    """Rule of `Sign`: StableHLO has none of unsigned integers."""
    (x,) = context.operands
    return context.minimum(x, 1) if x.dtype.kind is DTypeKind.UNSIGNED else context.unary("sign", x)


def logistic(context: StablehloContext) -> HloValue:
    """Rule of `Logistic`, in f32 for narrow floats: exponentials on the way may be out of their range."""
    (x,) = context.operands
    wide = context.convert(x, default_accumulator(x.dtype))
    return context.convert(context.unary("logistic", wide), x.dtype)


def erf(context: StablehloContext) -> HloValue:
    """Rule of `Erf`, by the polynomials that compiled code has: CHLO has one, and StableHLO none."""
    c, (operand,) = context, context.operands
    x = c.convert(operand, default_accumulator(operand.dtype))
    tables = TABLES[x.dtype.bits]
    near = c.add(c.multiply(x, _polynomial(c, c.multiply(x, x), tables.erf_tail)), x)
    size = c.unary("abs", x)
    held = c.minimum(size, tables.erf_end)
    far = c.subtract(1.0, c.unary("exponential", _polynomial(c, held, tables.erfc_log)))
    far = c.select(c.compare("Less", x, 0), c.unary("negate", far), far)
    return c.convert(c.select(c.compare("Less", size, ERF_SPLIT), near, far), operand.dtype)


def _polynomial(context: StablehloContext, x: HloValue, coefficients: Sequence[float]) -> HloValue:
    total = context.like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        total = context.add(context.multiply(total, x), coefficient)
    return total
