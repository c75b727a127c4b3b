"""Powers and cube roots, emitted as plain arithmetic.

Logarithms and exponentials of powers of f32 are computed in f64, which leaves no error but that of the last
rounding; so are roots where nothing fuses. Powers of f64 have exponents of two numbers each, as
they are large where powers are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.math.exponentials import FORMATS, emit_exp, log_parts

if TYPE_CHECKING:
    from mind_mlir.lowering.math.exponentials import Format
    from mind_mlir.lowering.math.float_emitter import FloatEmitter

#: log2(1 + f) / f for sqrt(1/2) <= 1 + f <= sqrt(2), and (2**r - 1) / r for abs(r) <= 1/2; coefficients,
#: lowest power first. They are as precise as powers of f32 need: to 2**-35 and 2**-28. The tests derive them.
LOG2_TAIL = (
    1.4426950408688963,
    -0.7213475208677655,
    0.48089836127783037,
    -0.3606736748533307,
    0.28853730485996903,
    -0.24045317923080253,
    0.20617498239457774,
    -0.18029981013698917,
    0.1587745905971623,
    -0.1431707165876639,
    0.14473340191364104,
    -0.14275775074926142,
    0.07730307351958199,
)
EXP2_TAIL = (
    0.6931472027945559,
    0.24022647921517046,
    0.05550332614836728,
    0.009618436765541685,
    0.0013398814180381146,
    0.00015353414062254392,
)
#: Beyond, powers of two are zero and infinite as f32.
_MOST_DOUBLINGS = 200.0

#: What is behind 2 s + 2/3 s**3 in 2 atanh(s), divided by s**5, as a series in s**2: to 2**-53 for s < 0.172.
_ATANH = tuple(2 / (2 * place + 1) for place in range(2, 12))
#: Two thirds, in two parts.
_TWO_THIRDS = (2 / 3, 2.0**-54 * 2 / 3)

#: Four thirds of the bits of one, less a third of those of a number, are nearly those of the reciprocal of
#: its cube root: to one in 26 with this added, as a part of the exponent.
_CBRT_SHIFT = -0.0615
#: 1 / cbrt(1 - h) is 1 + h times the first series where abs(h) < 0.12, to 2**-18, and then the second one.
_CBRT_TAILS = ((1 / 3, 2 / 9, 14 / 81, 35 / 243), (1 / 3,))


def emit_power(n: FloatEmitter, format_: Format, x: str, y: str) -> str:
    """Emit x**y as a power of e, or of two for f32; it is LLVM's of f64 where nothing is fused."""
    if n.width == 64 and not n.fuses:
        return n.intrinsic("pow", x, y)
    size = n.magnitude(x)
    if n.width == 64:
        product, rest = _exponent(n, format_, size, y)
        found = emit_exp(n, format_, product, rest)
    else:
        found = _power_of_two(n, format_, size, y)
    return _power(n, format_, x, y, size, found)


def _power_of_two(n: FloatEmitter, format_: Format, size: str, y: str) -> str:
    """Emit size**y as 2**(y log2(size)), of f32; the parts of the size are exact, and what follows is f64."""
    e, f = log_parts(n, format_, size)
    if not n.scales:  # infinities and NaN are their own logarithms, and their exponents by instruction
        e = n.select(n.less(size, n.number(math.inf)), e, size)
        e = n.select(n.equal(size, n.number(0.0)), n.number(-math.inf), e)
    w, (e, f, y) = n.widened(e, f, y)
    product = w.multiply(y, w.fma(f, w.polynomial(f, LOG2_TAIL), e))
    low, high = w.number(-_MOST_DOUBLINGS), w.number(_MOST_DOUBLINGS)
    product = w.select(w.less(high, product), high, product)  # NaN is kept
    product = w.select(w.less(product, low), low, product)
    # The sum with so large a number is rounded to an integer, the low bits of the significand.
    shift = w.number(1.5 * 2.0**52)
    shifted = w.add(product, shift)
    r = w.subtract(product, w.subtract(shifted, shift))
    power = w.fma(r, w.polynomial(r, EXP2_TAIL), w.number(1.0))
    return n.narrowed(w, w.float_of(w.add_bits(w.bits(power), w.shift_left(w.bits(shifted), 52))))


