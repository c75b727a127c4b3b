"""Windows along an axis of an image, which may reach into margins that are not in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.layout import Window
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Branch, Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value


def image_within(value: Value, padding: Window | None) -> Window:
    """Return the image that ``value``, ``[N, space..., C]``, is, or is with ``padding`` along space alone."""
    if padding is not None:
        shape, inner, first = value.type.shape, padding.source.type.shape, padding.first
        if all(shape[end] == inner[end] and first[end] == 0 for end in (0, -1)):
            return padding
    return Window(value, (0,) * value.type.rank, None)


@dataclass(frozen=True)
class WindowAxis:
    """The windows along one axis of space.

    Attributes:
        extent: The elements of the image, without its margins.
        low: How many of the margin lie before them.
        results: How many windows there are.
        window: The elements of a window.
        stride: How far apart windows begin.
        spacing: How far apart their elements lie.
    """

    extent: int
    low: int
    results: int
    window: int
    stride: int = 1
    spacing: int = 1

    @property
    def inside(self) -> range:
        """Return the results whose windows have no part of the margins."""
        room = max(0, self.extent + self.low - (self.window - 1) * self.spacing)
        return range(max(0, -(-self.low // self.stride)), min(self.results, -(-room // self.stride)))

    @property
    def margins(self) -> int:
        """Return how many results have a part of the margins in their windows."""
        return self.results - len(self.inside)

    def element(self, e: Emitter, at: Index, *, within: bool) -> tuple[Index, list[Value]]:
        """Return where element ``at``, margins counted, is in the image, and the conditions for that.

        There are none if it is certainly ``within``; where they do not hold, that is the nearest element.
        """
        if within:
            return e.sub(at, self.low), []
        end = self.low + self.extent
        nearest = e.minimum(e.maximum(at, self.low), end - 1)
        return e.sub(nearest, self.low), [e.compare("uge", at, self.low), e.compare("ult", at, end)]


def window_axes(
    view: View, place: int, space: Sequence[int], taps: Sequence[int], window: Window
) -> tuple[WindowAxis, ...]:
    """Return the windows along each axis of space, whose results and elements these loops go over.

    They are those of operand ``place`` of ``view``, an image that is ``window``.
    """
    axes = []
    for number, (tap, result) in enumerate(zip(taps, space, strict=True), start=1):
        factors = dict(view.accesses[place][number].terms)
        extent, low = window.source.type.shape[number], -window.first[number]
        extents = view.extents[result], view.extents[tap]
        axes.append(WindowAxis(extent, low, *extents, factors[result], factors[tap]))
    return tuple(axes)


def where_inside(
    e: Emitter,
    axes: Sequence[WindowAxis],
    places: Sequence[Index],
    carried: list[Value],
    whole: Branch,
    border: Branch,
) -> list[Value]:
    """Emit ``whole`` for results at ``places`` whose windows have no part of the margins, else ``border``."""
    conditions = []
    for axis, place in zip(axes, places, strict=True):
        inside = axis.inside
        if not inside:
            return border(carried)
        if inside.start > 0:
            conditions.append(e.compare("uge", place, inside.start))
        if inside.stop < axis.results:
            conditions.append(e.compare("ule", place, inside.stop - 1))
    return e.either(e.all(conditions), carried, whole, border) if conditions else whole(carried)
