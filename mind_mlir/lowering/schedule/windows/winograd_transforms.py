"""The three linear transforms of Winograd's form of a convolution with a filter of 3 x 3, along one axis.

``F(m, 3)`` computes ``m`` neighbouring outputs of a filter of three elements with ``m + 2`` products instead
of ``3 m``: both factors are transformed, multiplied element by element, and the products transformed back.
Along both axes that is ``(m + 2)^2`` products for ``m^2`` outputs. The points are 0, 1, -1 and infinity, for
``m = 4`` also 2 and -2 (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016).

Each transform is written once, as additions and multiplications by constants in a fixed order: on vectors it
is code, on numpy arrays it folds constants, which are then the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Elements of a filter along an axis.
TAPS = 3

#: Arrays of floats, or anything that is added, subtracted and multiplied with numbers as they are.
Elements: TypeAlias = "Sequence[Any]"


def data_transform(d: Elements) -> list[Any]:
    """Return the transform of four or six neighbouring elements of the image."""
    if len(d) == 4:
        return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
    even, odd = d[4] - d[2] * 4, d[3] - d[1] * 4
    near, far = d[4] - d[2], (d[3] - d[1]) * 2
    first, last = d[0] * 4 - d[2] * 5 + d[4], d[1] * 4 - d[3] * 5 + d[5]
    return [first, even + odd, even - odd, near + far, near - far, last]


def filter_transform(g: Elements, outputs: int) -> list[Any]:
    """Return the transform of the three elements of a filter for two or four outputs."""
    ends = g[0] + g[2]
    if outputs == 2:
        return [g[0], (ends + g[1]) * (1 / 2), (ends - g[1]) * (1 / 2), g[2]]
    wide, middle = g[0] + g[2] * 4, g[1] * 2
    near = [(ends + g[1]) * (-1 / 6), (ends - g[1]) * (-1 / 6)]
    return [g[0] * (1 / 4), *near, (wide + middle) * (1 / 24), (wide - middle) * (1 / 24), g[2]]


def output_transform(p: Elements) -> list[Any]:
    """Return two or four neighbouring elements of the result from four or six sums of products."""
    both, apart = p[1] + p[2], p[1] - p[2]
    if len(p) == 4:
        return [p[0] + both, apart - p[3]]
    far_both, far_apart = p[3] + p[4], p[3] - p[4]
    return [
        p[0] + both + far_both,
        apart + far_apart * 2,
        both + far_both * 4,
        apart + far_apart * 8 + p[5],
    ]


def both_axes(transform: Callable[[Elements], list[Any]], square: Sequence[Elements]) -> list[list[Any]]:
    """Return ``transform`` of the columns of ``square``, rows of elements, and then of the rows of that."""
    columns = [transform(column) for column in zip(*square, strict=True)]
    return [transform(row) for row in zip(*columns, strict=True)]
