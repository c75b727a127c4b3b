"""The quantile of the normal distribution: Wichura's algorithm AS241, PPND16 (1988), in f64 (docs/random.md).

Every operation is rounded on its own, to nearest even, and there is no call of a library: so the bits are the
same on every machine. It stands here twice, for numpy and as what linalg bodies compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: Numerators of the quotients of polynomials, lowest power first: of the middle, of the tail up to `FAR`, and
#: of what is beyond.
NUMERATORS = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
)
#: Denominators, in the same way.
DENOMINATORS = (
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)
#: The middle reaches as far from the median.
MIDDLE = 0.425
#: Where the polynomials of the tail change, as ``sqrt(-log(p))``.
FAR = 5.0
#: What is subtracted from that to give the argument of the tail's polynomials.
SHIFTS = (1.6, 5.0)
CENTRE = 0.180625

#: ``log(1 + f)`` by the polynomial of fdlibm's `e_log.c`, lowest power of ``(f / (2 + f))**2`` first.
LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
#: ``log(2)`` in two parts, of which the first has trailing zeros.
LN2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
#: The bits of ``sqrt(0.5)``, as fdlibm cuts it: fractions are brought between that and its double.
LEAST_FRACTION = 0x3FE6A09E00000000
EXPONENT = 52


def logarithm(x: Array) -> Array:
    """Return the natural logarithm of positive normal f64 numbers, to an error below one unit."""
    bits = x.view(np.int64)
    exponent = (bits - np.int64(LEAST_FRACTION)) >> np.int64(EXPONENT)
    f = (bits - (exponent << np.int64(EXPONENT))).view(np.float64) - 1.0
    k = exponent.astype(np.float64)
    s = f / (f + 2.0)
    z = s * s
    polynomial = z * _horner(z, LOG)
    square = 0.5 * f * f
    return np.asarray(k * LN2[0] - ((square - (s * (square + polynomial) + k * LN2[1])) - f))


def tail_quantile(p: Array) -> Array:
    """Return what is above all but a share ``p`` of a normal distribution, for f64 in ``(0, 0.5]``."""
    q = 0.5 - p
    r = np.sqrt(-logarithm(p))
    piece = np.where(q <= MIDDLE, 0, np.where(r <= FAR, 1, 2))
    argument = np.select([piece == 0, piece == 1], [CENTRE - q * q, r - SHIFTS[0]], r - SHIFTS[1])
    above, below = (
        _horner(argument, [np.array(column)[piece] for column in zip(*table, strict=True)])
        for table in (NUMERATORS, DENOMINATORS)
    )
    return np.asarray(np.where(piece == 0, above * q, above) / below)


def _horner(x: Array, coefficients: Sequence[Any]) -> Array:
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return np.asarray(total)


@dataclass(frozen=True, slots=True)
class QuantileEmitter:
    """Emits the same on scalars, in the body of a linalg operation.

    Attributes:
        mlir: The bindings.
        far: Whether numbers may be so small that their tail is the far one.
    """

    mlir: Any
    far: bool

    def quantile(self, p: Any) -> Any:
        """Emit `tail_quantile` of a scalar of f64."""
        arith, number = self.mlir.arith, self._number
        q = arith.subf(number(0.5), p)
        r = self.mlir.math.sqrt(arith.negf(self._logarithm(p)))
        is_middle = self._at_most(q, MIDDLE)
        is_near = self._at_most(r, FAR) if self.far else None

        def chosen(values: Sequence[Any]) -> Any:
            tail = values[1] if is_near is None else arith.select(is_near, values[1], values[2])
            return arith.select(is_middle, values[0], tail)

        shifts = [arith.subf(r, number(shift)) for shift in SHIFTS[: 2 if self.far else 1]]
        argument = chosen([arith.subf(number(CENTRE), arith.mulf(q, q)), *shifts])
        above, below = (
            self._horner(
                argument, [chosen([number(each) for each in column]) for column in zip(*table, strict=True)]
            )
            for table in (NUMERATORS, DENOMINATORS)
        )
        return arith.divf(arith.select(is_middle, arith.mulf(above, q), above), below)

    def _logarithm(self, x: Any) -> Any:
        arith, number = self.mlir.arith, self._number
        bits = arith.bitcast(self._integer(64), x)
        reduced = arith.subi(bits, self._whole(LEAST_FRACTION))
        exponent = arith.shrsi(reduced, self._whole(EXPONENT))
        fraction = arith.subi(bits, arith.shli(exponent, self._whole(EXPONENT)))
        f = arith.subf(arith.bitcast(self._float, fraction), number(1.0))
        # It fits: many processors convert vectors of i32, but none of i64.
        k = arith.sitofp(self._float, arith.trunci(self._integer(32), exponent))
        s = arith.divf(f, arith.addf(f, number(2.0)))
        z = arith.mulf(s, s)
        polynomial = arith.mulf(z, self._horner(z, [number(each) for each in LOG]))
        square = arith.mulf(arith.mulf(number(0.5), f), f)
        high, low = (arith.mulf(k, number(part)) for part in LN2)
        rest = arith.addf(arith.mulf(s, arith.addf(square, polynomial)), low)
        return arith.subf(high, arith.subf(arith.subf(square, rest), f))

    def _horner(self, x: Any, coefficients: Sequence[Any]) -> Any:
        arith, total = self.mlir.arith, coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            total = arith.addf(arith.mulf(total, x), coefficient)
        return total

    def _at_most(self, x: Any, limit: float) -> Any:
        arith = self.mlir.arith
        return arith.cmpf(arith.CmpFPredicate.OLE, x, self._number(limit))

    @property
    def _float(self) -> Any:
        return self.mlir.ir.F64Type.get()

    def _integer(self, bits: int) -> Any:
        return self.mlir.ir.IntegerType.get_signless(bits)

    def _number(self, value: float) -> Any:
        return self.mlir.arith.constant(self._float, value)

    def _whole(self, value: int) -> Any:
        return self.mlir.arith.constant(self._integer(64), value)
