"""Sine, cosine, tangent and the angle of a point, emitted as plain arithmetic.

Those of f32 are computed in f64, which leaves no error but that of the last rounding. Arguments are reduced
by the nearest multiple k of pi / 2, subtracted in parts of so few bits that products with k are exact. Where
k has more bits than that allows, LLVM's intrinsic takes over, lane by lane: that is the C library, which is
right for all arguments.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.math.exponentials import Format
    from mind_mlir.lowering.math.float_emitter import FloatEmitter


@dataclass(frozen=True)
class Angles:
    """Constants of the functions of angles for results of one format; all of the functions compute in f64.

    Attributes:
        end: From here on, in magnitude, k has too many bits.
        parts: pi / 2, as a sum: products of k with all but the last are exact.
        sin_tail: (sin(r) - r) / r**3 as a polynomial of r**2 for abs(r) <= pi / 4.
        cos_tail: (cos(r) - 1 + r**2 / 2) / r**4 likewise.
        atan_tail: (atan(t) - t) / t**3 as a polynomial of t**2 for abs(t) <= `ATAN_SPLIT`.
    """

    end: float
    parts: tuple[float, ...]
    sin_tail: tuple[float, ...]
    cos_tail: tuple[float, ...]
    atan_tail: tuple[float, ...]


#: tan(1 / 2): from here on, atan(t) is pi / 4 less that of (1 - t) / (1 + t), and 1 / 2 or more.
ATAN_SPLIT = 0.5463
#: pi / 4 in two parts; products of the first one with integers up to 4 are exact.
QUARTER = (0.7853981633974483, 3.061616997868383e-17)
#: By the number of bits. The tests derive all coefficients anew.
ANGLES = {
    32: Angles(
        end=2.0**22,
        parts=(1.5707963267341256, 6.077100506506192e-11),
        sin_tail=(
            -0.16666666640806438,
            0.008333329305938178,
            -0.00019839312623921794,
            2.7181250247091288e-06,
        ),
        cos_tail=(0.04166664687180694, -0.0013887367790301457, 2.4438484290635784e-05),
        atan_tail=(
            -0.3333333212158559,
            0.19999893927678283,
            -0.1428255195737525,
            0.11065886456465271,
            -0.0873762606799934,
            0.061097565030666295,
            -0.02598343011148279,
        ),
    ),
    64: Angles(
        end=2.0**20,
        parts=(1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32),
        sin_tail=(
            -0.1666666666666663,
            0.008333333333322123,
            -0.000198412698295937,
            2.755731362288795e-06,
            -2.50507480064786e-08,
            1.5896244735067907e-10,
        ),
        cos_tail=(
            0.0416666666666666,
            -0.0013888888888874144,
            2.480158728949621e-05,
            -2.7557314356565013e-07,
            2.0875723871582485e-09,
            -1.1359679914425572e-11,
        ),
        atan_tail=(
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
    ),
}


def emit_sin(n: FloatEmitter, _format: Format, x: str) -> str:
    """Emit sin x as that of what is left of x, or the cosine where an odd number of pi / 2 was taken off."""
    return _emit_angle(n, x, "sin", lambda w, angles, t: _sine(w, angles, t, 0))


def emit_cos(n: FloatEmitter, _format: Format, x: str) -> str:
    """Emit cos x as sin(x + pi / 2)."""
    return _emit_angle(n, x, "cos", lambda w, angles, t: _sine(w, angles, t, 1))


def emit_tan(n: FloatEmitter, _format: Format, x: str) -> str:
    """Emit tan x as the quotient of the sine and the cosine."""
    return _emit_angle(n, x, "tan", _tangent)


def emit_atan2(n: FloatEmitter, format_: Format, y: str, x: str) -> str:
    """Emit the angle of the point (x, y) as a multiple of pi / 4 and that of a quotient near zero."""
    if format_.bits == 64:
        return _atan2(n, ANGLES[64], y, x)
    w, (wide_y, wide_x) = n.widened(y, x)
    return n.narrowed(w, _atan2(w, ANGLES[32], wide_y, wide_x))


def _emit_angle(n: FloatEmitter, x: str, name: str, emit: Callable[[FloatEmitter, Angles, str], str]) -> str:
    angles = ANGLES[n.width]
    rare = n.less(n.number(angles.end), n.magnitude(x))
    if n.width == 64:
        found = emit(n, angles, x)
    else:
        w, (wide,) = n.widened(x)
        found = n.narrowed(w, emit(w, angles, wide))
    return n.rarely(rare, [x], found, lambda inside, argument: inside.intrinsic(name, argument))


def _reduced(n: FloatEmitter, angles: Angles, x: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Emit the sine and the cosine of x - k pi / 2, and an integer whose low bits are those of k.

    Each of the two is what is rounded, and in f64 what rounding took, too.
    """
    # The sum with so large a number has a last place of one: it is rounded to an integer, which then is
    # the low bits of the significand.
    shift = n.number(1.5 * 2.0**52)
    shifted = n.fma(x, n.number(2 / math.pi), shift)
    k = n.subtract(shifted, shift)
    first, *middle, last = angles.parts
    if not middle:
        r = n.fma(k, n.number(-last), n.fma(k, n.number(-first), x))
        z = n.multiply(r, r)
        cosine = n.fma(z, n.polynomial(z, angles.cos_tail), n.number(-0.5))
        sine = n.fma(n.multiply(r, z), n.polynomial(z, angles.sin_tail), r)
        return (sine,), (n.fma(z, cosine, n.number(1.0)),), n.bits(shifted)
    # The first difference is exact; of the others, what rounding takes is known exactly, and kept.
    r, rest = n.subtract(x, n.multiply(k, n.number(first))), ""
    for part in middle:
        product = n.multiply(k, n.number(part))
        less = n.subtract(r, product)
        taken = n.subtract(r, less)
        # In general, that is two differences: neither of the two is always the greater.
        error = n.add(n.subtract(r, n.add(less, taken)), n.subtract(taken, product))
        r, rest = less, n.add(rest, error) if rest else error
    rest = n.fma(k, n.number(-last), rest)
    total = n.add(r, rest)
    return *_near_zero(n, angles, total, n.add(n.subtract(r, total), rest)), n.bits(shifted)


