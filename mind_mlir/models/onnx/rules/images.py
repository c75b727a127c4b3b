"""Images that are read between their elements: GridSample and DeformConv; and Col2Im."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, check_few, unsupported
from mind_mlir.models.onnx.graphs.use import OnnxRule
from mind_mlir.models.onnx.rules.windows import windows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.models.onnx.graphs.use import Array, NodeUse


def sampled(
    rows: Array, extents: Sequence[int], at: Sequence[Array], mode: str, padding: str, *, aligned: bool
) -> Array:
    """Return elements of images at places between their elements.

    Args:
        rows: The images, [N, elements, C].
        extents: The extents that the elements make up.
        at: Of each axis the places, [N, P].
        mode: ``linear``, ``nearest`` or ``cubic``.
        padding: What is outside: ``zeros``, the ``border``, or a ``reflection``.
        aligned: Whether a reflection is at the middle of the last elements, rather than at their ends.

    Returns:
        The elements, [N, P, C].
    """
    batch = np.arange(rows.shape[0]).reshape((-1, 1))
    taps = [_taps(each, mode) for each in at]
    total: Array = None
    for chosen in itertools.product(*taps):
        weight: Array = None
        place: Array = None
        for (index, whole), extent in zip(chosen, extents, strict=True):
            held, inside = _held(index, extent, padding, aligned=aligned)
            share = whole if inside is None else mnp.where(inside, whole, mnp.zeros_like(whole))
            weight = share if weight is None else weight * share
            place = held if place is None else place * extent + held
        part = rows[batch, place] * mnp.expand_dims(weight, 2)
        total = part if total is None else total + part
    return total


def _taps(at: Array, mode: str) -> list[tuple[Array, Array]]:
    """Return the elements of an axis that a place between them is made of, with their weights."""
    if mode == "nearest":
        return [(mnp.round_even(at).astype("i64"), mnp.ones_like(at))]
    low = mnp.floor(at)
    rest, first = at - low, low.astype("i64")
    if mode == "linear":
        return [(first, 1.0 - rest), (first + 1, rest)]
    a = -0.75

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1.0

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [
        (first - 1, far(rest + 1.0)),
        (first, near(rest)),
        (first + 1, near(1.0 - rest)),
        (first + 2, far(2.0 - rest)),
    ]


def _held(index: Array, extent: int, padding: str, *, aligned: bool) -> tuple[Array, Array | None]:
    """Return an index within its axis, and where it has been within it already; None where all count."""
    last = extent - 1
    if padding == "reflection":
        period = max(2 * last if aligned else 2 * extent, 1)
        index = index % period
        return mnp.where(index > last, (period if aligned else period - 1) - index, index), None
    held = mnp.minimum(mnp.maximum(index, 0), last)
    return held, None if padding == "border" else (index >= 0) & (index <= last)


def _grid_sample(use: NodeUse) -> Array:
    x, grid = use[0], use[1]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        use.attr("mode", "linear"), use.attr("mode", "linear")
    )
    padding, aligned = use.attr("padding_mode", "zeros"), bool(use.attr("align_corners", 0))
    rank = x.ndim - 2
    if grid.ndim != x.ndim or grid.shape[-1] != rank or mode not in ("linear", "nearest", "cubic"):
        broken(f"a grid of {list(grid.shape)} does not say places of {list(x.shape)}, or its mode is {mode}")
    extents = x.shape[2:]
    rows = mnp.moveaxis(x, 1, -1).reshape((x.shape[0], math.prod(extents), x.shape[1]))
    at = []
    for axis, extent in enumerate(extents):
        shares = grid[..., rank - 1 - axis].reshape((x.shape[0], -1)).astype(x.dtype)
        if aligned:
            at.append((shares + 1.0) * (0.5 * (extent - 1)))
        else:
            at.append(((shares + 1.0) * float(extent) - 1.0) * 0.5)
    found = sampled(rows, extents, at, mode, padding, aligned=aligned)
    return mnp.moveaxis(found, -1, 1).reshape((x.shape[0], x.shape[1], *grid.shape[1:-1]))


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
