"""The padding of a convolution, and so its windows (shapes.md, "Convolution shape inference")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import Padding, PaddingMode

if TYPE_CHECKING:
    from collections.abc import Sequence

#: (low, high) for height and for width.
Pairs = tuple[tuple[int, int], tuple[int, int]]


def spatial_padding(
    padding: Padding, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int]
) -> Pairs:
    """Return the padding below and above each spatial axis.

    Args:
        padding: A well-formed padding attribute.
        extents: Height and width of the input.
        kernel: Height and width of the filter.
        strides: Strides along height and width.
    """
    match padding.mode:
        case PaddingMode.VALID:
            pairs = [(0, 0), (0, 0)]
        case PaddingMode.SAME:
            pairs = [_same_padding(*axis) for axis in zip(extents, kernel, strides, strict=True)]
        case PaddingMode.CUSTOM:
            pairs = [(low, high) for low, high in padding.pairs]
    height, width = pairs
    return height, width


def _same_padding(extent: int, kernel: int, stride: int) -> tuple[int, int]:
    windows = -(-extent // stride)
    total = max((windows - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2
