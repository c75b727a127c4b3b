"""Windows over their whole configuration space: what ReduceWindow and convolutions slide, by definition.

The definitions are loops over the places in a window, written from the specifications alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mind_mlir.ir.attributes import Array


@dataclass(frozen=True)
class Axis:
    """How windows slide along one axis; ``low`` and ``high`` may be negative, and then take elements away."""

    extent: int
    window: int
    stride: int
    low: int
    high: int
    base: int
    spacing: int

    @property
    def padded(self) -> int:
        """Return the extent with what is padded and in between."""
        return (max(self.extent - 1, 0) * self.base + min(self.extent, 1)) + self.low + self.high

    @property
    def count(self) -> int:
        """Return how many windows there are, none where it is too short for one."""
        return max(0, (self.padded - (self.window - 1) * self.spacing - 1) // self.stride + 1)

    def element(self, window: int, place: int) -> int | None:
        """Return which element of the axis a place in a window is; None where it is padding."""
        at = window * self.stride + place * self.spacing
        if not 0 <= at < self.padded:
            return None
        element, rest = divmod(at - self.low, self.base)
        return element if rest == 0 and 0 <= element < self.extent else None


def axes(least: int, extents: Sequence[int], windows: Sequence[int]) -> st.SearchStrategy[Axis]:
    """Return axes whose padding is ``least`` or more, with room for a window."""

    @st.composite
    def one(draw: Callable[..., Any]) -> Axis:
        few, padding = st.sampled_from((1, 1, 2, 3)), st.integers(least, 3)
        extent, window = draw(st.sampled_from(extents)), draw(st.sampled_from(windows))
        found = Axis(extent, window, draw(few), draw(padding), draw(padding), draw(few), draw(few))
        assume(found.count > 0)
        return found

    return one()


def places(sliding: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Yield each window, and the elements in it that are no padding."""
    for window in np.ndindex(*(axis.count for axis in sliding)):
        inside = []
        for place in np.ndindex(*(axis.window for axis in sliding)):
            found = [axis.element(o, i) for axis, o, i in zip(sliding, window, place, strict=True)]
            if None not in found:
                inside.append(tuple(each for each in found if each is not None))
        yield window, inside


def reduced(
    x: Array, sliding: Sequence[Axis], combine: Callable[[list[Any]], Any], nothing: Any
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return what ``combine`` makes of each window, with ``nothing`` for what is padded."""
    total = np.empty([axis.count for axis in sliding], object)
    size = math.prod(axis.window for axis in sliding)
    for window, inside in places(sliding):
        terms = [x[at] for at in inside]
        total[window] = combine([*terms, nothing] if len(terms) < size else terms)
    return total


def reduced_vjp(x: Array, sliding: Sequence[Axis], kind: str, cotangent: Array) -> Array:
    """Return the gradient of the sums, or of the extremes, whose windows share it equally."""
    gradient = np.zeros(x.shape)
    for window, inside in places(sliding):
        if not inside:
            continue
        terms = [x[at] for at in inside]
        extreme = max(terms) if kind == "Max" else min(terms)
        chosen = [at for at in inside if kind == "Sum" or x[at] == extreme]
        for at in chosen:
            gradient[at] += cotangent[window] / (1 if kind == "Sum" else len(chosen))
    return gradient
