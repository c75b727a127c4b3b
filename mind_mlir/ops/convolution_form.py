"""The numbers of a convolution that its rules share: windows along each axis of space, groups, dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ops.sliding import Sliding, spatial_padding

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType

#: The operations that are convolutions, of an input and a filter.
CONVOLUTIONS = frozenset(("Conv2d", "Convolution"))

#: The lists of a Convolution, a number for each axis of space, and what an empty list stands for.
LISTS = {"strides": 1, "padding_low": 0, "padding_high": 0, "base_dilation": 1, "window_dilation": 1}


def complete_lists(attributes: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """Return the attributes of a Convolution along ``rank`` axes with no list empty."""
    return {
        name: (LISTS[name],) * rank if name in LISTS and value == () else value
        for name, value in attributes.items()
    }


def axes_of(attributes: Mapping[str, Any], image: Sequence[int], filter_: Sequence[int]) -> list[Sliding]:
    """Return the windows along each axis of space.

    Args:
        attributes: Those of a Convolution.
        image: The extents of its input, ``[N, space..., C]``.
        filter_: The extents of its filter, ``[window..., C / groups, F]``.
    """
    lists = complete_lists(attributes, len(image) - 2)
    numbers = zip(image[1:-1], filter_[:-2], *(lists[name] for name in LISTS), strict=True)
    return [
        Sliding(extent, window, stride, low, high, base, spacing)
        for extent, window, stride, low, high, base, spacing in numbers
    ]


def attributes_of_axes(axes: Sequence[Sliding]) -> dict[str, tuple[int, ...]]:
    """Return the lists of a Convolution that has these windows; the other way round."""
    return {
        "strides": tuple(axis.stride for axis in axes),
        "padding_low": tuple(axis.low for axis in axes),
        "padding_high": tuple(axis.high for axis in axes),
        "base_dilation": tuple(axis.base for axis in axes),
        "window_dilation": tuple(axis.spacing for axis in axes),
    }


def general_attributes(
    attributes: Mapping[str, Any], image: Sequence[int], filter_: Sequence[int], dtype: DType
) -> dict[str, Any]:
    """Return the attributes of the Convolution that a Conv2d with ``attributes`` is.

    Args:
        attributes: Those of the Conv2d.
        image: The extents of its input.
        filter_: The extents of its filter.
        dtype: The dtype of both.
    """
    strides = attributes["strides"]
    pairs = spatial_padding(attributes["padding"], image[1:3], filter_[:2], strides)
    low, high = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    return {
        "strides": strides,
        "padding_low": low,
        "padding_high": high,
        "base_dilation": (1, 1),
        "window_dilation": (1, 1),
        "groups": 1,
        "accum_dtype": dtype,
        "out_dtype": dtype,
    }
