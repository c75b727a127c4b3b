"""Pooling: the greatest element, the mean or a norm of each window."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Literal

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, check_few
from mind_mlir.models.onnx.graphs.use import OnnxRule
from mind_mlir.models.onnx.rules.convolution import check_image
from mind_mlir.models.onnx.rules.windows import SlidingWindows, windows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.models.onnx.graphs.use import Array, NodeUse


#: Where the greatest element of a larger window lies is not looked for: each of them is compared by itself.
_MAX_TAPS = 1024


def _windows(use: NodeUse, extents: Sequence[int]) -> tuple[SlidingWindows, tuple[int, ...]]:
    """Return the windows of a node, and what is added behind so that the last ones, cut short, count."""
    windows = windows_of(use, extents)
    if not use.attr("ceil_mode", 0):
        return windows, windows.high
    high = []
    for place, extent in enumerate(extents):
        span, stride, low = windows.spans[place], windows.strides[place], windows.low[place]
        rest = extent + low + windows.high[place] - span
        count = -(-rest // stride) + 1
        if (count - 1) * stride >= extent + low:  # it would begin in the padding behind
            count -= 1
        high.append(max((count - 1) * stride + span - extent - low, windows.high[place]))
    return windows._replace(high=tuple(high)), windows.high


def reduced(image: Array, windows: SlidingWindows, kind: Literal["Sum", "Max"]) -> Array:
    """Return the sum or the greatest element of each window of an image [N, ..., C]."""
    extents = image.shape[1:-1]
    if min(windows.counts(extents), default=1) < 1:
        broken(f"windows of {list(windows.spans)} do not fit {list(extents)} with their padding")
    return mnp.reduce_window(
        image,
        window_dims=(1, *windows.kernel, 1),
        strides=(1, *windows.strides, 1),
        padding_low=(0, *windows.low, 0),
        padding_high=(0, *windows.high, 0),
        base_dilation=(1,) * image.ndim,
        window_dilation=(1, *windows.dilations, 1),
        reduce=kind,
    )


def _max_pool(use: NodeUse) -> tuple[Array, ...]:
    x = use[0]
    check_image(x, "input")
    windows, _ = _windows(use, x.shape[2:])
    if len(use.node.outputs) < 2 or not use.node.outputs[1]:
        return (use.in_front(reduced(use.behind(0), windows, "Max")),)
    return _with_places(use, x, windows)


def _with_places(use: NodeUse, x: Array, windows: SlidingWindows) -> tuple[Array, Array]:
    """Return the greatest elements, and where they lie in the whole array."""
    check_few(math.prod(windows.kernel), _MAX_TAPS, "elements in a window with places")
    extents = x.shape[2:]
    order = list(range(x.ndim))
    if use.attr("storage_order", 0):
        order = [0, 1, *range(x.ndim - 1, 1, -1)]
    numbers = np.arange(math.prod(x.shape)).reshape([x.shape[axis] for axis in order])
    numbers = numbers.transpose(np.argsort(order))
    margins = [(0, 0), (0, 0), *zip(windows.low, windows.high, strict=True)]
    is_float = x.dtype.kind == "f"
    least = -np.inf if is_float else int(np.iinfo(x.dtype).min)
    whole = mnp.pad(x, margins, constant_values=least)
    places = mnp.asarray(np.pad(numbers, margins, constant_values=-1))
    best: Array = None
    where: Array = None
    counts = windows.counts(extents)
    for at in itertools.product(*map(range, windows.kernel)):
        spans = [
            slice(place * step, place * step + (count - 1) * stride + 1, stride)
            for place, step, count, stride in zip(at, windows.dilations, counts, windows.strides, strict=True)
        ]
        index = (slice(None), slice(None), *spans)
        value, place_ = whole[index], places[index]
        if best is None:
            best, where = value, place_
            continue
        is_better = (value > best) | ((where < 0) & (place_ >= 0))
        best, where = mnp.where(is_better, value, best), mnp.where(is_better, place_, where)
    return best, where


def _average(use: NodeUse) -> Array:
    x = use[0]
    check_image(x, "input")
    windows, given = _windows(use, x.shape[2:])
    sums = reduced(use.behind(0), windows, "Sum")
    counts = _counted(x.shape[2:], windows, given, with_padding=bool(use.attr("count_include_pad", 0)))
    if np.all(counts == counts.flat[0]):
        return use.in_front(mnp.div(sums, mnp.full((), float(counts.flat[0]), x.dtype)))
    return use.in_front(mnp.div(sums, mnp.asarray(counts[..., None].astype(x.dtype))))


def _counted(
    extents: Sequence[int], windows: SlidingWindows, given: Sequence[int], *, with_padding: bool
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return of each window how many elements count; those beyond the padding that is given never do."""
    total = np.ones((), np.float64)
    for place, (extent, count) in enumerate(zip(extents, windows.counts(extents), strict=True)):
        low = windows.low[place]
        at = (
            np.arange(count)[:, None] * windows.strides[place]
            + np.arange(windows.kernel[place]) * windows.dilations[place]
        )
        first, last = (0, extent + low + given[place]) if with_padding else (low, low + extent)
        counts = ((at >= first) & (at < last)).sum(axis=1)
        total = total[..., None] * counts
    return np.maximum(total, 1)


def _norm(use: NodeUse) -> Array:
    x, order = use[0], use.attr("p", 2)
    check_image(x, "input")
    windows, _ = _windows(use, x.shape[2:])
    return use.in_front(_root(reduced(_power(use.behind(0), order), windows, "Sum"), order))


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
