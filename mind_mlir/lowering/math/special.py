"""The hyperbolic tangent and the error function, emitted as plain arithmetic.

Both are odd: they are computed of the magnitude, and get the sign of the argument at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.math.exponentials import exp_parts
from mind_mlir.mlir.special_tables import ERF_SPLIT, TABLES, TANH_SPLIT

if TYPE_CHECKING:
    from mind_mlir.lowering.math.exponentials import Format
    from mind_mlir.lowering.math.float_emitter import FloatEmitter


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
