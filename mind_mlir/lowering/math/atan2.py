"""The angle of a point, emitted as plain arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.lowering.math.exponentials import Format
    from mind_mlir.lowering.math.float_emitter import FloatEmitter

#: tan(1 / 2): from here on, atan(t) is pi / 4 less that of (1 - t) / (1 + t), and 1 / 2 or more.
ATAN_SPLIT = 0.5463
#: pi / 4 in two parts; products of the first one with integers up to 4 are exact.
QUARTER = (0.7853981633974483, 3.061616997868383e-17)
#: pi / 2 in two parts of f32.
HALVES = (1.5707963705062866, -4.371138828673793e-08)
#: (atan(t) - t) / t**3 as a polynomial of t**2 for abs(t) <= `ATAN_SPLIT` in f64, by the bits of results. The
#: tests derive all coefficients anew.
ATAN_TAILS = {
    32: (
        -0.3333333212158559,
        0.19999893927678283,
        -0.1428255195737525,
        0.11065886456465271,
        -0.0873762606799934,
        0.061097565030666295,
        -0.02598343011148279,
    ),
    64: (
        -0.3333333333333332,
        0.19999999999996537,
        -0.1428571428534032,
        0.1111111109066195,
        -0.09090908426189225,
        0.0769229365845589,
        -0.0666646358611149,
        0.058802699261794183,
        -0.052477077737433264,
        0.04678225924761634,
        -0.04016491833372069,
        0.030466208197118615,
        -0.01730654092143795,
        0.0052260339369501535,
    ),
}
#: (atan(t) - t) / t**3 as a polynomial of t**2 for abs(t) <= 1, in f32.
SHORT_ATAN_TAIL = (
    -0.3333332691354956,
    0.19999671752784254,
    -0.1427984263462203,
    0.11058294370969446,
    -0.08811383973128455,
    0.06742323945659164,
    -0.04470100467858794,
    0.022549967550886636,
    -0.007323032215231962,
    0.0011148675981198872,
)
#: Where the greater coordinate of f32 is between these, its reciprocal and what quotients lack are normal.
_USUAL_END = 2.0**100


def emit_atan2(n: FloatEmitter, _format: Format, y: str, x: str) -> str:
    """Emit the angle of the point (x, y), of f32 in f64 where nothing is fused or coordinates are extreme."""
    if n.width == 64 or not n.fuses:
        return n.in_f64(_atan2, y, x)
    greater, found = _short_atan2(n, y, x)
    usual = n.both(n.less(n.number(1 / _USUAL_END), greater), n.less(greater, n.number(_USUAL_END)))
    return n.rarely(n.negation(usual), [y, x], found, lambda inside, *given: inside.in_f64(_atan2, *given))


def _atan2(n: FloatEmitter, bits: int, y: str, x: str) -> str:
    zero, one = n.number(0.0), n.number(1.0)
    a, b = n.magnitude(y), n.magnitude(x)
    steep = n.less(b, a)
    greater, lesser = n.select(steep, a, b), n.select(steep, b, a)
    # Sums and halves of what is greater stay within the range.
    scale = n.select(n.less(n.number(2.0**1000), greater), n.number(2.0**-60), one)
    scale = n.select(n.less(greater, n.number(2.0**-900)), n.number(2.0**100), scale)
    greater, lesser = n.multiply(greater, scale), n.multiply(lesser, scale)
    # What both are, two infinities or two zeros, is at the same distance from either axis, or on the first.
    endless = n.equal(lesser, n.number(math.inf))
    lesser, greater = n.select(endless, one, lesser), n.select(endless, one, greater)
    greater = n.select(n.equal(greater, zero), one, greater)
    far = n.less(n.multiply(greater, n.number(ATAN_SPLIT)), lesser)
    above = n.select(far, n.subtract(lesser, greater), lesser)
    below = n.select(far, n.add(lesser, greater), greater)
    t = n.divide(above, below)
    z = n.multiply(t, t)
    # The angle is k pi / 4 and s atan(t), with s = 1 or -1.
    k, s = n.select(far, one, zero), one
    k = n.select(steep, n.subtract(n.number(2.0), k), k)
    s = n.select(steep, n.number(-1.0), s)
    is_left = n.is_negative(x)
    k = n.select(is_left, n.subtract(n.number(4.0), k), k)
    s = n.select(is_left, n.subtract(zero, s), s)
    t = n.multiply(t, s)
    small = n.fma(n.multiply(t, z), n.polynomial(z, ATAN_TAILS[bits]), n.multiply(k, n.number(QUARTER[1])))
    whole = n.multiply(k, n.number(QUARTER[0]))
    # The rounding error of the one large sum goes to the small terms.
    total = n.add(whole, t)
    error = n.subtract(t, n.subtract(total, whole))
    angle = n.with_sign(n.magnitude(n.add(total, n.add(small, error))), y)
    return n.select(n.equal(x, x), angle, x)


def _short_atan2(n: FloatEmitter, y: str, x: str) -> tuple[str, str]:
    """Emit the greater coordinate and the angle of a point, where neither coordinate is extreme.

    NaN gives NaN, or a greater coordinate that is NaN.
    """
    zero, half_turn = n.number(0.0), n.number(-0.0)
    a, b = n.magnitude(y), n.magnitude(x)
    steep = n.less(b, a)
    greater = n.select(steep, a, b)
    # The angle is a multiple of pi / 2 and that of a quotient, whose numerator has its sign.
    side = n.and_bits(n.bits(x), n.bits(half_turn))
    turned = n.float_of(n.xor_bits(n.bits(x), n.bits(half_turn)))
    lesser = n.select(steep, turned, n.float_of(n.xor_bits(n.bits(a), side)))
    inverse = n.divide(n.number(1.0), greater)
    t = n.multiply(lesser, inverse)
    lack = n.multiply(n.fma(n.multiply(t, n.number(-1.0)), greater, lesser), inverse)
    z = n.multiply(t, t)
    small = n.fma(n.multiply(t, z), n.polynomial(z, SHORT_ATAN_TAIL), lack)
    is_left = n.is_negative(x)
    parts = []
    for part in HALVES:
        of_left = n.select(is_left, n.number(2 * part), zero)
        parts.append(n.select(steep, n.number(part), of_left))
    # The rounding error of the one large sum goes to the small terms.
    total = n.add(parts[0], t)
    error = n.subtract(t, n.subtract(total, parts[0]))
    angle = n.add(total, n.add(n.add(small, parts[1]), error))
    return greater, n.with_sign(n.magnitude(angle), y)
