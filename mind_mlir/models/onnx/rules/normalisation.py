"""Normalisation by the statistics of a batch, of instances, of layers or of neighbouring channels."""

from __future__ import annotations

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.activations import standardised
from mind_mlir.models.functions.windows import SlidingWindows, reduced
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule


def _of_channels(numbers: Array, like: Array) -> Array:
    return numbers.reshape((-1, *[1] * (like.ndim - 2)))


def _batch(use: NodeUse) -> tuple[Array, ...]:
    x, scale, bias, mean, variance = [use[place] for place in range(5)]
    epsilon = use.attr("epsilon", 1e-5)
    if x.ndim < 2:
        broken(f"its input has rank {x.ndim}, and no channels")
    more: tuple[Array, ...] = ()
    if use.attr("training_mode", 0):
        momentum = use.attr("momentum", 0.9)
        axes = tuple([axis for axis in range(x.ndim) if axis != 1])
        wide = x.astype(mean.dtype)
        now = wide.mean(axis=axes)
        apart = wide - _of_channels(now, x)
        spread = (apart * apart).mean(axis=axes)
        more = (mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum))
        mean, variance = now, spread
    factor = scale.astype(mean.dtype) * mnp.rsqrt(variance + epsilon)
    shift = bias.astype(mean.dtype) - mean * factor
    if x.ndim == 2:
        return (x.astype(mean.dtype) * factor + shift).astype(x.dtype), *more
    wide = use.behind(0).astype(mean.dtype)
    return use.in_front((wide * factor + shift).astype(x.dtype)), *more


def _instance(use: NodeUse) -> Array:
    x, scale, bias = use[0], use[1], use[2]
    if x.ndim < 3:
        broken(f"its input has rank {x.ndim}, and no axes behind the channels")
    found, _, _ = standardised(x, tuple(range(2, x.ndim)), use.attr("epsilon", 1e-5))
    return found * _of_channels(scale, x) + _of_channels(bias, x)


def _layer(use: NodeUse) -> tuple[Array, ...]:
    x, scale = use[0], use[1]
    axis = use.axis(use.attr("axis", -1), x.ndim)
    wide = x.astype("f32") if use.attr("stash_type", 1) == 1 and x.dtype.itemsize < 4 else x
    found, mean, factor = standardised(wide, tuple(range(axis, x.ndim)), use.attr("epsilon", 1e-5))
    found = found.astype(x.dtype) * scale
    return (found + use[2] if use.has(2) else found), mean, factor


def _norm(use: NodeUse) -> Array:
    x, order = use[0], use.attr("p", 2)
    axis = use.axis(use.attr("axis", -1), x.ndim)
    if order not in (1, 2):
        broken(f"its norm is {order}, neither 1 nor 2")
    size = (
        abs(x).sum(axis=axis, keepdims=True)
        if order == 1
        else mnp.sqrt((x * x).sum(axis=axis, keepdims=True))
    )
    return mnp.where(size == 0, mnp.zeros_like(x), mnp.div(x, size))


def _local_response(use: NodeUse) -> Array:
    x, size = use[0], use.needed("size", int)
    if x.ndim < 3 or size < 1:
        broken(f"its size is {size}, and its input has rank {x.ndim}")
    alpha, beta, bias = use.attr("alpha", 1e-4), use.attr("beta", 0.75), use.attr("bias", 1.0)
    rows = (x * x).reshape((x.shape[0], x.shape[1], -1))
    low = (size - 1) // 2
    windows = SlidingWindows((size,), (1,), (1,), (low,), (size - 1 - low,))
    squares = reduced(rows, windows, "Sum", 1).reshape(x.shape)
    return mnp.div(x, mnp.power(squares * (alpha / size) + bias, mnp.full((), beta, x.dtype)))


def _mean_variance(use: NodeUse) -> Array:
    x = use[0]
    axes = use.axes(use.attr("axes", (0, 2, 3)), x.ndim)
    apart = x - x.mean(axis=axes, keepdims=True)
    spread = mnp.sqrt((apart * apart).mean(axis=axes, keepdims=True))
    return mnp.div(apart, spread + float(np.float32(1e-9)))


RULES = {
    "BatchNormalization": OnnxRule(_batch),
    "InstanceNormalization": OnnxRule(_instance),
    "LayerNormalization": OnnxRule(_layer),
    "LpNormalization": OnnxRule(_norm),
    "LRN": OnnxRule(_local_response),
    "MeanVarianceNormalization": OnnxRule(_mean_variance),
}
