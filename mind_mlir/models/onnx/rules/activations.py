"""Activations; those that are not here are functions of ONNX, whose bodies are read."""

from __future__ import annotations

import math
from collections.abc import Callable

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.activations import gelu, hard_sigmoid, log_softmax, softmax
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.arithmetic import binary, unary, with_numbers


def _selu(x: Array, alpha: float, gamma: float) -> Array:
    return mnp.where(x <= 0, mnp.expm1(x) * alpha, x) * gamma


def _celu(x: Array, alpha: float) -> Array:
    return mnp.maximum(x, 0.0) + mnp.minimum(mnp.expm1(x / alpha) * alpha, 0.0)


def softplus(x: Array) -> Array:
    """Return the logarithm of one and an exponential, which may be beyond all numbers itself."""
    return mnp.maximum(x, 0.0) + mnp.log1p(mnp.exp(-abs(x)))


def _gelu(use: NodeUse) -> Array:
    x, approximate = use[0], use.attr("approximate", "none")
    if approximate not in ("none", "tanh"):
        broken(f"its attribute approximate is {approximate}, neither none nor tanh")
    return gelu(x, approximate=approximate)


def _shrink(x: Array, lambd: float, bias: float) -> Array:
    if x.dtype.kind in "iu":
        return _shrink(x.astype("f32"), lambd, bias).astype(x.dtype)
    return mnp.where(x < -lambd, x + bias, mnp.where(x > lambd, x - bias, mnp.zeros_like(x)))


def _hardmax(x: Array, axis: int) -> Array:
    found = mnp.iota(shape=x.shape, dtype="i64", axis=axis) == x.argmax(axis=axis, keepdims=True)
    return found.astype(x.dtype)


def _along(function: Callable[[Array, int], Array]) -> OnnxRule:
    def emit(use: NodeUse) -> Array:
        x = use[0]
        if not x.ndim:
            return function(x.reshape(1), 0).reshape(())
        if use.version >= 13:
            return function(x, use.axis(use.attr("axis", -1), x.ndim))
        # Before, all axes from this one on were one.
        axis = use.axis(use.attr("axis", 1), x.ndim + 1)
        rows = x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
        return function(rows, 1).reshape(x.shape)

    return OnnxRule(emit)


RULES = {
    "Relu": unary(lambda x: mnp.where(x <= 0, mnp.zeros_like(x), x)),  # NaN stays
    "Sigmoid": unary(mnp.logistic),
    "LeakyRelu": with_numbers(lambda x, alpha: mnp.where(x < 0, x * alpha, x), alpha=0.01),
    "PRelu": binary(lambda x, slope: mnp.where(x < 0, x * slope, x)),
    "Elu": with_numbers(lambda x, alpha: mnp.where(x < 0, mnp.expm1(x) * alpha, x), alpha=1.0),
    "Celu": with_numbers(_celu, alpha=1.0),
    "Selu": with_numbers(_selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "HardSigmoid": with_numbers(hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": unary(lambda x: x * hard_sigmoid(x)),
    "Softplus": unary(softplus),
    "Softsign": unary(lambda x: mnp.div(x, abs(x) + 1.0)),
    "Mish": unary(lambda x: x * mnp.tanh(softplus(x))),
    "Gelu": OnnxRule(_gelu, is_elementwise=True),
    "Swish": with_numbers(lambda x, alpha: x * mnp.logistic(x * alpha), alpha=1.0),
    "Shrink": with_numbers(_shrink, lambd=0.5, bias=0.0),
    "ThresholdedRelu": with_numbers(lambda x, alpha: mnp.where(x > alpha, x, mnp.zeros_like(x)), alpha=1.0),
    "Softmax": _along(softmax),
    "LogSoftmax": _along(log_softmax),
    "Hardmax": _along(_hardmax),
}
