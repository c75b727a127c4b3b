"""Windows as nodes of convolution and pooling describe them: kernel, strides, dilations and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.models.functions.windows import SlidingWindows
from mind_mlir.models.onnx.graphs.refusals import broken, check_few

if TYPE_CHECKING:
    from mind_mlir.models.onnx.graphs.use import NodeUse


#: SlidingWindows that reach further are none that a model has.
_MOST = 1 << 20


def windows_of(use: NodeUse, extents: Sequence[int], kernel: Sequence[int] | None = None) -> SlidingWindows:
    """Return the windows of a node over axes of some extents; ``kernel`` is that of its weights."""
    rank = len(extents)
    sizes = use.attr("kernel_shape", tuple(kernel or ()))
    if kernel is not None and tuple(kernel) != tuple(sizes):
        broken(f"its kernel_shape is {list(sizes)}, and its weights are of {list(kernel)}")
    ones = (1,) * rank
    strides, dilations = use.attr("strides", ones), use.attr("dilations", ones)
    if not len(sizes) == len(strides) == len(dilations) == rank or min(*sizes, *strides, *dilations, 1) < 1:
        shown = f"kernel {list(sizes)}, strides {list(strides)} and dilations {list(dilations)}"
        broken(f"{shown} are no windows of rank {rank}")
    pads = use.attr("pads", (0,) * (2 * rank))
    if len(pads) != 2 * rank or min(pads, default=0) < 0:
        broken(f"its padding {list(pads)} is not two numbers for each of {rank} axes")
    check_few(max((*sizes, *dilations, *pads), default=0), _MOST, "elements of a window or padding")
    found = SlidingWindows(
        tuple(sizes), tuple(strides), tuple(dilations), tuple(pads[:rank]), tuple(pads[rank:])
    )
    return _padded(use, found, extents)


def _padded(use: NodeUse, windows: SlidingWindows, extents: Sequence[int]) -> SlidingWindows:
    """Return windows with the padding that auto_pad asks for."""
    how = use.attr("auto_pad", "NOTSET")
    if how == "NOTSET":
        return windows
    zeros = (0,) * len(extents)
    if how == "VALID":
        return windows._replace(low=zeros, high=zeros)
    if how not in ("SAME_UPPER", "SAME_LOWER"):
        broken(f"its auto_pad is {how}, none of NOTSET, VALID, SAME_UPPER and SAME_LOWER")
    totals = [
        max((-(-extent // stride) - 1) * stride + span - extent, 0)
        for extent, stride, span in zip(extents, windows.strides, windows.spans, strict=True)
    ]
    less, more = tuple([each // 2 for each in totals]), tuple([each - each // 2 for each in totals])
    return (
        windows._replace(low=less, high=more)
        if how == "SAME_UPPER"
        else windows._replace(low=more, high=less)
    )
