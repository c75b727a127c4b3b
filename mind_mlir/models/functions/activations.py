"""What networks are activated by, and the normalisation of what they compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    Array: TypeAlias = Any


def gelu(x: Array, *, approximate: str = "none") -> Array:
    """Return the share of a number that is below it in the normal distribution, times the number."""
    if approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (mnp.tanh(inner) + 1.0)
    return x * 0.5 * (mnp.erf(x * math.sqrt(0.5)) + 1.0)


def hard_sigmoid(x: Array, alpha: float = 1 / 6, beta: float = 0.5) -> Array:
    """Return a line between 0 and 1."""
    return mnp.minimum(mnp.maximum(x * alpha + beta, 0.0), 1.0)


def softmax(x: Array, axis: int) -> Array:
    """Return exponentials that sum to 1 along an axis."""
    powers = mnp.exp(x - x.max(axis=axis, keepdims=True))
    return mnp.div(powers, powers.sum(axis=axis, keepdims=True))


def log_softmax(x: Array, axis: int) -> Array:
    """Return the logarithms of `softmax`."""
    below = x - x.max(axis=axis, keepdims=True)
    return below - mnp.log(mnp.exp(below).sum(axis=axis, keepdims=True))


def log_sum_exp(x: Array, axes: Sequence[int]) -> Array:
    """Return the logarithms of sums of exponentials along axes, which stay."""
    top = x.max(axis=tuple(axes), keepdims=True)
    top = mnp.where(mnp.is_finite(top), top, mnp.zeros_like(top))
    return mnp.log(mnp.exp(x - top).sum(axis=tuple(axes), keepdims=True)) + top


def standardised(x: Array, axes: Sequence[int], epsilon: float) -> tuple[Array, Array, Array]:
    """Return an array with mean 0 and variance 1 along axes; its mean, and the factor that it took."""
    mean = x.mean(axis=tuple(axes), keepdims=True)
    apart = x - mean
    factor = mnp.rsqrt((apart * apart).mean(axis=tuple(axes), keepdims=True) + epsilon)
    return apart * factor, mean, factor
