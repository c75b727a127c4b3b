"""Large windows as windows of smaller ones: what is computed of a window is that of all its parts.

That holds of sums and extremes. So windows of several axes are taken one axis at a time, and one of `a * b`
elements as `b` windows of `a` elements each: what neighbouring windows have in common is computed once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from mind_mlir.ops.sliding import Sliding

#: What it costs to write a result of a stage and read it again, in elements that a window reads.
_TRAVEL = 2


def stages(axes: Sequence[Sliding]) -> list[list[Sliding]]:
    """Return the windows to reduce one after the other, of an operand that is padded and spaced out already.

    Example:
        >>> [[axis.window for axis in stage] for stage in stages([Sliding(99, 7), Sliding(99, 64)])]
        [[7, 1], [1, 8], [1, 8]]
    """
    whole = [dataclasses.replace(axis, extent=axis.padded, low=0, high=0, base=1) for axis in axes]
    apart = _one_by_one(whole)
    found = apart if _pays(apart, [whole]) else [whole]
    return [step for stage in found for step in _in_two(stage)]


def _one_by_one(axes: Sequence[Sliding]) -> list[list[Sliding]]:
    """Return a stage for each axis along which windows are thick."""
    thick = [place for place, axis in enumerate(axes) if axis.window > 1]
    # What leaves the fewest results comes first, with the strides of the axes that are not thick.
    order = sorted(thick, key=lambda place: axes[place].count / axes[place].extent)
    now = [axis if axis.window == 1 else Sliding(axis.extent) for axis in axes]
    found = []
    for place in order:
        now[place] = axes[place]
        found.append(now)
        now = [Sliding(axis.count) for axis in now]
    return found or [list(axes)]


def _in_two(stage: Sequence[Sliding]) -> list[list[Sliding]]:
    """Return ``stage`` in two steps, if it has one thick axis and that pays."""
    best = [list(stage)]
    thick = [place for place, axis in enumerate(stage) if axis.window > 1]
    if len(thick) != 1:
        return best
    (place,) = thick
    axis = stage[place]
    for inner in range(2, axis.window // 2 + 1):
        if axis.window % inner:
            continue
        step = math.gcd(axis.stride, inner * axis.spacing)
        small = Sliding(axis.extent, inner, step, spacing=axis.spacing)
        stride, spacing = axis.stride // step, inner * axis.spacing // step
        large = Sliding(small.count, axis.window // inner, stride, spacing=spacing)
        rest = [Sliding(each.count) for each in stage]
        found = [
            [*stage[:place], small, *stage[place + 1 :]],
            [*rest[:place], large, *rest[place + 1 :]],
        ]
        if _pays(found, [stage]) and _cost(found) < _cost(best):
            best = found
    return best


def _cost(found: Sequence[Sequence[Sliding]]) -> int:
    """Return what the stages cost, in elements read."""
    results = [math.prod(axis.count for axis in stage) for stage in found]
    windows = [math.prod(axis.window for axis in stage) for stage in found]
    return sum(count * (window + _TRAVEL) for count, window in zip(results, windows, strict=True))


def _pays(found: Sequence[Sequence[Sliding]], other: Sequence[Sequence[Sliding]]) -> bool:
    """Return whether ``found`` costs two thirds of ``other`` or less."""
    return 3 * _cost(found) <= 2 * _cost(other)
