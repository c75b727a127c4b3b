"""Resize and Upsample: which extents an image is to have, and how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.resizing import Axis, coordinates, interpolated, nearest
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule

if TYPE_CHECKING:
    import numpy.typing as npt


def _resize(use: NodeUse) -> Array:
    x = use[0]
    axes = use.axes(use.attr("axes", tuple(range(x.ndim))), x.ndim)
    found = _axes(use, [x.shape[axis] for axis in axes])
    how = use.attr("coordinate_transformation_mode", "half_pixel" if use.version > 10 else "asymmetric")
    computed = x if x.dtype.kind == "f" else x.astype("f32")
    outside: Array = None
    for place, axis in zip(axes, found, strict=True):
        if axis.extent == axis.wanted and axis.scale == 1 and how != "tf_crop_and_resize":
            continue
        at = coordinates(axis, how)
        computed = _along(use, computed, place, axis, at)
        if how == "tf_crop_and_resize":
            beyond = ((at < 0) | (at > axis.extent - 1)).reshape(
                [-1 if each == place else 1 for each in range(x.ndim)]
            )
            outside = beyond if outside is None else outside | beyond
    if outside is not None and outside.any():
        value = mnp.full((), use.attr("extrapolation_value", 0.0), computed.dtype)
        computed = mnp.where(np.broadcast_to(outside, computed.shape), value, computed)
    if computed.dtype == x.dtype:
        return computed
    return (computed if use.attr("mode", "nearest") == "nearest" else mnp.round_even(computed)).astype(
        x.dtype
    )


def _axes(use: NodeUse, extents: Sequence[int]) -> list[Axis]:
    rank = len(extents)
    is_old = use.version < 11
    at = 1 if is_old else 2
    roi = [0.0] * rank + [1.0] * rank
    if not is_old and use.attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        roi = [float(each) for each in use.known(1, "the part that is resized").reshape(-1)]
    if use.has(3):
        sizes = list(use.ints(3, "the extents of the result"))
        scales = [size / extent for size, extent in zip(sizes, extents, strict=True)]
        policy = use.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(scales) if policy == "not_larger" else max(scales)
            scales = [one] * rank
            sizes = [math.floor(one * extent + 0.5) for extent in extents]
    else:
        scales = [float(each) for each in use.known(at, "the scales").reshape(-1)]
        if len(scales) != rank:
            broken(f"it has {len(scales)} scales for {rank} axes")
        sizes = [math.floor(extent * scale) for extent, scale in zip(extents, scales, strict=True)]
    if min(sizes, default=1) < 1 or max(sizes, default=1) > 2**24 or len(roi) != 2 * rank:
        broken(f"it would have extents {sizes}")
    return [Axis(*each) for each in zip(extents, sizes, scales, roi[:rank], roi[rank:], strict=True)]


def _along(use: NodeUse, x: Array, place: int, axis: Axis, at: npt.NDArray[np.float64]) -> Array:
    """Return an array resized along one axis."""
    mode = use.attr("mode", "nearest")
    if mode == "nearest":
        rounding = use.attr("nearest_mode", "round_prefer_floor") if use.version > 10 else "floor"
        return nearest(x, place, axis, at, rounding)
    if mode not in ("linear", "cubic"):
        broken(f"its mode is {mode}, none of nearest, linear and cubic")
    return interpolated(
        x,
        place,
        axis,
        at,
        mode,
        a=use.attr("cubic_coeff_a", -0.75),
        antialias=bool(use.attr("antialias", 0)),
        excludes=bool(use.attr("exclude_outside", 0)),
    )


def _upsample(use: NodeUse) -> Array:
    x = use[0]
    scales = use.attr("scales")
    if scales is None:
        scales = tuple(float(each) for each in use.known(1, "the scales"))
    if len(scales) != x.ndim:
        broken(f"it has {len(scales)} scales for {x.ndim} axes")
    for place, scale in enumerate(scales):
        wanted = math.floor(x.shape[place] * scale)
        if not 1 <= wanted <= 2**24:
            broken(f"it would have an extent of {wanted}")
        axis = Axis(x.shape[place], wanted, scale, 0.0, 1.0)
        if wanted != axis.extent:
            x = _along(use, x, place, axis, coordinates(axis, "asymmetric"))
    return x


RULES = {"Resize": OnnxRule(_resize), "Upsample": OnnxRule(_upsample)}