def _exponent(n: FloatEmitter, format_: Format, size: str, y: str) -> tuple[str, str]:
    """Emit y ln x as two numbers, whose sum is off by 2**-62 of itself; the first one may be infinite."""
    e, f = log_parts(n, format_, size)
    one, zero = n.number(1.0), n.number(0.0)
    # s = f / (2 + f): x is (1 + s) / (1 - s), but for the power of two.
    two = n.number(2.0)
    below = n.add(f, two)
    below_rest = n.subtract(f, n.subtract(below, two))
    inverse = n.divide(one, below)
    s = n.multiply(f, inverse)
    minus = n.multiply(s, n.number(-1.0))
    s_rest = n.multiply(n.fma(minus, below_rest, n.fma(minus, below, f)), inverse)
    # 2 atanh(s) is 2 s + s**3 (2/3 + 2/5 s**2 + ...), of which all but what is behind 2/3 is in two parts.
    square = _product(n, (s, s_rest), (s, s_rest))
    rest = n.multiply(square[0], n.polynomial(square[0], _ATANH))
    third, third_rest = _TWO_THIRDS
    factor, lost = _sum(n, n.number(third), rest)
    cube = _product(n, (s, s_rest), _product(n, square, (factor, n.add(lost, n.number(third_rest)))))
    # The greater of the two terms is first, or zero.
    total, lost = _sum(n, n.multiply(e, n.number(format_.ln2[0])), n.add(s, s))
    total, more = _sum(n, total, cube[0])
    small = n.add(n.fma(e, n.number(format_.ln2[1]), n.add(s_rest, s_rest)), cube[1])
    log = _sum(n, total, n.add(n.add(lost, more), small))
    # Infinities and NaN are their own logarithms.
    end = n.select(n.equal(size, zero), n.number(-math.inf), size)
    ordinary = n.both(n.less(zero, size), n.less(size, n.number(math.inf)))
    log = (n.select(ordinary, log[0], end), log[1])
    product, rest = _product(n, (y, zero), log)
    return product, n.select(n.less(n.magnitude(product), n.number(1024.0)), rest, zero)


def _sum(n: FloatEmitter, x: str, y: str) -> tuple[str, str]:
    """Emit a sum and what rounding took from it; ``x`` is not of lesser magnitude, or zero."""
    total = n.add(x, y)
    return total, n.subtract(y, n.subtract(total, x))


def _product(n: FloatEmitter, x: tuple[str, str], y: tuple[str, str]) -> tuple[str, str]:
    """Emit the product of two numbers of two parts each, as such."""
    total = n.multiply(x[0], y[0])
    lost = n.fma(x[0], y[0], n.multiply(total, n.number(-1.0)))
    return total, n.add(lost, n.fma(x[0], y[1], n.multiply(x[1], y[0])))


def _power(n: FloatEmitter, format_: Format, base: str, exponent: str, size: str, found: str) -> str:
    """Emit a power of which ``found`` is that of its magnitude, ``size``."""
    one, zero, infinity = n.number(1.0), n.number(0.0), n.number(math.inf)
    # Anything to the power of 0, and one to any power, is one: also of infinities and NaN.
    is_one = n.either(n.equal(exponent, zero), n.equal(base, one))
    endless = n.both(n.equal(size, one), n.equal(n.magnitude(exponent), infinity))
    found = n.select(n.either(is_one, endless), one, found)
    # Of a negative number, the sign is that of odd powers, and there are none but integers and infinities.
    half = n.multiply(exponent, n.number(0.5))
    is_whole, is_even = _is_whole(n, format_, exponent), _is_whole(n, format_, half)
    odd = n.both(is_whole, n.negation(is_even))
    signed = n.select(odd, n.with_sign(found, base), found)
    finite = n.both(n.less(zero, size), n.less(size, infinity))
    wrong = n.both(n.both(n.less(base, zero), finite), n.negation(n.either(is_whole, is_one)))
    # A NaN that is the exponent stays.
    none = n.select(n.equal(exponent, exponent), n.number(math.nan), exponent)
    return n.select(wrong, none, signed)


