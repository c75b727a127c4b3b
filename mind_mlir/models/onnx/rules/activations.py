"""Activations; those that are not here are functions of ONNX, whose bodies are read."""

from __future__ import annotations

import math
from collections.abc import Callable

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.activations import gelu, hard_sigmoid, log_softmax, softmax
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.arithmetic import unary


def _leaky(use: NodeUse) -> Array:
    x = use[0]
    return mnp.where(x < 0, x * use.attr("alpha", 0.01), x)


def _prelu(use: NodeUse) -> Array:
    x, slope = use[0], use[1]
    return mnp.where(x < 0, x * slope, x)


def _elu(use: NodeUse) -> Array:
    x = use[0]
    return mnp.where(x < 0, mnp.expm1(x) * use.attr("alpha", 1.0), x)


def _celu(use: NodeUse) -> Array:
    x, alpha = use[0], use.attr("alpha", 1.0)
    return mnp.maximum(x, 0.0) + mnp.minimum(mnp.expm1(x / alpha) * alpha, 0.0)


def _selu(use: NodeUse) -> Array:
    x = use[0]
    alpha, gamma = use.attr("alpha", 1.67326319217681884765625), use.attr("gamma", 1.05070102214813232421875)
    return mnp.where(x <= 0, mnp.expm1(x) * alpha, x) * gamma


def softplus(x: Array) -> Array:
    """Return the logarithm of one and an exponential, which may be beyond all numbers itself."""
    return mnp.maximum(x, 0.0) + mnp.log1p(mnp.exp(-abs(x)))


def _gelu(use: NodeUse) -> Array:
    x, approximate = use[0], use.attr("approximate", "none")
    if approximate not in ("none", "tanh"):
        broken(f"its attribute approximate is {approximate}, neither none nor tanh")
    return gelu(x, approximate=approximate)


def _shrink(use: NodeUse) -> Array:
    x, lambd, bias = use[0], use.attr("lambd", 0.5), use.attr("bias", 0.0)
    if x.dtype.kind in "iu":
        wide = x.astype("f32")
        return _shrunk(wide, lambd, bias).astype(x.dtype)
    return _shrunk(x, lambd, bias)


def _shrunk(x: Array, lambd: float, bias: float) -> Array:
    return mnp.where(x < -lambd, x + bias, mnp.where(x > lambd, x - bias, mnp.zeros_like(x)))


def _threshold(use: NodeUse) -> Array:
    x = use[0]
    return mnp.where(x > use.attr("alpha", 1.0), x, mnp.zeros_like(x))


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
    "LeakyRelu": OnnxRule(_leaky, is_elementwise=True),
    "PRelu": OnnxRule(_prelu, is_elementwise=True),
    "Elu": OnnxRule(_elu, is_elementwise=True),
    "Celu": OnnxRule(_celu, is_elementwise=True),
    "Selu": OnnxRule(_selu, is_elementwise=True),
    "HardSigmoid": OnnxRule(
        lambda use: hard_sigmoid(use[0], use.attr("alpha", 0.2), use.attr("beta", 0.5)), is_elementwise=True
    ),
    "HardSwish": unary(lambda x: x * hard_sigmoid(x)),
    "Softplus": unary(softplus),
    "Softsign": unary(lambda x: mnp.div(x, abs(x) + 1.0)),
    "Mish": unary(lambda x: x * mnp.tanh(softplus(x))),
    "Gelu": OnnxRule(_gelu, is_elementwise=True),
    "Swish": OnnxRule(
        lambda use: use[0] * mnp.logistic(use[0] * use.attr("alpha", 1.0)), is_elementwise=True
    ),
    "Shrink": OnnxRule(_shrink, is_elementwise=True),
    "ThresholdedRelu": OnnxRule(_threshold, is_elementwise=True),
    "Softmax": _along(softmax),
    "LogSoftmax": _along(log_softmax),
    "Hardmax": _along(_hardmax),
}
