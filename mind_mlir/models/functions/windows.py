"""Windows along the spatial axes of an array: their sums, their greatest elements, and where these lie."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    Array: TypeAlias = Any


class SlidingWindows(NamedTuple):
    """Windows along the spatial axes of an array.

    Attributes:
        kernel: How many elements a window reads.
        strides: How far apart windows are.
        dilations: How far apart the elements of a window are.
        low: How many elements of padding stand in front.
        high: How many stand behind.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def spans(self) -> tuple[int, ...]:
        """Return how many elements a window reaches over."""
        return tuple([(size - 1) * step + 1 for size, step in zip(self.kernel, self.dilations, strict=True)])

    def counts(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows there are along axes of some extents."""
        return tuple(
            [
                (extent + low + high - span) // stride + 1
                for extent, low, high, span, stride in zip(
                    extents, self.low, self.high, self.spans, self.strides, strict=True
                )
            ]
        )

    def with_last(self, extents: Sequence[int]) -> SlidingWindows:
        """Return windows with so much padding behind that the last ones, which are cut short, count."""
        high = []
        for place, extent in enumerate(extents):
            span, stride, low = self.spans[place], self.strides[place], self.low[place]
            rest = extent + low + self.high[place] - span
            count = -(-rest // stride) + 1
            if (count - 1) * stride >= extent + low:  # it would begin in the padding behind
                count -= 1
            high.append(max((count - 1) * stride + span - extent - low, self.high[place]))
        return self._replace(high=tuple(high))


def _around(windows: SlidingWindows, x: Array, first: int) -> list[tuple[int, int]]:
    """Return the padding of each axis of an array, whose spatial axes begin with ``first``."""
    behind = x.ndim - first - len(windows.kernel)
    return [*[(0, 0)] * first, *zip(windows.low, windows.high, strict=True), *[(0, 0)] * behind]


def _spread(numbers: Sequence[int], x: Array, first: int) -> tuple[int, ...]:
    return (*[1] * first, *numbers, *[1] * (x.ndim - first - len(numbers)))


def reduced(x: Array, windows: SlidingWindows, kind: Literal["Sum", "Max"], first: int) -> Array:
    """Return the sum or the greatest element of each window of an array."""
    around = _around(windows, x, first)
    found = mnp.reduce_window(
        x,
        window_dims=_spread(windows.kernel, x, first),
        strides=_spread(windows.strides, x, first),
        padding_low=[low for low, _ in around],
        padding_high=[high for _, high in around],
        base_dilation=(1,) * x.ndim,
        window_dilation=_spread(windows.dilations, x, first),
        reduce=kind,
    )
    counts = windows.counts(x.shape[first : first + len(windows.kernel)])
    return found[(*[slice(None)] * first, *map(slice, counts))]


def elements(x: Array, windows: SlidingWindows, value: Any, first: int) -> list[Array]:
    """Return, for each place in a window, the elements of all windows there; ``value`` is outside."""
    counts = windows.counts(x.shape[first : first + len(windows.kernel)])
    around = _around(windows, x, first)
    pad = np.pad if isinstance(x, np.ndarray) else mnp.pad
    whole = pad(x, around, constant_values=value) if any(map(any, around)) else x
    found = []
    for places in itertools.product(*map(range, windows.kernel)):
        spans = [
            slice(at * step, at * step + (count - 1) * stride + 1, stride)
            for at, step, count, stride in zip(
                places, windows.dilations, counts, windows.strides, strict=True
            )
        ]
        found.append(whole[(*[slice(None)] * first, *spans)])
    return found


def greatest(x: Array, numbers: np.ndarray[Any, Any], windows: SlidingWindows) -> tuple[Array, Array]:
    """Return the greatest element of each window, and its number: the first of equal ones; NaN is greatest.

    Args:
        x: The array, whose last axes are the spatial ones.
        numbers: The numbers of its elements, from 0 on, in a shape that broadcasts to its own.
        windows: The windows.
    """
    first = x.ndim - len(windows.kernel)
    is_float = x.dtype.kind not in "iu"
    least = -np.inf if is_float else int(np.iinfo(x.dtype).min)
    own = elements(numbers, windows, -1, numbers.ndim - len(windows.kernel))
    best: Array = None
    where: Array = None
    for value, place in zip(elements(x, windows, least, first), own, strict=True):
        if best is None:
            best, where = value, mnp.broadcast_to(mnp.asarray(place), value.shape)
            continue
        is_better = (value > best) | ((where < 0) & (place >= 0))
        if is_float:
            is_better = (is_better | mnp.isnan(value)) & (place >= 0)
        best, where = mnp.where(is_better, value, best), mnp.where(is_better, place, where)
    return best, where


def counted(
    extents: Sequence[int], windows: SlidingWindows, first: Sequence[int], last: Sequence[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return how many elements of each window are from ``first`` to before ``last``, the array being at 0."""
    total = np.ones((), np.int64)
    for axis, count in enumerate(windows.counts(extents)):
        starts = np.arange(count)[:, None] * windows.strides[axis] - windows.low[axis]
        at = starts + np.arange(windows.kernel[axis]) * windows.dilations[axis]
        inside = ((at >= first[axis]) & (at < last[axis])).sum(axis=1)
        total = total[..., None] * inside
    return total


def means(x: Array, windows: SlidingWindows, counts: np.ndarray[Any, Any], first: int) -> Array:
    """Return sums of windows over how many elements of each one count."""
    sums = reduced(x, windows, "Sum", first)
    if (counts == counts.flat[0]).all():
        return mnp.div(sums, mnp.full((), float(counts.flat[0]), x.dtype))
    behind = x.ndim - first - len(windows.kernel)
    return mnp.div(sums, mnp.asarray(counts.reshape((*counts.shape, *[1] * behind)).astype(x.dtype)))
