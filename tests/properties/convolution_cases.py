"""Convolutions of StableHLO over their whole configuration space: their text, and their definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from window_cases import Axis, axes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array


@dataclass(frozen=True)
class Convolution:
    """A convolution.

    Attributes:
        axes: Its spatial axes; the base dilation is that of the image, the spacing that of the filter.
        reverse: Along which of them filters are turned round.
        batch: How many images there are, in each group.
        channels: How many channels a filter takes.
        filters: How many filters there are, in each group.
        feature_groups: Groups of channels.
        batch_groups: Groups of images.
        orders: Where the dimensions of image, filters and result stand, as StableHLO names them.
    """

    axes: tuple[Axis, ...]
    reverse: tuple[bool, ...]
    batch: int
    channels: int
    filters: int
    feature_groups: int
    batch_groups: int
    orders: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

    @property
    def extents(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Return the extents of image, filters and result, by the names of their dimensions."""
        filters = self.filters * self.feature_groups * self.batch_groups
        image = {"b": self.batch * self.batch_groups, "f": self.channels * self.feature_groups}
        spatial = [
            {str(place): getattr(axis, field) for place, axis in enumerate(self.axes)}
            for field in ("extent", "window", "count")
        ]
        return (
            {**image, **spatial[0]},
            {"i": self.channels, "o": filters, **spatial[1]},
            {"b": self.batch, "f": filters, **spatial[2]},
        )

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of image, filters and result."""
        pairs = zip(self.orders, self.extents, strict=True)
        return [tuple(extents[name] for name in order) for order, extents in pairs]

    def text(self, element: str) -> str:
        """Return a function that is this convolution."""
        types = ["tensor<" + "x".join([*map(str, shape), element]) + ">" for shape in self.shapes]
        image, filters, result = ("[" + ", ".join(order) + "]" for order in self.orders)
        strides, low_high, image_gaps, filter_gaps = zip(
            *((a.stride, [a.low, a.high], a.base, a.spacing) for a in self.axes), strict=True
        )
        turned = str(list(self.reverse)).lower()
        return f"""
func.func @main(%x: {types[0]}, %w: {types[1]}) -> {types[2]} {{
  %0 = stablehlo.convolution(%x, %w) dim_numbers = {image}x{filters}->{result},
    window = {{stride = {list(strides)}, pad = {list(low_high)}, lhs_dilate = {list(image_gaps)},
      rhs_dilate = {list(filter_gaps)}, reverse = {turned}}}
    {{batch_group_count = {self.batch_groups} : i64, feature_group_count = {self.feature_groups} : i64}}
    : ({types[0]}, {types[1]}) -> {types[2]}
  return %0 : {types[2]}
}}
"""

    def apply(self, image: Array, filters: Array) -> Array:
        """Return the result by its definition: a sum over the places of the filter."""
        spatial = [str(place) for place in range(len(self.axes))]
        x = _ordered(image, self.orders[0], ["b", "f", *spatial])
        w = _ordered(filters, self.orders[1], ["o", "i", *spatial])
        groups = self.feature_groups * self.batch_groups
        total = np.zeros((self.batch, w.shape[0], *(axis.count for axis in self.axes)), x.dtype)
        for group, part in enumerate(np.split(x, groups, axis=0 if self.batch_groups > 1 else 1)):
            chosen = slice(group * self.filters, (group + 1) * self.filters)
            for window in np.ndindex(*total.shape[2:]):
                for place in np.ndindex(*w.shape[2:]):
                    found = [
                        axis.element(o, axis.window - 1 - i if turn else i)
                        for axis, o, i, turn in zip(self.axes, window, place, self.reverse, strict=True)
                    ]
                    if None not in found:
                        term = part[(..., *found)] @ w[(chosen, slice(None), *place)].T
                        total[(slice(None), chosen, *window)] += term
        return _ordered(total, ["b", "f", *spatial], self.orders[2])


def _ordered(array: Array, given: Sequence[str], wanted: Sequence[str]) -> Array:
    return np.ascontiguousarray(np.transpose(array, [list(given).index(name) for name in wanted]))


@st.composite
def convolutions(draw: Callable[..., Any]) -> Convolution:
    """Return convolutions along one to three axes."""
    count = draw(st.sampled_from((1, 2, 2, 3)))
    extents = {1: (1, 2, 3, 5, 8, 17), 2: (1, 2, 3, 4, 6), 3: (1, 2, 3, 4)}[count]
    sliding = tuple(draw(axes(-2, extents, (1, 1, 2, 3))) for _ in range(count))
    groups = draw(st.sampled_from(((1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3))))
    spatial = [str(place) for place in range(count)]
    plain = (["b", *spatial, "f"], [*spatial, "i", "o"], ["b", *spatial, "f"])
    orders = plain if draw(st.booleans()) else [draw(st.permutations(names)) for names in plain]
    sizes = st.integers(1, 3)
    turned = tuple(draw(st.booleans()) for _ in sliding)
    image, filters, result = (tuple(order) for order in orders)
    batch, channels, count = draw(sizes), draw(sizes), draw(sizes)
    return Convolution(
        sliding, turned, batch, channels, count, groups[0], groups[1], (image, filters, result)
    )
