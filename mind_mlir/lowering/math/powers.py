"""Powers and cube roots, emitted as plain arithmetic.

Those of f32 are computed in f64, which leaves no error but that of the last rounding, and has no subnormal
numbers among them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.math.exponentials import FORMATS, emit_exp, emit_log

if TYPE_CHECKING:
    from mind_mlir.lowering.math.exponentials import Format
    from mind_mlir.lowering.math.float_emitter import FloatEmitter

#: f64 whose exponential and logarithm are as precise as powers of f32 need: to 2**-34.
SHORT = dataclasses.replace(
    FORMATS[64],
    exp_tail=(
        0.5000000067523394,
        0.16666665870850528,
        0.04166629553439536,
        0.00833349681318299,
        0.0013944615341680443,
        0.00019790381860595356,
    ),
    atanh_tail=(0.6666666564645349, 0.40000334944484167, 0.2853732537536375, 0.23581811263727095),
)

#: A third of the bits of a number, as an integer, and this are nearly those of its cube root: to one in 30.
_CBRT_BITS = 715094163 << 32
#: 1 / cbrt(r) for r = t**3 / x near one, as a polynomial; FreeBSD's, which is good to 2**-23.
CBRT_TAIL = (
    1.87595182427177009643,
    -1.88497979543377169875,
    1.621429720105354466140,
    -0.758397934778766047437,
    0.145996192886612446982,
)


def emit_power(n: FloatEmitter, _format: Format, x: str, y: str) -> str:
    """Emit x**y as e**(y ln x) for f32; of f64, where that is not precise enough, it is LLVM's intrinsic."""
    if n.width == 64:
        return n.intrinsic("pow", x, y)
    w, (base, exponent) = n.widened(x, y)
    one, zero = w.number(1.0), w.number(0.0)
    size = w.magnitude(base)
    product = w.multiply(exponent, emit_log(w, SHORT, size))
    # Anything to the power of 0, and one to any power, is one: also of infinities and NaN.
    is_one = w.either(w.equal(exponent, zero), w.equal(base, one))
    endless = w.both(w.equal(size, one), w.equal(w.magnitude(exponent), w.number(math.inf)))
    found = w.select(w.either(is_one, endless), one, emit_exp(w, SHORT, product))
    # Of a negative number, the sign is that of odd powers, and there are none but integers and infinities.
    half = w.multiply(exponent, w.number(0.5))
    is_whole, is_even = _is_whole(w, exponent), _is_whole(w, half)
    odd = w.both(is_whole, w.negation(is_even))
    signed = w.select(odd, w.with_sign(found, base), found)
    finite = w.both(w.less(zero, size), w.less(size, w.number(math.inf)))
    wrong = w.both(w.both(w.less(base, zero), finite), w.negation(w.either(is_whole, is_one)))
    # A NaN that is the exponent stays.
    none = w.select(w.equal(exponent, exponent), w.number(math.nan), exponent)
    return n.narrowed(w, w.select(wrong, none, signed))


def _is_whole(n: FloatEmitter, x: str) -> str:
    """Emit whether ``x`` is an integer or infinite."""
    # The sum with a number whose last place is one is rounded to an integer; greater ones are such.
    size, large = n.magnitude(x), n.number(2.0**52)
    rounded = n.subtract(n.add(size, large), large)
    return n.either(n.equal(rounded, size), n.less(large, size))


def emit_cbrt(n: FloatEmitter, _format: Format, x: str) -> str:
    """Emit the root as a guess from the bits, made precise by a polynomial and by one of Newton's steps."""
    if n.width == 64:
        return _cbrt(n, x)
    w, (wide,) = n.widened(x)
    return n.narrowed(w, _cbrt(w, wide))


def _cbrt(n: FloatEmitter, x: str) -> str:
    size = n.magnitude(x)
    subnormal = n.less(size, n.number(2.0**-1022))
    scaled = n.multiply(size, n.select(subnormal, n.number(2.0**54), n.number(1.0)))
    # The upper 52 bits become a number as the low bits of a significand.
    large = n.number(2.0**52)
    bits = n.subtract(n.float_of(n.or_bits(n.shift_right(n.bits(scaled), 12), n.bits(large))), large)
    third = n.add(n.fma(bits, n.number(1 / 3), n.number(float(_CBRT_BITS >> 12))), large)
    guess = n.float_of(n.shift_left(n.bits(third), 12))
    r = n.multiply(n.multiply(guess, guess), n.divide(guess, scaled))
    guess = n.multiply(guess, n.polynomial(r, CBRT_TAIL))
    # With the lower half of its bits zero, the square is exact.
    t = n.float_of(n.and_bits(n.bits(guess), n.integer(-1 << 30)))
    quotient = n.divide(scaled, n.multiply(t, t))
    step = n.divide(n.subtract(quotient, t), n.add(n.add(t, t), quotient))
    root = n.fma(t, step, t)
    root = n.multiply(root, n.select(subnormal, n.number(2.0**-18), n.number(1.0)))
    # Zeros, infinities and NaN stay.
    ordinary = n.both(n.less(n.number(0.0), size), n.less(size, n.number(math.inf)))
    return n.select(ordinary, n.with_sign(root, x), x)