def _near_zero(n: FloatEmitter, angles: Angles, r: str, tail: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Emit the sine and the cosine of a number up to pi / 4, ``r`` and a small ``tail`` of it, as sums."""
    one, half = n.number(1.0), n.number(0.5)
    z = n.multiply(r, r)
    halved = n.multiply(z, half)
    near = n.subtract(one, halved)
    sine = n.fma(n.multiply(r, z), n.polynomial(z, angles.sin_tail), n.multiply(tail, near))
    error = n.subtract(n.subtract(one, near), halved)
    small = n.fma(n.multiply(z, z), n.polynomial(z, angles.cos_tail), n.subtract(error, n.multiply(r, tail)))
    return _sum(n, r, sine), _sum(n, near, small)


def _sum(n: FloatEmitter, x: str, y: str) -> tuple[str, str]:
    """Emit the sum of a number and of one that is smaller, and what rounding takes from it."""
    total = n.add(x, y)
    return total, n.add(n.subtract(x, total), y)


def _odd(n: FloatEmitter, k: str) -> str:
    """Emit an integer of which all bits are set where k is odd, and none where it is even."""
    return n.subtract_bits(n.integer(0), n.and_bits(k, n.integer(1)))


def _turned(n: FloatEmitter, x: str, k: str, place: int) -> str:
    """Emit ``x``, negated where the bit of k at ``place`` is set."""
    sign = n.shift_left(k if place == 0 else n.shift_right(k, place), 63)
    return n.float_of(n.xor_bits(n.bits(x), sign))


def _sine(n: FloatEmitter, angles: Angles, x: str, quarters: int) -> str:
    sine, cosine, k = _reduced(n, angles, x)
    if quarters:
        k = n.add_bits(k, n.integer(quarters))
    found = _turned(n, n.chosen_bits(_odd(n, k), cosine[0], sine[0]), k, 1)
    # A zero keeps its sign.
    return found if quarters else n.select(n.equal(x, n.number(0.0)), x, found)


def _tangent(n: FloatEmitter, angles: Angles, x: str) -> str:
    sine, cosine, k = _reduced(n, angles, x)
    odd = _odd(n, k)
    above = [n.chosen_bits(odd, *pair) for pair in zip(cosine, sine, strict=True)]
    below = [n.chosen_bits(odd, *pair) for pair in zip(sine, cosine, strict=True)]
    found = n.divide(above[0], below[0])
    if len(above) > 1:  # what the quotient lacks because both were rounded
        lack = n.subtract(above[1], n.multiply(found, below[1]))
        found = n.add(found, n.divide(lack, below[0]))
    found = _turned(n, found, k, 0)
    return n.select(n.equal(x, n.number(0.0)), x, found)


def _atan2(n: FloatEmitter, angles: Angles, y: str, x: str) -> str:
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
    small = n.fma(n.multiply(t, z), n.polynomial(z, angles.atan_tail), n.multiply(k, n.number(QUARTER[1])))
    whole = n.multiply(k, n.number(QUARTER[0]))
    # The rounding error of the one large sum goes to the small terms.
    total = n.add(whole, t)
    error = n.subtract(t, n.subtract(total, whole))
    angle = n.with_sign(n.magnitude(n.add(total, n.add(small, error))), y)
    return n.select(n.equal(x, x), angle, x)
