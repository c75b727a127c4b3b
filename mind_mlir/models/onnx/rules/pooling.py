"""Pooling: the greatest element, the mean or a norm of each window."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.windows import SlidingWindows, counted, greatest, means, reduced
from mind_mlir.models.onnx.graphs.refusals import broken, check_few
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.convolution import check_image
from mind_mlir.models.onnx.rules.windows import windows_of

#: Where the greatest element of a larger window lies is not looked for: each of them is compared by itself.
_MAX_TAPS = 1024


def _windows(use: NodeUse, extents: Sequence[int]) -> tuple[SlidingWindows, tuple[int, ...]]:
    """Return the windows of a node, and what it says is padded behind these."""
    windows = windows_of(use, extents)
    found = windows.with_last(extents) if use.attr("ceil_mode", 0) else windows
    if min(found.counts(extents), default=1) < 1:
        broken(f"windows of {list(windows.spans)} do not fit {list(extents)} with their padding")
    return found, windows.high


def _max_pool(use: NodeUse) -> tuple[Array, ...]:
    x = use[0]
    check_image(x, "input")
    windows, _ = _windows(use, x.shape[2:])
    if len(use.node.outputs) < 2 or not use.node.outputs[1]:
        return (use.in_front(reduced(use.behind(0), windows, "Max", 1)),)
    check_few(math.prod(windows.kernel), _MAX_TAPS, "elements in a window with places")
    order = list(range(x.ndim))
    if use.attr("storage_order", 0):
        order = [0, 1, *range(x.ndim - 1, 1, -1)]
    numbers = np.arange(math.prod(x.shape)).reshape([x.shape[axis] for axis in order])
    return greatest(x, numbers.transpose(np.argsort(order)), windows)


def _average(use: NodeUse) -> Array:
    x = use[0]
    check_image(x, "input")
    extents = x.shape[2:]
    windows, behind = _windows(use, extents)
    first, last = [0] * len(extents), list(extents)
    if use.attr("count_include_pad", 0):
        first = [-low for low in windows.low]
        last = [extent + high for extent, high in zip(extents, behind, strict=True)]
    return use.in_front(
        means(use.behind(0), windows, np.maximum(counted(extents, windows, first, last), 1), 1)
    )


def _norm(use: NodeUse) -> Array:
    x, order = use[0], use.attr("p", 2)
    check_image(x, "input")
    windows, _ = _windows(use, x.shape[2:])
    return use.in_front(_root(reduced(_power(use.behind(0), order), windows, "Sum", 1), order))


def _power(x: Array, order: float) -> Array:
    return (
        x * x
        if order == 2
        else abs(x)
        if order == 1
        else mnp.power(abs(x), mnp.full((), float(order), x.dtype))
    )


def _root(x: Array, order: float) -> Array:
    return mnp.sqrt(x) if order == 2 else x if order == 1 else mnp.power(x, mnp.full((), 1 / order, x.dtype))


def _whole(use: NodeUse, reduce: Callable[[Array, tuple[int, ...]], Array]) -> Array:
    """Return what is computed of all elements of each channel."""
    if use[0].ndim < 3:
        broken(f"its input has rank {use[0].ndim}, and no axes behind the channels")
    image = use.behind(0)
    return use.in_front(reduce(image, tuple(range(1, image.ndim - 1))))


def _global_norm(use: NodeUse) -> Array:
    order = use.attr("p", 2)
    return _whole(use, lambda x, axes: _root(_power(x, order).sum(axis=axes, keepdims=True), order))


def _unpool(use: NodeUse) -> Array:
    x, places = use[0], use[1]
    windows = windows_of(use, x.shape[2:])
    extents = [
        (extent - 1) * stride + size - low - high
        for extent, size, stride, low, high in zip(
            x.shape[2:], windows.kernel, windows.strides, windows.low, windows.high, strict=True
        )
    ]
    shape = (*x.shape[:2], *extents)
    if use.has(2):
        shape = use.ints(2, "the shape of the result")
    small = math.prod(x.shape[:2]) * math.prod(extents)
    nothing: Array = mnp.zeros(small, x.dtype)
    flat = nothing.at[places.reshape(-1)].set(x.reshape(-1)).reshape((*x.shape[:2], *extents))
    if tuple(shape) == flat.shape:
        return flat
    # Places count in the array as it was without the shape that is given, which stands at its head.
    margins = [(0, want - have) for want, have in zip(shape, flat.shape, strict=True)]
    return mnp.pad(flat, margins)


RULES = {
    "MaxPool": OnnxRule(_max_pool),
    "AveragePool": OnnxRule(_average),
    "LpPool": OnnxRule(_norm),
    "GlobalMaxPool": OnnxRule(lambda use: _whole(use, lambda x, axes: x.max(axis=axes, keepdims=True))),
    "GlobalAveragePool": OnnxRule(lambda use: _whole(use, lambda x, axes: x.mean(axis=axes, keepdims=True))),
    "GlobalLpPool": OnnxRule(_global_norm),
    "MaxUnpool": OnnxRule(_unpool),
}
