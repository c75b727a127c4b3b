"""Convolutions over one to three axes; channels stand in front of these in ONNX, and behind them here."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Rule
from mind_mlir.models.onnx.rules.windows import Windows, windows_of
from mind_mlir.numpy.arrays import op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.models.onnx.graphs.use import Array, Use

#: Depthwise convolutions with windows of so many elements are sums of products of slices.
_MAX_TAPS = 128


def convolve(image: Array, weights: Array, windows: Windows, groups: int) -> Array:
    """Return a convolution, [N, ..., O].

    Args:
        image: The image, [N, ..., C].
        weights: The weights, [O, C / groups, ...].
        windows: The windows.
        groups: How many groups of channels are convolved by themselves.
    """
    rank, extents = image.ndim - 2, image.shape[1:-1]
    channels, outputs = image.shape[-1], weights.shape[0]
    if groups < 1 or channels != weights.shape[1] * groups or outputs % groups:
        broken(f"{groups} groups of weights {list(weights.shape)} do not fit {channels} channels")
    if min(windows.counts(extents), default=1) < 1:
        broken(f"windows of {list(windows.spans)} do not fit {list(extents)} with their padding")
    if groups == channels == outputs and math.prod(windows.kernel) <= _MAX_TAPS and groups > 1:
        return _depthwise(image, weights, windows)
    if groups == 1 and rank == 2 and max(windows.dilations) == 1 and image.dtype.name in _DIRECT:
        found: Array = mnp.conv2d(
            image,
            weights.transpose((2, 3, 1, 0)),
            strides=windows.strides,
            padding=tuple(zip(windows.low, windows.high, strict=True)),
        )
        return found
    return _by_patches(image, weights, windows, groups)


_DIRECT = ("float32", "float64", "int32", "int64")


def _by_patches(image: Array, weights: Array, windows: Windows, groups: int) -> Array:
    """Return a convolution as a product of each group's weights with the windows, laid out as rows."""
    outputs, depth = weights.shape[:2]
    taps = math.prod(windows.kernel)
    patches = mnp.extract_patches(
        image,
        window=windows.kernel,
        strides=windows.strides,
        dilation=windows.dilations,
        padding_low=windows.low,
        padding_high=windows.high,
        pad_value=0,
    )
    rows = math.prod(patches.shape[:-1])
    split = (
        patches.reshape((rows, taps, groups, depth))
        .transpose((2, 0, 1, 3))
        .reshape((groups, rows, taps * depth))
    )
    factors = mnp.moveaxis(weights.reshape((groups, outputs // groups, depth, taps)), -1, 2)
    factors = factors.reshape((groups, outputs // groups, taps * depth))
    found = mnp.dot_general(
        split, factors, batch_lhs=(0,), batch_rhs=(0,), contract_lhs=(2,), contract_rhs=(2,)
    )
    return mnp.moveaxis(found, 0, 1).reshape((*patches.shape[:-1], outputs))


def _depthwise(image: Array, weights: Array, windows: Windows) -> Array:
    """Return a convolution of each channel by itself, as a sum over the elements of a window."""
    dtype = image.dtype
    if dtype.itemsize < 4:  # sums of narrow numbers are made in wide ones
        wide = "f32" if dtype.kind not in "iu" else "i32"
        image, weights = image.astype(wide), weights.astype(wide)
    margins = [(0, 0), *zip(windows.low, windows.high, strict=True), (0, 0)]
    whole = mnp.pad(image, margins) if any(map(any, margins)) else image
    counts = windows.counts(image.shape[1:-1])
    total: Array = None
    for places in itertools.product(*map(range, windows.kernel)):
        starts = [place * step for place, step in zip(places, windows.dilations, strict=True)]
        index = [
            slice(start, start + (count - 1) * stride + 1, stride)
            for start, count, stride in zip(starts, counts, windows.strides, strict=True)
        ]
        part = whole[(slice(None), *index, slice(None))] * weights[(slice(None), 0, *places)]
        total = part if total is None else total + part
    return total.astype(dtype)


def with_bias(use: Use, image: Array, bias: Array | None) -> Array:
    """Return an image [N, ..., C] as [N, C, ...], with a number added to each channel."""
    return use.in_front(image if bias is None else image + bias)


def check_image(x: Array, what: str) -> None:
    """Check that an array has a batch, channels, and one to three axes more."""
    if not 3 <= x.ndim <= 5:
        broken(f"its {what} has rank {x.ndim}; it is a batch, channels, and one to three axes")


def _convolution(use: Use) -> Array:
    x, weights = use[0], use[1]
    check_image(x, "input")
    if weights.ndim != x.ndim:
        broken(f"its weights have rank {weights.ndim}, and its input {x.ndim}")
    windows = windows_of(use, x.shape[2:], weights.shape[2:])
    return with_bias(use, convolve(use.behind(0), weights, windows, use.attr("group", 1)), use.get(2))


def _transposed(use: Use) -> Array:
    """Return what the gradient of a convolution is: one of an image with zeros between its elements."""
    x, weights, groups = use[0], use[1], use.attr("group", 1)
    check_image(x, "input")
    rank, kernel = x.ndim - 2, weights.shape[2:]
    if weights.ndim != x.ndim or groups < 1 or x.shape[1] != weights.shape[0] or x.shape[1] % groups:
        broken(f"{groups} groups of weights {list(weights.shape)} do not fit {list(x.shape)}")
    ones, zeros = (1,) * rank, (0,) * rank
    strides, dilations = use.attr("strides", ones), use.attr("dilations", ones)
    more = use.attr("output_padding", zeros)
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    full = [
        (extent - 1) * stride + span + extra
        for extent, stride, span, extra in zip(x.shape[2:], strides, spans, more, strict=True)
    ]
    low, high = _cut(use, x.shape[2:], full, strides)
    inputs, outputs = weights.shape[:2]
    split = weights.reshape((groups, inputs // groups, outputs, *kernel)).swapaxes(1, 2)
    flipped = mnp.flip(
        split.reshape((groups * outputs, inputs // groups, *kernel)), tuple(range(2, 2 + rank))
    )
    before = [span - 1 - cut for span, cut in zip(spans, low, strict=True)]
    after = [span - 1 - cut + extra for span, cut, extra in zip(spans, high, more, strict=True)]
    spaced = op(
        "Pad",
        use.behind(0),
        low=[0, *before, 0],
        high=[0, *after, 0],
        interior=[0, *(stride - 1 for stride in strides), 0],
        pad_value=0,
    )
    windows = Windows(tuple(kernel), ones, tuple(dilations), zeros, zeros)
    return with_bias(use, convolve(spaced, flipped, windows, groups), use.get(2))


def _cut(
    use: Use, extents: Sequence[int], full: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return how many elements are cut off in front and behind of what a transposed convolution gives."""
    rank = len(full)
    how, wanted = use.attr("auto_pad", "NOTSET"), use.attr("output_shape")
    if wanted is None and how in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple([extent * stride for extent, stride in zip(extents, strides, strict=True)])
    if wanted is None:
        pads = use.attr("pads", (0,) * (2 * rank))
        if len(pads) != 2 * rank:
            broken(f"its padding {list(pads)} is not two numbers for each of {rank} axes")
        return list(pads[:rank]), list(pads[rank:])
    totals = [have - want for have, want in zip(full, wanted[-rank:], strict=True)]
    less = [total // 2 for total in totals]
    more = [total - half for total, half in zip(totals, less, strict=True)]
    return (less, more) if how == "SAME_UPPER" else (more, less)


RULES = {
    "Conv": Rule(_convolution),
    "ConvTranspose": Rule(_transposed),
}
