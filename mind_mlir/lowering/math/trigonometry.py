"""Sine, cosine and tangent, emitted as plain arithmetic.

Arguments are reduced by the nearest multiple k of pi / 2, subtracted in parts of so few bits that products
with k are exact: of f32, in f64. Where k has more bits than that allows, LLVM's intrinsic takes over, lane by
lane: that is the C library, which is right for all arguments. What is left is an f32 for sines and cosines
of f32; tangents, which have three roundings more, are computed in f64, with no error but that of the last.
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
    """Constants of the functions of angles in f64, for results of one format.

    Attributes:
        end: From here on, in magnitude, k has too many bits.
        parts: pi / 2, as a sum: products of k with all but the last are exact.
        sin_tail: (sin(r) - r) / r**3 as a polynomial of r**2 for abs(r) <= pi / 4.
        cos_tail: (cos(r) - 1 + r**2 / 2) / r**4 likewise.
    """

    end: float
    parts: tuple[float, ...]
    sin_tail: tuple[float, ...]
    cos_tail: tuple[float, ...]


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
    ),
}


#: `Angles.sin_tail` of f32 in f32.
SHORT_SIN_TAIL = (-0.16666654612856413, 0.008332160975641902, -0.00019515312782821778)


def emit_sin(n: FloatEmitter, _format: Format, x: str) -> str:
    """Emit sin x as that of what is left of x, or the cosine where an odd number of pi / 2 was taken off."""
    return _emit_angle(n, x, "sin", lambda: _sine(n, x, 0))


def emit_cos(n: FloatEmitter, _format: Format, x: str) -> str:
    """Emit cos x as sin(x + pi / 2)."""
    return _emit_angle(n, x, "cos", lambda: _sine(n, x, 1))


def emit_tan(n: FloatEmitter, _format: Format, x: str) -> str:
    """Emit tan x as the quotient of the sine and the cosine."""
    return _emit_angle(n, x, "tan", lambda: n.in_f64(_tangent, x))


def _emit_angle(n: FloatEmitter, x: str, name: str, emit: Callable[[], str]) -> str:
    rare = n.less(n.number(ANGLES[n.width].end), n.magnitude(x))
    return n.rarely(rare, [x], emit(), lambda inside, argument: inside.intrinsic(name, argument))


def _left(n: FloatEmitter, angles: Angles, x: str) -> tuple[str, str, str]:
    """Emit x - k pi / 2, what rounding took from that, if anything, and an integer with the low bits of k."""
    # The sum with so large a number has a last place of one: it is rounded to an integer, which then is
    # the low bits of the significand.
    shift = n.number(1.5 * 2.0**52)
    shifted = n.fma(x, n.number(2 / math.pi), shift)
    k = n.subtract(shifted, shift)
    first, *middle, last = angles.parts
    if not middle:
        return n.fma(k, n.number(-last), n.fma(k, n.number(-first), x)), "", n.bits(shifted)
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
    return total, n.add(n.subtract(r, total), rest), n.bits(shifted)


def _reduced(n: FloatEmitter, angles: Angles, x: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Emit the sine and the cosine of x - k pi / 2, and an integer whose low bits are those of k.

    Each of the two is what is rounded, and in f64 what rounding took, too.
    """
    r, rest, k = _left(n, angles, x)
    if rest:
        return *_near_zero(n, angles, r, rest), k
    return *_plain_near_zero(n, r, angles.sin_tail, angles.cos_tail), k


def _plain_near_zero(
    n: FloatEmitter, r: str, sin_tail: tuple[float, ...], cos_tail: tuple[float, ...]
) -> tuple[tuple[str], tuple[str]]:
    """Emit the sine and the cosine of a number up to pi / 4."""
    z = n.multiply(r, r)
    cosine = n.fma(z, n.polynomial(z, cos_tail), n.number(-0.5))
    sine = n.fma(n.multiply(r, z), n.polynomial(z, sin_tail), r)
    return (sine,), (n.fma(z, cosine, n.number(1.0)),)


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
    sign = n.shift_left(k if place == 0 else n.shift_right(k, place), n.width - 1)
    return n.float_of(n.xor_bits(n.bits(x), sign))


def _sine(n: FloatEmitter, x: str, quarters: int) -> str:
    angles = ANGLES[n.width]
    if n.width == 64:
        sine, cosine, k = _reduced(n, angles, x)
    else:
        w, (wide,) = n.widened(x)
        r, _, k = _left(w, angles, wide)
        k = n.narrowed_bits(w, k)
        sine, cosine = _plain_near_zero(n, n.narrowed(w, r), SHORT_SIN_TAIL, angles.cos_tail)
    if quarters:
        k = n.add_bits(k, n.integer(quarters))
    found = _turned(n, n.chosen_bits(_odd(n, k), cosine[0], sine[0]), k, 1)
    # A zero keeps its sign.
    return found if quarters else n.select(n.equal(x, n.number(0.0)), x, found)


def _tangent(n: FloatEmitter, bits: int, x: str) -> str:
    sine, cosine, k = _reduced(n, ANGLES[bits], x)
    odd = _odd(n, k)
    above = [n.chosen_bits(odd, *pair) for pair in zip(cosine, sine, strict=True)]
    below = [n.chosen_bits(odd, *pair) for pair in zip(sine, cosine, strict=True)]
    found = n.divide(above[0], below[0])
    if len(above) > 1:  # what the quotient lacks because both were rounded
        lack = n.subtract(above[1], n.multiply(found, below[1]))
        found = n.add(found, n.divide(lack, below[0]))
    found = _turned(n, found, k, 0)
    return n.select(n.equal(x, n.number(0.0)), x, found)
