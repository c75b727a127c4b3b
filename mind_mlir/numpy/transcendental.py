"""Functions of floats that are made of a few operations each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import ml_dtypes

from mind_mlir.ir.types import DTypeKind
from mind_mlir.numpy.arrays import floats, op, together, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.numpy.creation import zeros_like
from mind_mlir.numpy.elementwise import isinf, isnan
from mind_mlir.support import argument_checks
from mind_mlir.tracing import operators
from mind_mlir.tracing.operators import choose

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike
    from mind_mlir.tracing.array import TracedArray


@spelled("Atan2")
def arctan(x: ArrayLike, /) -> Array:
    """Return the angle, between -pi/2 and pi/2, whose tangent is ``x``."""
    return op("Atan2", floats(x), 1.0)


@spelled("Atan2")
def arcsin(x: ArrayLike, /) -> Array:
    """Return the angle, between -pi/2 and pi/2, whose sine is ``x``; NaN where there is none."""
    found = floats(x)
    return op("Atan2", found, op("Sqrt", (1.0 - found) * (1.0 + found)))


@spelled("Atan2")
def arccos(x: ArrayLike, /) -> Array:
    """Return the angle, between 0 and pi, whose cosine is ``x``; NaN where there is none."""
    found = floats(x)
    return op("Atan2", op("Sqrt", (1.0 - found) * (1.0 + found)), found)


@spelled("Expm1")
def sinh(x: ArrayLike, /) -> Array:
    """Return the hyperbolic sine."""
    found = floats(x)
    size, half = op("Abs", found), op("Exp", op("Abs", found) * 0.5)
    low = op("Expm1", op("Minimum", size, 1.0))
    small = 0.5 * (low + low / (low + 1.0))
    return _signed(choose(size < 1.0, small, half * (0.5 * half) - 0.5 / half / half), found)


@spelled("Exp")
def cosh(x: ArrayLike, /) -> Array:
    """Return the hyperbolic cosine."""
    half = op("Exp", op("Abs", floats(x)) * 0.5)
    return half * (0.5 * half) + 0.5 / half / half


@spelled("Log1p")
def arcsinh(x: ArrayLike, /) -> Array:
    """Return the number whose hyperbolic sine is ``x``."""
    found = floats(x)
    size = op("Abs", found)
    inverse = 1.0 / size
    return _signed(op("Log1p", size + size / (inverse + op("Sqrt", inverse * inverse + 1.0))), found)


@spelled("Log1p")
def arccosh(x: ArrayLike, /) -> Array:
    """Return the number, 0 or greater, whose hyperbolic cosine is ``x``; NaN where there is none."""
    more = floats(x) - 1.0
    return op("Log1p", more + op("Sqrt", more) * op("Sqrt", more + 2.0))


@spelled("Log1p")
def arctanh(x: ArrayLike, /) -> Array:
    """Return the number whose hyperbolic tangent is ``x``; NaN where there is none."""
    found = floats(x)
    size = op("Abs", found)
    return _signed(0.5 * op("Log1p", 2.0 * size / (1.0 - size)), found)


@spelled("Sqrt")
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the length of the diagonal of two sides, without overflow on the way."""
    x, y = (op("Abs", each) for each in together(floats(x1), floats(x2)))
    most, least = op("Maximum", x, y), op("Minimum", x, y)
    ratio = least / choose(operators.compare("Equal", most, 0.0), 1.0, most)
    endless = op("Or", isinf(x), isinf(y))
    return choose(endless, math.inf, most * op("Sqrt", 1.0 + ratio * ratio))


@spelled("Log")
def log2(x: ArrayLike, /) -> Array:
    """Return the logarithm to base 2."""
    return op("Log", floats(x)) / math.log(2)


@spelled("Log")
def log10(x: ArrayLike, /) -> Array:
    """Return the logarithm to base 10."""
    return op("Log", floats(x)) / math.log(10)


@spelled("Power")
def exp2(x: ArrayLike, /) -> Array:
    """Return 2 to the power of ``x``."""
    return op("Power", 2.0, floats(x))


@spelled("Log1p")
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the logarithm of the sum of exponentials, without overflow on the way."""
    x, y = together(floats(x1), floats(x2))
    most = op("Maximum", x, y)
    apart = choose(operators.compare("Equal", x, y), 0.0, op("Abs", x - y))
    return most + op("Log1p", op("Exp", -apart))


@spelled("Mul")
def deg2rad(x: ArrayLike, /) -> Array:
    """Convert degrees to radians."""
    return floats(x) * (math.pi / 180)


@spelled("Mul")
def rad2deg(x: ArrayLike, /) -> Array:
    """Convert radians to degrees."""
    return floats(x) * (180 / math.pi)


@spelled("Real")
def real(val: ArrayLike, /) -> Array:
    """Return the real parts of complex numbers, and other numbers as they are."""
    found = traced(val)
    return op("Real", found) if found.value.type.dtype.kind is DTypeKind.COMPLEX else found


@spelled("Imag")
def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary parts of complex numbers; those of other numbers are 0."""
    found = traced(val)
    return op("Imag", found) if found.value.type.dtype.kind is DTypeKind.COMPLEX else zeros_like(found)


