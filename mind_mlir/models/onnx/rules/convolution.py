"""Convolutions over any number of axes; channels stand in front of these in ONNX, and behind them here."""

from __future__ import annotations

from collections.abc import Sequence

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.windows import SlidingWindows
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.windows import windows_of


def convolve(
    image: Array, weights: Array, windows: SlidingWindows, groups: int, gaps: Sequence[int] | None = None
) -> Array:
    """Return a convolution, [N, ..., O].

    Args:
        image: The image, [N, ..., C].
        weights: The weights, [O, C / groups, ...].
        windows: The windows; negative padding cuts elements off.
        groups: How many groups of channels are convolved by themselves.
        gaps: How far apart the elements of the image are laid along each axis, with zeros between them.
    """
    extents = image.shape[1:-1]
    channels, outputs = image.shape[-1], weights.shape[0]
    if groups < 1 or channels != weights.shape[1] * groups or outputs % groups:
        broken(f"{groups} groups of weights {list(weights.shape)} do not fit {channels} channels")
    spacing = gaps or (1,) * len(extents)
    spaced = [(extent - 1) * step + 1 for extent, step in zip(extents, spacing, strict=True)]
    if min(windows.counts(spaced), default=1) < 1:
        broken(f"windows of {list(windows.spans)} do not fit {list(extents)} with their padding")
    found: Array = mnp.convolution(
        image,
        weights.transpose((*range(2, weights.ndim), 1, 0)),
        strides=windows.strides,
        padding_low=windows.low,
        padding_high=windows.high,
        base_dilation=spacing,
        window_dilation=windows.dilations,
        groups=groups,
    )
    return found


def with_bias(use: NodeUse, image: Array, bias: Array | None) -> Array:
    """Return an image [N, ..., C] as [N, C, ...], with a number added to each channel."""
    return use.in_front(image if bias is None else image + bias)


def check_image(x: Array, what: str) -> None:
    """Check that an array has a batch, channels, and further axes."""
    if x.ndim < 3:
        broken(f"its {what} has rank {x.ndim}; it is a batch, channels, and one axis or more")


def _convolution(use: NodeUse) -> Array:
    x, weights = use[0], use[1]
    check_image(x, "input")
    if weights.ndim != x.ndim:
        broken(f"its weights have rank {weights.ndim}, and its input {x.ndim}")
    windows = windows_of(use, x.shape[2:], weights.shape[2:])
    return with_bias(use, convolve(use.behind(0), weights, windows, use.attr("group", 1)), use.get(2))


def _transposed(use: NodeUse) -> Array:
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
    windows = SlidingWindows(tuple(kernel), ones, tuple(dilations), tuple(before), tuple(after))
    return with_bias(use, convolve(use.behind(0), flipped, windows, groups, strides), use.get(2))


def _cut(
    use: NodeUse, extents: Sequence[int], full: Sequence[int], strides: Sequence[int]
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
    "Conv": OnnxRule(_convolution),
    "ConvTranspose": OnnxRule(_transposed),
}
