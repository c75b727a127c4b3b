"""Arithmetic element by element, with broadcasting; ONNX's operands have one dtype."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule


def unary(function: Callable[[Array], Array]) -> OnnxRule:
    """Return the rule of a function of one operand."""
    return OnnxRule(lambda use: function(use[0]), is_elementwise=True)


def binary(function: Callable[[Array, Array], Array], *, is_plain: bool = False) -> OnnxRule:
    """Return the rule of a function of two operands."""
    return OnnxRule(lambda use: function(use[0], use[1]), is_plain=is_plain, is_elementwise=True)


def with_numbers(function: Callable[..., Array], **defaults: float) -> OnnxRule:
    """Return the rule of a function of one operand, and of numbers, which are attributes with defaults."""
    return OnnxRule(
        lambda use: function(use[0], *[use.attr(name, default) for name, default in defaults.items()]),
        is_elementwise=True,
    )


def divide(x: Array, y: Array) -> Array:
    """Return a quotient; that of integers is rounded towards zero."""
    return mnp.div(x, y)


def _plain_divide(use: NodeUse) -> Array:
    x, y = use[0], use[1]
    if not use.stays:
        return divide(x, y)
    if x.dtype.kind not in "iu":
        return x / y
    quotient = np.abs(x) // np.maximum(np.abs(y), 1)
    return (quotient * np.sign(x) * np.sign(y)).astype(x.dtype)


def _power(use: NodeUse) -> Array:
    base, exponent = use[0], use[1]
    if base.dtype == exponent.dtype:
        if use.is_known(1) and use.operands[1].size == 1 and base.dtype.kind == "f":
            return _known_power(base, float(use.operands[1].reshape(())), exponent)
        return mnp.power(base, exponent)
    if base.dtype.kind == "f":
        return mnp.power(base, exponent.astype(base.dtype))
    if exponent.dtype.kind == "f":
        return mnp.power(base.astype(exponent.dtype), exponent).astype(base.dtype)
    wide = np.dtype(np.int64)
    return mnp.power(base.astype(wide), exponent.astype(wide)).astype(base.dtype)


def _known_power(base: Array, number: float, exponent: Array) -> Array:
    """Return a power whose exponent is one number: small ones are products."""
    if exponent.ndim > base.ndim or number not in (0.5, 1.0, 2.0, 3.0):
        return mnp.power(base, exponent)
    return mnp.sqrt(base) if number == 0.5 else base ** int(number)


def _modulo(use: NodeUse) -> Array:
    x, y = use[0], use[1]
    fmod = use.attr("fmod", 0)
    if use.stays:
        return np.fmod(x, y) if fmod else np.mod(x, y)
    return mnp.fmod(x, y) if fmod else x % y


def _sum(use: NodeUse) -> Array:
    return reduce(lambda x, y: x + y, use.all())


def _clip(use: NodeUse) -> Array:
    x = use[0]
    low, high = use.attr("min"), use.attr("max")
    if low is None:
        low = use.get(1)
    if high is None:
        high = use.get(2)
    for limit in (low, high):
        if limit is not None and getattr(limit, "size", 1) != 1:
            broken("its limits are no scalars")
    if low is not None:
        x = mnp.maximum(x, _scalar(low))
    return x if high is None else mnp.minimum(x, _scalar(high))


def _scalar(limit: Array) -> Array:
    return limit if isinstance(limit, float) else limit.reshape(())


def _extreme(traced: Callable[[Array, Array], Array], plain: Callable[[Array, Array], Array]) -> OnnxRule:
    def emit(use: NodeUse) -> Array:
        return reduce(plain if use.stays else traced, use.all())

    return OnnxRule(emit, is_plain=True, is_elementwise=True)


RULES = {
    "Add": binary(lambda x, y: x + y, is_plain=True),
    "Sub": binary(lambda x, y: x - y, is_plain=True),
    "Mul": binary(lambda x, y: x * y, is_plain=True),
    "Div": OnnxRule(_plain_divide, is_plain=True, is_elementwise=True),
    "Pow": OnnxRule(_power, is_elementwise=True),
    "Mod": OnnxRule(_modulo, is_plain=True),
    "Sum": OnnxRule(_sum, is_elementwise=True),
    "Mean": OnnxRule(lambda use: _sum(use) / len(use.operands), is_elementwise=True),
    "Max": _extreme(mnp.maximum, np.maximum),
    "Min": _extreme(mnp.minimum, np.minimum),
    "Clip": OnnxRule(_clip, is_elementwise=True),
    "Abs": unary(mnp.abs),
    "Neg": OnnxRule(lambda use: -use[0], is_plain=True, is_elementwise=True),
    "Sign": unary(mnp.sign),
    "Ceil": unary(mnp.ceil),
    "Floor": unary(mnp.floor),
    "Round": unary(mnp.round_even),
    "Sqrt": unary(mnp.sqrt),
    "Reciprocal": unary(mnp.reciprocal),
    "Exp": unary(mnp.exp),
    "Log": unary(mnp.log),
    "Erf": unary(mnp.erf),
}
