"""Complex numbers in numpy rules: each product and sum of parts rounded on its own.

numpy's own multiplication fuses the two where the processor does, and so do not all of its builds agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array


def joined(real: Any, imaginary: Any) -> Array:
    """Return the complex numbers of these parts, bit for bit."""
    real, imaginary = np.asarray(real), np.asarray(imaginary)
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real, result.imag = real, imaginary
    return result


def multiply(left: Array, right: Array) -> Array:
    """Return ``(a + b i) (c + d i) = (a c - b d) + (a d + b c) i``; shapes broadcast."""
    a, b, c, d = left.real, left.imag, right.real, right.imag
    return joined(a * c - b * d, a * d + b * c)


def product(multiply: Callable[[Array, Array], Array], left: Array, right: Array) -> Array:
    """Return ``multiply``, linear in both factors; of complex numbers, made of that of their parts."""
    if left.dtype.kind != "c":
        return np.asarray(multiply(left, right))
    a, b, c, d = left.real, left.imag, right.real, right.imag
    return joined(multiply(a, c) - multiply(b, d), multiply(a, d) + multiply(b, c))


def divide(left: Array, right: Array) -> Array:
    """Return quotients by Smith's method, as numpy has it; shapes broadcast.

    A number divided by zero is its two parts divided by +0.0.
    """
    left, right = np.broadcast_arrays(left, right)
    a, b, c, d = left.real, left.imag, right.real, right.imag
    one, zero = c.dtype.type(1), c.dtype.type(0)
    ratio = d / c
    scale = one / (c + d * ratio)
    by_real = joined((a + b * ratio) * scale, (b - a * ratio) * scale)
    ratio = c / d
    scale = one / (d + c * ratio)
    by_imaginary = joined((b + a * ratio) * scale, (b * ratio - a) * scale)
    found = np.where(np.abs(c) >= np.abs(d), by_real, by_imaginary)
    return np.where((c == 0) & (d == 0), joined(a / zero, b / zero), found)


def reciprocal(value: Array) -> Array:
    """Return ``1 / value`` by Smith's method; that of zero is NaN in both parts."""
    c, d = value.real, value.imag
    one = c.dtype.type(1)
    ratio = d / c
    by_real = joined(one / (c + d * ratio), -(ratio / (c + d * ratio)))
    ratio = c / d
    by_imaginary = joined(ratio / (d + c * ratio), -(one / (d + c * ratio)))
    return np.where(np.abs(c) >= np.abs(d), by_real, by_imaginary)
