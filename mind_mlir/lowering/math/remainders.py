"""The remainder of a truncated division, exact, as plain arithmetic where the quotient is small enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.lowering.math.exponentials import Format
    from mind_mlir.lowering.math.float_emitter import FloatEmitter

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
