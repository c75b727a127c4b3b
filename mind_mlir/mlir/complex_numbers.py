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
    return joined(
        arith.subf(arith.mulf(a, c), arith.mulf(b, d)), arith.addf(arith.mulf(a, d), arith.mulf(b, c))
    )


def divide(left: Value, right: Value) -> Value:
    """Emit a quotient by Smith's method, which scales by the greater part of the divisor."""
    (a, b), (c, d) = parts(left), parts(right)
    is_real = arith.cmpf(arith.CmpFPredicate.OGE, math.absf(c), math.absf(d))
    # The other way round, a quotient is that of the numbers with their parts exchanged, conjugated.
    greater, lesser = arith.select(is_real, c, d), arith.select(is_real, d, c)
    first, second = arith.select(is_real, a, b), arith.select(is_real, b, a)
    ratio = arith.divf(lesser, greater)
    scale = arith.divf(_constant(c, 1), arith.addf(greater, arith.mulf(lesser, ratio)))
    real = arith.mulf(arith.addf(first, arith.mulf(second, ratio)), scale)
    forth, back = arith.mulf(first, ratio), second
    imaginary = arith.select(is_real, arith.subf(back, forth), arith.subf(forth, back))
    quotient = joined(real, arith.mulf(imaginary, scale))
    zero = _constant(c, 0)
    by_zero = joined(arith.divf(a, zero), arith.divf(b, zero))
    is_zero = arith.andi(*(arith.cmpf(arith.CmpFPredicate.OEQ, part, zero) for part in (c, d)))
    return arith.select(is_zero, by_zero, quotient)


def reciprocal(value: Value) -> Value:
    """Emit ``1 / value`` by Smith's method."""
    c, d = parts(value)
    is_real = arith.cmpf(arith.CmpFPredicate.OGE, math.absf(c), math.absf(d))
    greater, lesser = arith.select(is_real, c, d), arith.select(is_real, d, c)
    ratio = arith.divf(lesser, greater)
    total = arith.addf(greater, arith.mulf(lesser, ratio))
    one = _constant(c, 1)
    real = arith.divf(arith.select(is_real, one, ratio), total)
    imaginary = arith.divf(arith.select(is_real, ratio, one), total)
    return joined(real, arith.negf(imaginary))


def equal(left: Value, right: Value, *, negated: bool) -> Value:
    """Emit whether both parts are equal; where ``negated``, whether one of them is not."""
    (a, b), (c, d) = parts(left), parts(right)
    predicate = arith.CmpFPredicate.UNE if negated else arith.CmpFPredicate.OEQ
    real, imaginary = (arith.CmpFOp(predicate, *pair).result for pair in ((a, c), (b, d)))
    return (arith.OrIOp if negated else arith.AndIOp)(real, imaginary).result


def _constant(like: Value, value: float) -> Value:
    return arith.ConstantOp(like.type, ir.FloatAttr.get(like.type, value)).result
