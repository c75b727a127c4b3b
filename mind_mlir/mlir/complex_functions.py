"""Functions of complex numbers, made of functions of their parts.

What is infinite or NaN gives what C's functions give (ISO C, annex G).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import arith, ir, math
from mind_mlir.mlir.complex_numbers import divide, joined, parts

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Value

_INFINITY = float("inf")
#: From here on, by the width of a part, tanh differs from 1 by less than its last place.
_TANH_END = {32: 10.0, 64: 20.0}


def exp(value: Value) -> Value:
    """Emit ``e**x (cos y + i sin y)``."""
    n = _Floats(value)
    x, y = parts(value)
    # e**x may be out of range where the products are not.
    half = n.of("exp", arith.mulf(x, n.number(0.5)))
    real, imaginary = (arith.mulf(half, arith.mulf(half, n.of(name, y))) for name in ("cos", "sin"))
    imaginary = arith.select(n.equal(y, 0), y, imaginary)
    real = arith.select(n.equal(y, 0), arith.mulf(half, half), real)
    endless = n.is_not_finite(y)
    vanishes = arith.andi(n.equal(x, -_INFINITY), endless)
    real = arith.select(arith.andi(n.equal(x, _INFINITY), endless), n.number(_INFINITY), real)
    zero = n.number(0)
    return joined(arith.select(vanishes, zero, real), arith.select(vanishes, zero, imaginary))


def log(value: Value) -> Value:
    """Emit ``ln |z| + i atan2(y, x)``."""
    n = _Floats(value)
    x, y = parts(value)
    a, b = n.of("absf", x), n.of("absf", y)
    greater, lesser = arith.maximumf(a, b), arith.minimumf(a, b)
    ratio = arith.select(n.equal(greater, 0), n.number(0), arith.divf(lesser, greater))
    one, half = n.number(1), n.number(0.5)
    far = arith.addf(n.of("log", greater), arith.mulf(half, n.log1p(arith.mulf(ratio, ratio))))
    # Near the unit circle the logarithm is small, and so is what it is taken of less one.
    square = arith.mulf(arith.subf(greater, one), arith.addf(greater, one))
    near = arith.mulf(half, n.log1p(arith.addf(square, arith.mulf(lesser, lesser))))
    is_near = arith.andi(n.less(n.number(0.7), greater), n.less(greater, n.number(1.4)))
    real = arith.select(is_near, near, far)
    endless = arith.ori(n.equal(a, _INFINITY), n.equal(b, _INFINITY))
    return joined(arith.select(endless, n.number(_INFINITY), real), math.atan2(y, x))


def tanh(value: Value) -> Value:
    """Emit ``(sinh x cosh x + i sin y cos y) / (sinh(x)**2 + cos(y)**2)``."""
    n = _Floats(value)
    x, y = parts(value)
    sine, cosine = n.of("sin", y), n.of("cos", y)
    product = arith.mulf(sine, cosine)
    end, size = n.number(_TANH_END[n.bits]), n.of("absf", x)
    is_far = n.less(end, size)
    held = arith.select(is_far, end, x)
    sinh, cosh = n.of("sinh", held), n.of("cosh", held)
    below = arith.addf(arith.mulf(sinh, sinh), arith.mulf(cosine, cosine))
    real, imaginary = arith.divf(arith.mulf(sinh, cosh), below), arith.divf(product, below)
    # Far from the imaginary axis, the squares are e**(2 |x|) / 4. That may be out of range.
    vanishing = n.of("exp", arith.negf(size))
    far = arith.mulf(arith.mulf(arith.mulf(n.number(4), product), vanishing), vanishing)
    sign = math.copysign(n.number(1), x)
    real = arith.select(is_far, arith.addf(sign, arith.mulf(product, n.number(0))), real)
    imaginary = arith.select(is_far, far, imaginary)
    endless = arith.andi(n.equal(size, _INFINITY), n.is_not_finite(y))
    real = arith.select(endless, sign, real)
    imaginary = arith.select(endless, n.number(0), imaginary)
    return joined(arith.select(n.equal(x, 0), x, real), arith.select(n.equal(y, 0), y, imaginary))


def rsqrt(value: Value) -> Value:
    """Emit one divided by the square root whose real part is not negative; 0 for what is infinite."""
    n = _Floats(value)
    x, y = parts(value)
    # Of numbers from the middle of the range, neither squares nor sums are out of it.
    most = 2.0 ** {32: 64, 64: 512}[n.bits]
    a, b = n.of("absf", x), n.of("absf", y)
    greater = arith.maximumf(a, b)
    is_small, is_large = n.less(greater, n.number(1 / most)), n.less(n.number(most), greater)
    scale = arith.select(is_small, n.number(most), arith.select(is_large, n.number(1 / most), n.number(1)))
    a, b = arith.mulf(a, scale), arith.mulf(b, scale)
    greater, lesser = arith.maximumf(a, b), arith.minimumf(a, b)
    is_zero = n.equal(greater, 0)
    ratio = arith.select(is_zero, n.number(0), arith.divf(lesser, greater))
    one = n.number(1)
    size = arith.mulf(greater, n.of("sqrt", arith.addf(one, arith.mulf(ratio, ratio))))
    long = n.of("sqrt", arith.mulf(arith.addf(a, size), n.number(0.5)))
    short = arith.select(is_zero, n.number(0), arith.divf(b, arith.addf(long, long)))
    is_right = arith.cmpf(arith.CmpFPredicate.OGE, x, n.number(0))
    real, imaginary = arith.select(is_right, long, short), arith.select(is_right, short, long)
    found = divide(joined(one, n.number(0)), joined(real, math.copysign(imaginary, y)))
    root = arith.select(is_small, n.number(most**0.5), arith.select(is_large, n.number(most**-0.5), one))
    endless = arith.ori(n.equal(a, _INFINITY), n.equal(b, _INFINITY))
    real, imaginary = (arith.select(endless, n.number(0), arith.mulf(part, root)) for part in parts(found))
    return joined(real, imaginary)


class _Floats:
    """Emits operations on floats of the type of a complex number's parts."""

    def __init__(self, value: Value) -> None:
        self._type = value.type.element_type
        self.bits: int = self._type.width

    def number(self, value: float) -> Value:
        return arith.ConstantOp(self._type, ir.FloatAttr.get(self._type, value)).result

    def of(self, name: str, x: Value) -> Value:
        emit: Any = getattr(math, name)
        return emit(x)

    def log1p(self, x: Value) -> Value:
        """Emit ``ln(1 + x)``; MLIR's own leaves out what rounding the sum does."""
        one = self.number(1)
        total = arith.addf(x, one)
        # The logarithm is nearly linear in that error.
        found = arith.mulf(self.of("log", total), arith.divf(x, arith.subf(total, one)))
        return arith.select(self.equal(total, 1), x, found)

    def equal(self, x: Value, number: float) -> Value:
        return arith.cmpf(arith.CmpFPredicate.OEQ, x, self.number(number))

    def less(self, x: Value, y: Value) -> Value:
        return arith.cmpf(arith.CmpFPredicate.OLT, x, y)

    def is_not_finite(self, x: Value) -> Value:
        infinity = self.number(_INFINITY)
        return arith.cmpf(arith.CmpFPredicate.UEQ, math.absf(x), infinity)
