"""Images of other extents: each axis by itself, as sums of neighbours whose places and weights are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = Any

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


def coordinates(axis: Axis, how: str) -> npt.NDArray[np.float64]:
    """Return where each element of the result lies in the axis (ValueError: ``how`` is no way)."""
    if how not in _WAYS:
        raise ValueError(f"coordinates are transformed by {how}")
    at = np.arange(axis.wanted, dtype=np.float64)
    found: npt.NDArray[np.float64] = _WAYS[how](axis, at, axis.scale * axis.extent)
    return found


def _half(axis: Axis, at: Any, whole: float) -> Any:
    return (at + 0.5) / axis.scale - 0.5


def _of_part(axis: Axis, at: Any, whole: float) -> Any:
    first, part = axis.start * (axis.extent - 1), (axis.end - axis.start) * (axis.extent - 1)
    return first + (at * 0.0 + part / 2 if whole == 1 else at * part / (whole - 1))


#: By the names of coordinate_transformation_mode.
_WAYS: Mapping[str, Callable[[Axis, Any, float], Any]] = {
    "asymmetric": lambda axis, at, _: at / axis.scale,
    "align_corners": lambda axis, at, whole: at * 0.0 if whole == 1 else at * (axis.extent - 1) / (whole - 1),
    "half_pixel": _half,
    "pytorch_half_pixel": lambda axis, at, whole: at * 0.0 - 0.5 if whole == 1 else _half(axis, at, whole),
    "half_pixel_symmetric": lambda axis, at, whole: (
        axis.extent / 2 * (1 - axis.wanted / whole) + _half(axis, at, whole)
    ),
    "tf_crop_and_resize": _of_part,
}


#: The roundings of `nearest`, by name.
_ROUNDINGS: Mapping[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def nearest(x: Array, place: int, axis: Axis, at: npt.NDArray[np.float64], rounding: str) -> Array:
    """Return an array with the nearest element for each place in an axis (ValueError: no such rounding)."""
    if rounding not in _ROUNDINGS:
        raise ValueError(f"places are rounded by {rounding}")
    places = np.clip(_ROUNDINGS[rounding](at).astype(np.int64), 0, axis.extent - 1)
    times = axis.wanted // axis.extent
    if axis.wanted == times * axis.extent and np.array_equal(places, np.arange(axis.wanted) // max(times, 1)):
        return mnp.repeat(x, times, place)
    return mnp.take(x, places, place)


def interpolated(
    x: Array,
    place: int,
    axis: Axis,
    at: npt.NDArray[np.float64],
    mode: str,
    *,
    a: float = -0.75,
    antialias: bool = False,
    excludes: bool = False,
) -> Array:
    """Return an array with sums of neighbours for each place in an axis.

    Args:
        x: The array.
        place: Which of its axes it is.
        axis: The axis.
        at: The places.
        mode: The filter that gives neighbours their weights: ``linear`` or ``cubic``.
        a: The parameter of the cubic one.
        antialias: Whether the filter widens where the axis shrinks.
        excludes: Whether what is outside counts for nothing, rather than as the last element.
    """
    shrinks = min(axis.scale, 1.0) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / shrinks
    span = np.arange(math.floor(-reach) + 1, math.ceil(reach) + 1)
    places = np.floor(at).astype(np.int64)[:, None] + span
    apart = np.abs((places - at[:, None]) * shrinks)
    weights = np.maximum(1 - apart, 0) if mode == "linear" else _cubic(apart, a)
    if excludes:
        weights = np.where((places < 0) | (places >= axis.extent), 0, weights)
    if excludes or shrinks < 1:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return _weighted(x, place, np.clip(places, 0, axis.extent - 1), weights)


def _cubic(apart: Any, a: float) -> Any:
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
