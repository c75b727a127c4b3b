"""Arithmetic on complex numbers, made of arithmetic on their parts.

Operations of the `complex` dialect are folded as if numbers were exact (``(a - b) + b`` to ``a``), so that
only those that take numbers apart and put them together are used. Each sum and product is rounded on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import arith, complex_, ir, math

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Value


def parts(value: Value) -> tuple[Value, Value]:
    """Emit the real and the imaginary part."""
    return complex_.ReOp(value).result, complex_.ImOp(value).result


def joined(real: Value, imaginary: Value) -> Value:
    """Emit the number of these parts."""
    return complex_.CreateOp(ir.ComplexType.get(real.type), real, imaginary).result


def by_parts(operation: Any, *values: Value) -> Value:
    """Emit an operation on floats of the real parts and of the imaginary ones."""
    real, imaginary = zip(*map(parts, values), strict=True)
    return joined(operation(*real).result, operation(*imaginary).result)


def multiply(left: Value, right: Value) -> Value:
    """Emit ``(a + b i) (c + d i) = (a c - b d) + (a d + b c) i``."""
    (a, b), (c, d) = parts(left), parts(right)
    return joined(_subtract(_multiply(a, c), _multiply(b, d)), _add(_multiply(a, d), _multiply(b, c)))


def divide(left: Value, right: Value) -> Value:
    """Emit a quotient by Smith's method, which scales by the greater part of the divisor."""
    (a, b), (c, d) = parts(left), parts(right)
    is_real = _at_least(_magnitude(c), _magnitude(d))
    # The other way round, a quotient is that of the numbers with their parts exchanged, conjugated.
    greater, lesser = arith.select(is_real, c, d), arith.select(is_real, d, c)
    first, second = arith.select(is_real, a, b), arith.select(is_real, b, a)
    ratio = _divide(lesser, greater)
    scale = _divide(_constant(c, 1), _add(greater, _multiply(lesser, ratio)))
    real = _multiply(_add(first, _multiply(second, ratio)), scale)
    forth, back = _multiply(first, ratio), second
    imaginary = arith.select(is_real, _subtract(back, forth), _subtract(forth, back))
    quotient = joined(real, _multiply(imaginary, scale))
    zero = _constant(c, 0)
    by_zero = joined(_divide(a, zero), _divide(b, zero))
    return arith.select(arith.andi(_equal(c, zero), _equal(d, zero)), by_zero, quotient)


def reciprocal(value: Value) -> Value:
    """Emit ``1 / value`` by Smith's method."""
    c, d = parts(value)
    is_real = _at_least(_magnitude(c), _magnitude(d))
    greater, lesser = arith.select(is_real, c, d), arith.select(is_real, d, c)
    ratio = _divide(lesser, greater)
    total = _add(greater, _multiply(lesser, ratio))
    one = _constant(c, 1)
    real = _divide(arith.select(is_real, one, ratio), total)
    imaginary = _divide(arith.select(is_real, ratio, one), total)
    return joined(real, arith.NegFOp(imaginary).result)


def equal(left: Value, right: Value, *, negated: bool) -> Value:
    """Emit whether both parts are equal; where ``negated``, whether one of them is not."""
    (a, b), (c, d) = parts(left), parts(right)
    predicate = arith.CmpFPredicate.UNE if negated else arith.CmpFPredicate.OEQ
    real, imaginary = (arith.CmpFOp(predicate, *pair).result for pair in ((a, c), (b, d)))
    return (arith.OrIOp if negated else arith.AndIOp)(real, imaginary).result


def _constant(like: Value, value: float) -> Value:
    return arith.ConstantOp(like.type, ir.FloatAttr.get(like.type, value)).result


def _magnitude(x: Value) -> Value:
    return math.AbsFOp(x).result


def _at_least(x: Value, y: Value) -> Value:
    return arith.CmpFOp(arith.CmpFPredicate.OGE, x, y).result


def _equal(x: Value, y: Value) -> Value:
    return arith.CmpFOp(arith.CmpFPredicate.OEQ, x, y).result


def _add(x: Value, y: Value) -> Value:
    return arith.AddFOp(x, y).result


def _subtract(x: Value, y: Value) -> Value:
    return arith.SubFOp(x, y).result


def _multiply(x: Value, y: Value) -> Value:
    return arith.MulFOp(x, y).result


def _divide(x: Value, y: Value) -> Value:
    return arith.DivFOp(x, y).result
