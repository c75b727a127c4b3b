"""Regions of images: RoiAlign, MaxRoiPool; and boxes of which only the data says how many there are."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, check_few, unsupported
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule


def _align(use: NodeUse) -> Array:
    x, rois, batches = use[0], use[1], use[2]
    rows, columns = use.attr("output_height", 1), use.attr("output_width", 1)
    ratio, scale = use.attr("sampling_ratio", 0), use.attr("spatial_scale", 1.0)
    mode = use.attr("mode", "avg")
    default = "half_pixel" if use.version > 15 else "output_half_pixel"
    is_half = use.attr("coordinate_transformation_mode", default) == "half_pixel"
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or mode not in ("avg", "max"):
        broken(f"regions of {list(rois.shape)} are none of {list(x.shape)}, or its mode is {mode}")
    if ratio <= 0:
        unsupported("as many samples as a region is large (sampling_ratio 0), which only the data says")
    shift = 0.5 if is_half else 0.0
    corners = rois * scale - shift
    at, inside = [], []
    for axis, (count, extent) in enumerate(((rows, x.shape[2]), (columns, x.shape[3]))):
        begin, end = corners[:, 1 - axis], corners[:, 3 - axis]
        size = end - begin if is_half else mnp.maximum(end - begin, 1.0)
        steps = ((np.arange(count * ratio) + 0.5) / (count * ratio)).astype(x.dtype)
        places = mnp.expand_dims(begin, 1) + mnp.expand_dims(size, 1) * steps
        inside.append((places >= -1.0) & (places <= float(extent)))
        at.append(mnp.minimum(mnp.maximum(places, 0.0), float(extent - 1)))
    taps = _corners(x, batches.astype("i64"), at)
    weight = [mnp.expand_dims(mnp.expand_dims(inside[0], 2) & mnp.expand_dims(inside[1], 1), 3)]
    taps = [mnp.where(weight[0], tap, mnp.zeros_like(tap)) for tap in taps]
    count = rois.shape[0]
    if mode == "avg":
        total = taps[0] + taps[1] + taps[2] + taps[3]
        bins = total.reshape((count, rows, ratio, columns, ratio, x.shape[1])).mean(axis=(2, 4))
    else:
        best = mnp.maximum(mnp.maximum(taps[0], taps[1]), mnp.maximum(taps[2], taps[3]))
        bins = best.reshape((count, rows, ratio, columns, ratio, x.shape[1])).max(axis=(2, 4))
    return mnp.moveaxis(bins, -1, 1)


def _corners(x: Array, batches: Array, at: list[Array]) -> list[Array]:
    """Return the four elements around each place of a grid, times weights, as [regions, rows, columns, C]."""
    image = mnp.moveaxis(x, 1, -1)
    which = batches.reshape((-1, 1, 1))
    low = [mnp.floor(each) for each in at]
    rest = [each - below for each, below in zip(at, low, strict=True)]
    found = []
    for row in range(2):
        for column in range(2):
            places = [
                mnp.minimum(below.astype("i64") + more, x.shape[2 + axis] - 1)
                for axis, (below, more) in enumerate(zip(low, (row, column), strict=True))
            ]
            shares = [share if more else 1.0 - share for share, more in zip(rest, (row, column), strict=True)]
            weight = mnp.expand_dims(shares[0], 2) * mnp.expand_dims(shares[1], 1)
            element = image[which, mnp.expand_dims(places[0], 2), mnp.expand_dims(places[1], 1)]
            found.append(element * mnp.expand_dims(weight, 3))
    return found


def _pool(use: NodeUse) -> Array:
    """Return the greatest elements of the parts of regions, which are known: they decide on the windows."""
    x, rois = use[0], use.known(1, "the regions")
    rows, columns = use.needed("pooled_shape", tuple)
    scale = use.attr("spatial_scale", 1.0)
    check_few(rows * columns * len(rois), 4096, "parts of regions")
    found = []
    for batch, *corners in rois:
        left, top, right, bottom = [int(np.rint(each * scale)) for each in corners]
        grid = []
        for row in range(rows):
            for column in range(columns):
                spans = []
                for at, count, first, last, extent in (
                    (row, rows, top, bottom, x.shape[2]),
                    (column, columns, left, right, x.shape[3]),
                ):
                    size = max(last - first + 1, 1) / count
                    spans.append(
                        slice(
                            min(max(math.floor(at * size) + first, 0), extent),
                            min(max(math.ceil((at + 1) * size) + first, 0), extent),
                        )
                    )
                part = x[(int(batch), slice(None), *spans)]
                grid.append(part.max(axis=(1, 2)) if part.size else mnp.zeros(x.shape[1], x.dtype))
        found.append(mnp.stack(grid, 1).reshape((x.shape[1], rows, columns)))
    return mnp.stack(found)


def _chosen(_: NodeUse) -> NoReturn:
    unsupported("its result has as many rows as its data says, and no shape before the model runs")


RULES = {
    "RoiAlign": OnnxRule(_align),
    "MaxRoiPool": OnnxRule(_pool),
    "NonMaxSuppression": OnnxRule(_chosen),
}
