"""Resize: each axis by itself, as sums of neighbours whose places and weights are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import OnnxRule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from mind_mlir.models.onnx.graphs.use import Array, NodeUse

#: Axes with more neighbours than this are products with a matrix of weights.
_MAX_NEIGHBOURS = 4


class Axis(NamedTuple):
    """How one axis is resized.

    Attributes:
        extent: How many elements it has.
        wanted: How many it is to have.
        scale: The ratio of both, which need not be exact.
        start: Where the part begins that is resized, as a share of the axis.
        end: Where it ends.
    """

    extent: int
    wanted: int
    scale: float
    start: float
    end: float


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


def coordinates(axis: Axis, how: str) -> npt.NDArray[np.float64]:
    """Return where each element of the result lies in the axis."""
    if how not in _WAYS:
        broken(f"its coordinate_transformation_mode is {how}")
    at = np.arange(axis.wanted, dtype=np.float64)
    found: npt.NDArray[np.float64] = _WAYS[how](axis, at, axis.scale * axis.extent)
    return found


def _aligned(axis: Axis, at: Any, whole: float) -> Any:
    return at * 0.0 if whole == 1 else at * (axis.extent - 1) / (whole - 1)


def _half(axis: Axis, at: Any, whole: float) -> Any:
    return (at + 0.5) / axis.scale - 0.5


def _half_of_one(axis: Axis, at: Any, whole: float) -> Any:
    return at * 0.0 - 0.5 if whole == 1 else _half(axis, at, whole)


def _half_about_middle(axis: Axis, at: Any, whole: float) -> Any:
    return axis.extent / 2 * (1 - axis.wanted / whole) + _half(axis, at, whole)


def _of_part(axis: Axis, at: Any, whole: float) -> Any:
    first, part = axis.start * (axis.extent - 1), (axis.end - axis.start) * (axis.extent - 1)
    return first + (at * 0.0 + part / 2 if whole == 1 else at * part / (whole - 1))


#: By the names of coordinate_transformation_mode.
_WAYS: Mapping[str, Callable[[Axis, Any, float], Any]] = {
    "asymmetric": lambda axis, at, _: at / axis.scale,
    "align_corners": _aligned,
    "half_pixel": _half,
    "pytorch_half_pixel": _half_of_one,
    "half_pixel_symmetric": _half_about_middle,
    "tf_crop_and_resize": _of_part,
}


def _along(use: NodeUse, x: Array, place: int, axis: Axis, at: npt.NDArray[np.float64]) -> Array:
    """Return an array resized along one axis."""
    mode = use.attr("mode", "nearest")
    if mode == "nearest":
        places = np.clip(_rounded(at, use.attr("nearest_mode", "round_prefer_floor")), 0, axis.extent - 1)
        if use.version < 11:
            places = np.clip(np.floor(at).astype(np.int64), 0, axis.extent - 1)
        times = axis.wanted // axis.extent
        if axis.wanted == times * axis.extent and np.array_equal(
            places, np.arange(axis.wanted) // max(times, 1)
        ):
            return mnp.repeat(x, times, place)
        return mnp.take(x, places, place)
    if mode not in ("linear", "cubic"):
        broken(f"its mode is {mode}, none of nearest, linear and cubic")
    places, weights = _neighbours(use, axis, at, mode)
    if use.attr("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= axis.extent), 0, weights)
        weights /= weights.sum(axis=1, keepdims=True)
    return _weighted(x, place, np.clip(places, 0, axis.extent - 1), weights)


#: By the names of nearest_mode.
_ROUNDINGS: Mapping[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _rounded(at: npt.NDArray[np.float64], how: str) -> npt.NDArray[np.int64]:
    if how not in _ROUNDINGS:
        broken(f"its nearest_mode is {how}")
    found: npt.NDArray[np.int64] = _ROUNDINGS[how](at).astype(np.int64)
    return found


def _neighbours(
    use: NodeUse, axis: Axis, at: npt.NDArray[np.float64], mode: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the places that elements are sums of, and their weights; a filter widens where it shrinks."""
    shrinks = min(axis.scale, 1.0) if use.attr("antialias", 0) else 1.0
    reach = (1 if mode == "linear" else 2) / shrinks
    first = np.floor(at).astype(np.int64)
    span = np.arange(math.floor(-reach) + 1, math.ceil(reach) + 1)
    places = first[:, None] + span
    apart = np.abs((places - at[:, None]) * shrinks)
    weights = np.maximum(1 - apart, 0) if mode == "linear" else cubic(apart, use.attr("cubic_coeff_a", -0.75))
    if shrinks < 1:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return places, weights


def cubic(apart: Any, a: float) -> Any:
    """Return the weights of the cubic filter at distances from its middle."""
    near = ((a + 2) * apart - (a + 3)) * apart * apart + 1
    far = ((a * apart - 5 * a) * apart + 8 * a) * apart - 4 * a
    return np.where(apart <= 1, near, np.where(apart < 2, far, 0.0))


def _weighted(x: Array, place: int, places: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> Array:
    """Return sums of neighbours along an axis."""
    used = np.abs(weights).max(axis=0) > 0
    places, weights = places[:, used], weights[:, used]
    dtype = np.dtype(x.dtype)
    if places.shape[1] > _MAX_NEIGHBOURS:
        matrix = np.zeros((x.shape[place], places.shape[0]))
        for at in range(places.shape[1]):
            np.add.at(matrix, (places[:, at], np.arange(places.shape[0])), weights[:, at])
        return mnp.moveaxis(mnp.tensordot(x, matrix.astype(dtype), ((place,), (0,))), -1, place)
    shape = [-1 if each == place else 1 for each in range(x.ndim)]
    total: Array = None
    for at in range(places.shape[1]):
        part = mnp.take(x, places[:, at], place) * weights[:, at].astype(dtype).reshape(shape)
        total = part if total is None else total + part
    return total


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