@spelled("Complex")
def conjugate(x: ArrayLike, /) -> Array:
    """Return complex numbers with the opposite imaginary parts, and other numbers as they are."""
    found = traced(x)
    if found.value.type.dtype.kind is not DTypeKind.COMPLEX:
        return found
    return op("Complex", op("Real", found), -op("Imag", found))


@spelled("Atan2")
def angle(z: ArrayLike, /, deg: bool = False) -> Array:
    """Return the angles of complex numbers, in radians or degrees; those of real ones are 0 or pi."""
    found = floats(z)
    is_complex = found.value.type.dtype.kind is DTypeKind.COMPLEX
    real, imaginary = (op("Real", found), op("Imag", found)) if is_complex else (found, 0.0)
    radians = op("Atan2", imaginary, real)
    return radians * (180 / math.pi) if argument_checks.flag(deg, "deg") else radians


@spelled("Maximum")
def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the greater of both elementwise, of a number and NaN the number."""
    return _number_of("Maximum", x1, x2)


@spelled("Minimum")
def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the lesser of both elementwise, of a number and NaN the number."""
    return _number_of("Minimum", x1, x2)


@spelled("Select")
def nan_to_num(
    x: ArrayLike, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Replace NaN, and infinities by the greatest and the least number, or by the numbers given."""
    found = traced(x)
    dtype = found.value.type.dtype
    if dtype.kind not in (DTypeKind.FLOAT, DTypeKind.COMPLEX):
        return found
    if dtype.kind is DTypeKind.COMPLEX:
        parts = [
            nan_to_num(op(each, found), nan=nan, posinf=posinf, neginf=neginf) for each in ("Real", "Imag")
        ]
        return op("Complex", *parts)
    most = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]  # ml_dtypes has no types
    limits = most if posinf is None else posinf, -most if neginf is None else neginf
    for number, limit in zip((math.inf, -math.inf), limits, strict=True):
        found = choose(operators.compare("Equal", found, number), limit, found)
    return choose(isnan(found), nan, found)


@spelled("Compare")
def isclose(
    a: ArrayLike, b: ArrayLike, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> Array:
    """Return elementwise whether both are apart by no more than ``atol`` and the part ``rtol`` of ``b``."""
    x, y = together(floats(a), floats(b))
    near = operators.compare("LessEqual", op("Abs", x - y), op("Abs", y) * rtol + atol)
    found = op("Or", op("And", near, op("IsFinite", y)), operators.compare("Equal", x, y))
    return (
        op("Or", found, op("And", isnan(x), isnan(y)))
        if argument_checks.flag(equal_nan, "equal_nan")
        else found
    )


@spelled("Compare")
def allclose(
    a: ArrayLike, b: ArrayLike, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> Array:
    """Return whether all elements are close, as `isclose` says."""
    return traced(isclose(a, b, rtol, atol, equal_nan=equal_nan)).all()


@spelled("Abs")
def fabs(x: ArrayLike, /) -> Array:
    """Return absolute values, of integers as floats."""
    return op("Abs", floats(x))


@spelled("Mul")
def polyval(p: ArrayLike, x: ArrayLike, /) -> Array:
    """Return the values at ``x`` of the polynomial of the coefficients ``p``, the highest power's first."""
    factors, found = together(p, x)
    total = found * 0
    for place in range(factors.size):
        total = total * found + factors[place]
    return total


def _signed(size: TracedArray, like: TracedArray) -> TracedArray:
    """Return ``size``, which is 0 where ``like`` is, with the sign of that."""
    return choose(operators.compare("Equal", like, 0.0), like, choose(like < 0.0, -size, size))


def _number_of(opcode: str, x1: ArrayLike, x2: ArrayLike) -> TracedArray:
    x, y = together(x1, x2)
    if x.value.type.dtype.kind is not DTypeKind.FLOAT:
        return op(opcode, x, y)
    return choose(isnan(x), y, choose(isnan(y), x, op(opcode, x, y)))


degrees, radians, conj = rad2deg, deg2rad, conjugate
acos, asin, atan, acosh, asinh, atanh = arccos, arcsin, arctan, arccosh, arcsinh, arctanh
