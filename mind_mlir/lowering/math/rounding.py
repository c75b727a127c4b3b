"""Rounding to integers and the remainder of a truncated division, emitted as plain arithmetic.

Rounding rests on one sum: with a number whose last place is one, which rounds to the nearest integer. Numbers
that are as large are integers, and stay what they are, as infinities and NaN do. Signs are put back at the
end, so that zeros have them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.lowering.math.exponentials import Format
    from mind_mlir.lowering.math.float_emitter import FloatEmitter


def emit_round_even(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit the nearest integer, of two the even one."""
    return _where_small(n, format_, x, n.with_sign(_nearest(n, format_, n.magnitude(x)), x))


def emit_floor(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit the nearest integer, less one where that is greater."""
    nearest = n.with_sign(_nearest(n, format_, n.magnitude(x)), x)
    one, zero = n.number(1.0), n.number(0.0)
    return _where_small(n, format_, x, n.subtract(nearest, n.select(n.less(x, nearest), one, zero)))


def emit_ceil(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit the nearest integer, and one more where that is less."""
    nearest = n.with_sign(_nearest(n, format_, n.magnitude(x)), x)
    one, zero = n.number(1.0), n.number(0.0)
    found = n.add(nearest, n.select(n.less(nearest, x), one, zero))
    return _where_small(n, format_, x, n.with_sign(n.magnitude(found), x))


def emit_round(n: FloatEmitter, format_: Format, x: str) -> str:
    """Emit the nearest integer, of two the one away from zero."""
    size, one, zero = n.magnitude(x), n.number(1.0), n.number(0.0)
    nearest = _nearest(n, format_, size)
    below = n.subtract(nearest, n.select(n.less(size, nearest), one, zero))
    up = n.negation(n.less(n.subtract(size, below), n.number(0.5)))  # the difference is exact
    return _where_small(n, format_, x, n.with_sign(n.add(below, n.select(up, one, zero)), x))


def _nearest(n: FloatEmitter, format_: Format, size: str) -> str:
    large = n.number(2.0**format_.mantissa)
    return n.subtract(n.add(size, large), large)


def _where_small(n: FloatEmitter, format_: Format, x: str, rounded: str) -> str:
    return n.select(n.less(n.magnitude(x), n.number(2.0**format_.mantissa)), rounded, x)


#: Quotients below have products with numbers of f32 that f64 holds.
_END = 2.0**28


def emit_remainder(n: FloatEmitter, _format: Format, x: str, y: str) -> str:
    """Emit x - q y, where q is the quotient without its fraction: for f32, in f64; of f64, LLVM's operation.

    Rounding never takes a quotient of two numbers of f32 to an integer that it is below: it is at least one
    part in 2**24 away from that. So q is right, its product with y has 52 bits, and the difference is exact.
    """
    if n.width == 64:
        return n.remainder(x, y)
    w, (above, below) = n.widened(x, y)
    above, below = w.magnitude(above), w.magnitude(below)
    quotient, large = w.divide(above, below), w.number(2.0**52)
    nearest = w.subtract(w.add(quotient, large), large)
    whole = w.subtract(nearest, w.select(w.less(quotient, nearest), w.number(1.0), w.number(0.0)))
    found = n.narrowed(w, w.subtract(above, w.multiply(whole, below)))
    # What is infinite or NaN, and a division by zero, are rare, too.
    usual = w.both(w.less(quotient, w.number(_END)), w.less(below, w.number(2.0**128)))
    return n.rarely(
        n.negation(usual),
        [x, y],
        n.with_sign(found, x),
        lambda inside, *operands: inside.remainder(*operands),
    )
