"""Images that are read between their elements: GridSample and DeformConv; and Col2Im."""

from __future__ import annotations

import itertools
import math

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.sampling import at_grid, sampled
from mind_mlir.models.onnx.graphs.refusals import broken, check_few, unsupported
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.windows import windows_of


def _grid_sample(use: NodeUse) -> Array:
    x, grid = use[0], use[1]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        use.attr("mode", "linear"), use.attr("mode", "linear")
    )
    padding, aligned = use.attr("padding_mode", "zeros"), bool(use.attr("align_corners", 0))
    rank = x.ndim - 2
    if grid.ndim != x.ndim or grid.shape[-1] != rank or mode not in ("linear", "nearest", "cubic"):
        broken(f"a grid of {list(grid.shape)} does not say places of {list(x.shape)}, or its mode is {mode}")
    return at_grid(x, grid, mode, padding, aligned=aligned)


def _deformed(use: NodeUse) -> Array:
    x, weights, offsets = use[0], use[1], use[2]
    if x.ndim != 4:
        unsupported(f"deformable convolutions of rank {x.ndim}; there are those of two axes")
    windows = windows_of(use, x.shape[2:], weights.shape[2:])
    groups, parts = use.attr("group", 1), use.attr("offset_group", 1)
    batch, channels = x.shape[:2]
    counts, taps, outputs = windows.counts(x.shape[2:]), math.prod(windows.kernel), weights.shape[0]
    points = math.prod(counts)
    if offsets.shape != (batch, parts * taps * 2, *counts) or channels != weights.shape[1] * groups:
        broken(f"offsets of {list(offsets.shape)} do not fit {list(x.shape)} and its windows")
    moved = offsets.reshape((batch, parts, taps, 2, points))
    grids = np.meshgrid(
        *(np.arange(size) * step for size, step in zip(windows.kernel, windows.dilations, strict=True)),
        indexing="ij",
    )
    firsts = np.meshgrid(
        *(
            np.arange(count) * stride - low
            for count, stride, low in zip(counts, windows.strides, windows.low, strict=True)
        ),
        indexing="ij",
    )
    size = channels // parts
    images = x.reshape((batch * parts, size, -1)).swapaxes(1, 2)
    at = []
    for axis in range(2):
        base = (grids[axis].reshape((taps, 1)) + firsts[axis].reshape((1, points))).astype(x.dtype)
        at.append((moved[:, :, :, axis] + base).reshape((batch * parts, taps * points)))
    values = sampled(images, x.shape[2:], at, "linear", "zeros", aligned=True)
    values = values.reshape((batch, parts, taps, points, size))
    if use.has(4):
        values = values * use[4].reshape((batch, parts, taps, points, 1))
    # [batch, channels, taps, points], channels being those of the parts one after the other.
    spread = values.transpose((0, 1, 4, 2, 3)).reshape((batch, groups, channels // groups * taps, points))
    factors = weights.reshape((groups, outputs // groups, -1))
    found = mnp.matmul(factors, spread).reshape((batch, outputs, *counts))
    bias = use.get(3)
    return found if bias is None else found + bias.reshape((-1, 1, 1))


def _columns(use: NodeUse) -> Array:
    x = use[0]
    extents, kernel = use.ints(1, "the shape of the image"), use.ints(2, "the shape of a block")
    rank = len(extents)
    ones = (1,) * rank
    strides, dilations = use.attr("strides", ones), use.attr("dilations", ones)
    pads = use.attr("pads", (0,) * (2 * rank))
    taps = math.prod(kernel)
    check_few(taps, 1024, "elements in a block")
    if not len(kernel) == len(strides) == len(dilations) == rank or min(*kernel, *strides, *dilations, 1) < 1:
        broken(f"blocks of {list(kernel)} at steps of {list(strides)} are none of {list(extents)}")
    counts = [
        (extent + pads[at] + pads[rank + at] - (kernel[at] - 1) * dilations[at] - 1) // strides[at] + 1
        for at, extent in enumerate(extents)
    ]
    if x.ndim != 3 or not taps or x.shape[1] % taps or x.shape[2] != math.prod(counts):
        broken(f"{list(x.shape)} are no blocks of {list(kernel)} in {list(extents)}")
    channels = x.shape[1] // taps
    blocks = x.reshape((x.shape[0], channels, *kernel, *counts))
    whole = [extent + pads[at] + pads[rank + at] for at, extent in enumerate(extents)]
    total: Array = mnp.zeros((x.shape[0], channels, *whole), x.dtype)
    for places in itertools.product(*map(range, kernel)):
        index = tuple(
            [
                slice(place * step, place * step + (count - 1) * stride + 1, stride)
                for place, step, count, stride in zip(places, dilations, counts, strides, strict=True)
            ]
        )
        total = total.at[(slice(None), slice(None), *index)].add(blocks[(slice(None), slice(None), *places)])
    cut = tuple([slice(pads[at], pads[at] + extent) for at, extent in enumerate(extents)])
    return total[(slice(None), slice(None), *cut)]


RULES = {
    "GridSample": OnnxRule(_grid_sample),
    "DeformConv": OnnxRule(_deformed),
    "Col2Im": OnnxRule(_columns),
}
