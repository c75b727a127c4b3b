"""The exponential, the logarithm, and what is made of them: tanh and erf, emitted as plain arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.mlir.special_tables import ERF_SPLIT, NARROW_EXP2, TABLES, TANH_SPLIT
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.math.float_emitter import FloatEmitter


@dataclass(frozen=True)
class Format:
    """A binary floating-point format, and the polynomials that are precise enough for it.

    ln 2 is split in two: products of the first part with an exponent are exact.

    Attributes:
        bits: width of a number.
        mantissa: width of the stored part of the significand.
        exp_range: arguments below the first give 0, above the second inf; what lies just outside does, too.
        exp_tail: (e**r - 1 - r) / r**2 for abs(r) <= ln(2) / 2; coefficients, lowest power first.
        log_tail: (ln(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2); if empty, there is:
        atanh_tail: (2 atanh(s) - 2 s) / s**3 for the same, as a polynomial of s**2, where s = f / (2 + f).
        ln2: the first part of ln 2, and the rest.
    """

    bits: int
    mantissa: int
    exp_range: tuple[float, float]
    exp_tail: tuple[float, ...]
    log_tail: tuple[float, ...]
    atanh_tail: tuple[float, ...]
    ln2: tuple[float, float]

    @property
    def bias(self) -> int:
        """The bias of the exponent: the number that is added to exponents in memory."""
        return (1 << (self.bits - self.mantissa - 2)) - 1


#: By the number of bits. The tests derive all coefficients anew. A polynomial of 21 terms would replace
#: log's division in f64; in f32 the division is what costs more.
FORMATS = {
    32: Format(
        bits=32,
        mantissa=23,
        exp_range=(-105.0, 89.0),
        exp_tail=(
            0.49999994,
            0.16666521,
            0.041668385,
            0.008368689,
            0.0013814656,
        ),
        log_tail=(
            0.33333313,
            -0.2500001,
            0.20002107,
            -0.16667974,
            0.1421978,
            -0.12406162,
            0.11886936,
            -0.116713546,
            0.067441136,
        ),
        atanh_tail=(),
        ln2=(0.693145751953125, 1.4286068e-06),
    ),
    64: Format(
        bits=64,
        mantissa=52,
        exp_range=(-746.0, 710.0),
        exp_tail=(
            0.5000000000000011,
            0.16666666666666413,
            0.04166666666653059,
            0.008333333333493946,
            0.001388888894349972,
            0.00019841269507381255,
            2.4801493248901794e-05,
            2.7557585948529786e-06,
            2.76301901887575e-07,
            2.5000101960724245e-08,
        ),
        log_tail=(),
        atanh_tail=(
            0.6666666666666734,
            0.39999999999415536,
            0.2857142874217807,
            0.22222198596489953,
            0.18183563026740893,
            0.15314085939693922,
            0.14795575112416728,
        ),
        ln2=(0.6931471805601177, -1.7239444525614835e-13),
    ),
}


def emit_exp(n: FloatEmitter, format_: Format, x: str, addend: str = "") -> str:
    """Emit e**x as 2**k e**r, where k is the integer nearest to x / ln 2.

    A small ``addend`` is added to r, and the result is rounded but once, nearly: what is exact stays exact.
    """
    x = _in_range(n, format_, x)
    large, small, both, power = exp_parts(n, format_, x, 2 * format_.bias, addend)
    one = n.number(1.0)
    if addend:
        total = n.add(one, large)
        p = n.add(total, n.add(small, n.subtract(large, n.subtract(total, one))))
    else:
        # Adding the exact part of r last leaves its rounding error out of all but the small terms.
        p = n.add(n.add(large, small), one)
    return _scaled(n, format_, p, both, power)


def emit_narrow_exp(n: FloatEmitter, format_: Format, x: str, narrow: str) -> str:
    """Emit 2**k 2**r, k + r = x / ln 2, which rounds to the ``narrow`` float that e**x does, if x is one."""
    x, inverse = _in_range(n, format_, x), n.number(1 / math.log(2))
    shift = n.number(1.5 * 2.0**format_.mantissa + 2 * format_.bias)
    shifted = n.fma(x, inverse, shift)
    k = n.subtract(shifted, shift)
    r = n.fma(x, inverse, n.subtract(n.number(-0.0), k))
    return _scaled(n, format_, n.polynomial(r, NARROW_EXP2[narrow]), n.bits(shifted), k)


def _in_range(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit the nearest argument of an exponential that 2**k is computed for."""
    low, high = format_.exp_range
    # Comparisons with NaN are false, so that it is kept.
    x = n.select(n.less(n.number(high), x), n.number(high), x)
    return n.select(n.less(x, n.number(low)), n.number(low), x)


def _scaled(n: FloatEmitter, format_: Format, p: str, both: str, power: str) -> str:
    """Emit ``p`` times 2**k; the low bits of the integer ``both`` are k + 2 bias, and ``power`` is k."""
    if n.scales:
        return n.scaled(p, power)
    # 2**k may be out of range where the result is not. Its halves never are, and since the first product
    # is exact, a subnormal result is rounded once. Shifting to the place of the exponent drops all bits
    # above k + 2 bias, and both halves of that are the biased exponents.
    half = n.shift_right(both, 1)
    scales = [n.shift_left(part, format_.mantissa) for part in (half, n.subtract_bits(both, half))]
    for scale in scales:
        p = n.multiply(p, n.float_of(scale))
    return p


def exp_parts(
    n: FloatEmitter, format_: Format, x: str, offset: int, addend: str = ""
) -> tuple[str, str, str, str]:
    """Emit two numbers, an integer and k: e**x is 2**k e**r, and e**r - 1 the sum of the first two.

    The first of them is what is exact of r; it is x itself where k is 0. The low bits of the integer are
    k + ``offset``. A small ``addend`` is part of r.
    """
    # The sum with so large a number has a last place of one: it is rounded to an integer, which then is
    # the low bits of the significand.
    shift = n.number(1.5 * 2.0**format_.mantissa + offset)
    shifted = n.fma(x, n.number(1 / math.log(2)), shift)
    k = n.subtract(shifted, shift)
    first, rest = format_.ln2
    large, small = n.fma(k, n.number(-first), x), n.multiply(k, n.number(-rest))
    if addend:
        small = n.add(small, addend)
    r = n.add(large, small)
    return large, n.fma(n.multiply(r, r), n.polynomial(r, format_.exp_tail), small), n.bits(shifted), k


def emit_expm1(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit e**x - 1 as twice the half of it, which is in range wherever the result is."""
    high = n.number(format_.exp_range[1])
    low = n.number(-float(format_.mantissa + 3))  # from there on, -1 is nearest
    t = n.select(n.less(high, x), high, x)
    t = n.select(n.less(t, low), low, t)  # NaN is kept
    large, small, both, _ = exp_parts(n, format_, t, format_.bias - 1)
    scale = n.float_of(n.shift_left(both, format_.mantissa))
    large = n.add(n.multiply(large, scale), n.subtract(scale, n.number(0.5)))
    half = n.add(large, n.multiply(small, scale))
    tiny = n.less(n.magnitude(x), n.number(2.0 ** -(format_.mantissa + 2)))
    return n.select(tiny, x, n.add(half, half))


def emit_log1p(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit ln(1 + x): that of the sum, and what rounding took from the sum, as part of the small terms."""
    one = n.number(1.0)
    total = n.add(x, one)
    above = n.subtract(total, one)
    # In general, that is two differences: neither of the two is always the greater.
    error = n.add(n.subtract(one, n.subtract(total, above)), n.subtract(x, above))
    found = emit_log(n, format_, total, n.divide(error, total))
    tiny = n.less(n.magnitude(x), n.number(2.0 ** -(format_.mantissa + 2)))
    return n.select(tiny, x, found)


def emit_log(n: FloatEmitter, format_: Format, x: str, addend: str = "") -> str:
    """Emit ln x as e ln 2 + ln(1 + f), where x = 2**e (1 + f) and 1 + f is nearly in sqrt(1/2) to sqrt(2).

    A small ``addend`` is added to that.
    """
    e, f = log_parts(n, format_, x)
    first, rest = format_.ln2
    small = n.fma(*_log_tail(n, format_, f), n.multiply(e, n.number(rest)))
    small = n.fma(n.multiply(f, n.number(-0.5)), f, small)
    if addend:
        small = n.add(small, addend)
    # The rounding error of the one large sum is known exactly, and goes to the small terms. Near 1, e is
    # zero: the sum is f itself.
    scaled = n.multiply(e, n.number(first))
    total = n.add(scaled, f)
    error = n.subtract(f, n.subtract(total, scaled))
    result = n.add(total, n.add(small, error))
    if n.scales:
        return n.replaced(result, x, _EDGES_OF_LOG)
    infinity = n.number(math.inf)
    result = n.select(n.less(x, infinity), result, x)  # inf and NaN stay
    zero = n.number(0.0)
    edge = n.select(n.equal(x, zero), n.number(-math.inf), n.number(-math.nan))
    return n.select(n.not_less_equal(x, zero), result, edge)


#: What the logarithm of each class of numbers is, four bits each, the first in the lowest: NaN of both kinds
#: stay, 0 gives -inf, 1 what is computed, -inf NaN, inf itself, other negative numbers NaN, and positive ones
#: what is computed.
_EDGES_OF_LOG = 0x03530411


def log_parts(n: FloatEmitter, format_: Format, x: str) -> tuple[str, str]:
    """Emit e and f: x = 2**e (1 + f), and 1 + f is nearly in sqrt(1/2) to sqrt(2). Both are exact."""
    one = n.number(1.0)
    if n.scales:
        e, significand = n.exponent(x), n.significand(x)
        stays = n.less(significand, n.number(2 * math.sqrt(0.5)))
        e = n.select(stays, e, n.add(e, one))
        return e, n.subtract(n.select(stays, significand, n.multiply(significand, n.number(0.5))), one)
    up = format_.mantissa + 1
    subnormal = n.less(x, n.number(2.0 ** (1 - format_.bias)))
    # Adding the bits of 1 less those of sqrt(1/2) carries into the exponent from sqrt(2) on.
    root = n.bits_of(math.sqrt(0.5))
    both = n.bits(n.multiply(x, n.select(subnormal, n.number(2.0**up), one)))
    both = n.add_bits(both, n.integer(n.bits_of(1.0) - root))
    exponent = n.shift_right(both, format_.mantissa)
    significand = n.and_bits(both, n.integer((1 << format_.mantissa) - 1))
    f = n.subtract(n.float_of(n.add_bits(significand, n.integer(root))), one)
    # An integer becomes a float as the low bits of the significand of a power of two.
    large = 2.0**format_.mantissa
    offset = n.select(subnormal, n.number(large + format_.bias + up), n.number(large + format_.bias))
    return n.subtract(n.float_of(n.or_bits(exponent, n.integer(n.bits_of(large)))), offset), f


def _log_tail(n: FloatEmitter, format_: Format, f: str) -> tuple[str, str]:
    """Emit two factors of ln(1 + f) - f + f**2 / 2."""
    if format_.log_tail:
        return n.multiply(n.multiply(f, f), f), n.polynomial(f, format_.log_tail)
    # ln(1 + f) = 2 atanh(s) = 2 s + s t, where 2 s = f - f**2 / 2 + s f**2 / 2.
    s = n.divide(f, n.add(f, n.number(2.0)))
    square = n.multiply(s, s)
    t = n.multiply(square, n.polynomial(square, format_.atanh_tail))
    return s, n.fma(n.multiply(f, n.number(0.5)), f, t)


def emit_tanh(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit tanh x as E / (E + 2), where E = e**(2 x) - 1."""
    end = n.number(TABLES[format_.bits].tanh_end)
    t = n.magnitude(x)
    t = n.select(n.less(end, t), end, t)  # NaN is kept
    large, small, both, _ = exp_parts(n, format_, n.add(t, t), format_.bias)
    # Products with a power of two are exact. So is the first part of E where x is small.
    scale = n.float_of(n.shift_left(both, format_.mantissa))
    large = n.add(n.multiply(large, scale), n.subtract(scale, n.number(1.0)))
    small = n.multiply(small, scale)
    e = n.add(large, small)
    quotient = n.divide(e, n.add(e, n.number(2.0)))
    # There, E / 2 - E / 2 * E / (E + 2) is the more exact: the errors are those of the small terms.
    half = n.number(0.5)
    rest = n.subtract(small, n.multiply(e, quotient))
    near = n.fma(rest, half, n.multiply(large, half))
    return n.with_sign(n.select(n.less(t, n.number(TANH_SPLIT)), near, quotient), x)


def emit_erf(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit erf x as x + x p(x**2) for small x, else as 1 - e**q(x)."""
    tables = TABLES[format_.bits]
    one, end = n.number(1.0), n.number(tables.erf_end)
    near = n.fma(x, n.polynomial(n.multiply(x, x), tables.erf_tail), x)
    t = n.magnitude(x)
    t = n.select(n.less(end, t), end, t)  # NaN is kept
    large, small, both, _ = exp_parts(n, format_, n.polynomial(t, tables.erfc_log), format_.bias)
    scale = n.float_of(n.shift_left(both, format_.mantissa))
    # 1 - 2**k - 2**k (e**r - 1): the product is exact.
    far = n.subtract(n.subtract(one, scale), n.multiply(n.add(large, small), scale))
    return n.select(n.less(t, n.number(ERF_SPLIT)), near, n.with_sign(far, x))