def _is_whole(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit whether ``x`` is an integer or infinite."""
    if n.fuses:  # processors that fuse have an instruction
        return n.equal(n.intrinsic("roundeven", x), x)
    # The sum with a number whose last place is one is rounded to an integer; greater ones are such.
    size, large = n.magnitude(x), n.number(2.0**format_.mantissa)
    rounded = n.subtract(n.add(size, large), large)
    return n.either(n.equal(rounded, size), n.less(large, size))


def emit_cbrt(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit the root by a guess from the bits, made precise by polynomials and by one of Newton's steps."""
    if n.width == 64 or n.fuses:
        return _cbrt(n, format_, x)
    w, (wide,) = n.widened(x)
    return n.narrowed(w, _cbrt(w, FORMATS[64], wide))


def _cbrt(n: FloatEmitter, format_: Format, x: str) -> str:
    size, up = n.magnitude(x), 3 * (format_.mantissa // 3 + 1)
    subnormal = n.less(size, n.number(2.0 ** (1 - format_.bias)))
    scaled = n.multiply(size, n.select(subnormal, n.number(2.0**up), n.number(1.0)))
    inverse = _inverse_cbrt(n, format_, scaled)
    square = n.multiply(inverse, inverse)
    root = n.multiply(scaled, square)
    if n.fuses:
        minus, power = n.multiply(root, n.number(-1.0)), n.multiply(root, root)
        lost = n.fma(minus, root, power)
        rest = n.multiply(n.fma(lost, root, n.fma(minus, power, scaled)), square)
    else:
        # With the lower half of its bits zero, the square is exact.
        root = n.float_of(n.and_bits(n.bits(root), n.integer(-1 << 30)))
        quotient = n.divide(scaled, n.multiply(root, root))
        rest = n.multiply(n.multiply(n.subtract(quotient, root), inverse), root)
    root = n.fma(rest, n.number(1 / 3), root)
    root = n.multiply(root, n.select(subnormal, n.number(2.0 ** (-up // 3)), n.number(1.0)))
    # Zeros, infinities and NaN stay.
    ordinary = n.both(n.less(n.number(0.0), size), n.less(size, n.number(math.inf)))
    return n.select(ordinary, n.with_sign(root, x), x)


def _inverse_cbrt(n: FloatEmitter, format_: Format, size: str) -> str:
    """Emit the reciprocal of the root of what is positive and not subnormal, without a division."""
    # The upper bits become a number as the low bits of a significand.
    places, large = format_.bits - format_.mantissa, n.number(2.0**format_.mantissa)
    bits = n.subtract(n.float_of(n.or_bits(n.shift_right(n.bits(size), places), n.bits(large))), large)
    begin = round((format_.bias * 4 / 3 + _CBRT_SHIFT) * 2.0 ** (format_.mantissa - places))
    third = n.add(n.fma(bits, n.number(-1 / 3), n.number(begin)), large)
    y = n.float_of(n.shift_left(n.bits(third), places))
    minus = n.multiply(size, n.number(-1.0))
    for tail in _CBRT_TAILS[: 1 if n.width == 32 else 2]:
        h = n.fma(n.multiply(minus, y), n.multiply(y, y), n.number(1.0))
        y = n.fma(n.multiply(y, h), n.polynomial(h, tail), y)
    return y
