"""The three linear transforms of Winograd's form of a convolution with a filter of 3 x 3, along one axis.

``F(m, 3)`` computes ``m`` neighbouring outputs of a filter of three elements with ``m + 2`` products instead
of ``3 m``: both factors are transformed, multiplied element by element, and the products transformed back.
Along both axes that is ``(m + 2)^2`` products for ``m^2`` outputs. The points are 0, 1, -1 and infinity, for
``m = 4`` also 2 and -2 (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016).

Each transform is written once, as additions and multiplications by constants in a fixed order: on vectors it
is code, on numpy arrays it folds constants, which are then the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

#: Elements of a filter along an axis.
TAPS = 3


class Arithmetic(Protocol[T]):
    """The arithmetic that transforms are computed with."""

    def add(self, left: T, right: T, /) -> T:
        """Return the sum."""

    def sub(self, left: T, right: T, /) -> T:
        """Return the difference."""

    def scale(self, value: T, factor: float, /) -> T:
        """Return the product with a constant."""


class ArrayArithmetic:
    """The arithmetic of numpy arrays, which rounds as compiled code does."""

    def add(self, left: Any, right: Any) -> Any:
        """Return the sum."""
        return left + right

    def sub(self, left: Any, right: Any) -> Any:
        """Return the difference."""
        return left - right

    def scale(self, value: Any, factor: float) -> Any:
        """Return the product with a constant of the dtype of ``value``."""
        return value * value.dtype.type(factor)


def data_transform(a: Arithmetic[T], outputs: int, d: Sequence[T]) -> list[T]:
    """Return the transform of ``outputs + 2`` neighbouring elements of the image."""
    if outputs == 2:
        return [a.sub(d[0], d[2]), a.add(d[1], d[2]), a.sub(d[2], d[1]), a.sub(d[1], d[3])]
    even, odd = a.sub(d[4], a.scale(d[2], 4)), a.sub(d[3], a.scale(d[1], 4))
    near, far = a.sub(d[4], d[2]), a.scale(a.sub(d[3], d[1]), 2)
    return [
        a.add(a.sub(a.scale(d[0], 4), a.scale(d[2], 5)), d[4]),
        a.add(even, odd),
        a.sub(even, odd),
        a.add(near, far),
        a.sub(near, far),
        a.add(a.sub(a.scale(d[1], 4), a.scale(d[3], 5)), d[5]),
    ]


def filter_transform(a: Arithmetic[T], outputs: int, g: Sequence[T]) -> list[T]:
    """Return the transform of the three elements of a filter."""
    ends = a.add(g[0], g[2])
    if outputs == 2:
        return [g[0], a.scale(a.add(ends, g[1]), 1 / 2), a.scale(a.sub(ends, g[1]), 1 / 2), g[2]]
    wide, middle = a.add(g[0], a.scale(g[2], 4)), a.scale(g[1], 2)
    return [
        a.scale(g[0], 1 / 4),
        a.scale(a.add(ends, g[1]), -1 / 6),
        a.scale(a.sub(ends, g[1]), -1 / 6),
        a.scale(a.add(wide, middle), 1 / 24),
        a.scale(a.sub(wide, middle), 1 / 24),
        g[2],
    ]


def output_transform(a: Arithmetic[T], outputs: int, p: Sequence[T]) -> list[T]:
    """Return ``outputs`` neighbouring elements of the result from ``outputs + 2`` sums of products."""
    both, apart = a.add(p[1], p[2]), a.sub(p[1], p[2])
    if outputs == 2:
        return [a.add(p[0], both), a.sub(apart, p[3])]
    far_both, far_apart = a.add(p[3], p[4]), a.sub(p[3], p[4])
    return [
        a.add(a.add(p[0], both), far_both),
        a.add(apart, a.scale(far_apart, 2)),
        a.add(both, a.scale(far_both, 4)),
        a.add(a.add(apart, a.scale(far_apart, 8)), p[5]),
    ]


def both_axes(
    transform: Callable[[Arithmetic[T], int, Sequence[T]], list[T]],
    a: Arithmetic[T],
    outputs: int,
    square: Sequence[Sequence[T]],
) -> list[list[T]]:
    """Return ``transform`` of the columns of ``square``, rows of elements, and then of the rows of that."""
    columns = [transform(a, outputs, column) for column in zip(*square, strict=True)]
    return [transform(a, outputs, row) for row in zip(*columns, strict=True)]
