"""Functions of angles and their like, by those that there are operations of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    Array: TypeAlias = Any

_LN2 = math.log(2)
#: Squares of greater numbers are not taken.
_GREAT = 1e9


def sinh(x: Array) -> Array:
    """Return hyperbolic sines: of small numbers without cancellation, of great ones without overflow."""
    size = abs(x)
    step = mnp.expm1(size)
    small = (step + mnp.div(step, step + 1.0)) * 0.5
    half = mnp.exp(size - _LN2)
    found = mnp.where(size > 1.0, half - mnp.div(0.25, half), small)
    return mnp.where(x < 0.0, -found, found)


def cosh(x: Array) -> Array:
    """Return hyperbolic cosines."""
    half = mnp.exp(abs(x) - _LN2)
    return half + mnp.div(0.25, half)


def asinh(x: Array) -> Array:
    """Return what the hyperbolic sine is `x` of."""
    size = abs(x)
    bounded = mnp.minimum(size, _GREAT)
    square = bounded * bounded
    near = mnp.log1p(bounded + mnp.div(square, mnp.sqrt(square + 1.0) + 1.0))
    found = mnp.where(size > _GREAT, mnp.log(size) + _LN2, near)
    return mnp.where(x < 0.0, -found, found)


def acosh(x: Array) -> Array:
    """Return what the hyperbolic cosine is `x` of."""
    above = x - 1.0
    near = mnp.log1p(above + mnp.sqrt(above) * mnp.sqrt(above + 2.0))
    return mnp.where(x > _GREAT, mnp.log(x) + _LN2, near)


def atanh(x: Array) -> Array:
    """Return what the hyperbolic tangent is `x` of."""
    return (mnp.log1p(x) - mnp.log1p(-x)) * 0.5


def _other_leg(x: Array) -> Array:
    return mnp.sqrt((1.0 - x) * (1.0 + x))


def asin(x: Array) -> Array:
    """Return what the sine is `x` of."""
    return mnp.atan2(x, _other_leg(x))


def acos(x: Array) -> Array:
    """Return what the cosine is `x` of."""
    return mnp.atan2(_other_leg(x), x)


def atan(x: Array) -> Array:
    """Return what the tangent is `x` of."""
    return mnp.atan2(x, mnp.ones_like(x))
