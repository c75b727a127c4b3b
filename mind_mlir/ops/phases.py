"""The gradients that flow back through sliding windows, phase by phase.

Element `h` of an axis is element `i` of window `o` where `h + low = o * stride + i * spacing`. Elements
whose index leaves the same remainder of the stride are a phase. They are in windows at the same places `i`,
of which each says how far `o` is from `h // stride`: so what flows back to a phase are sums over shifted
tensors, of as many terms as there are such places, and nothing is spaced out with zeros or gathered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.sliding import Sliding
    from mind_mlir.ops.vjp import VjpContext

#: So many phases, and so many elements of a window, are written out one by one at most.
_MOST = 64
#: Along no axis are there more elements of a window to look at one by one.
_LONGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Phase:
    """Elements of an axis that are a stride apart, and where in windows they lie.

    Attributes:
        start: The first of the elements.
        count: How many there are.
        places: At which places they lie in windows, the last one first.
        shifts: For each place, how far the window is from the number of the element in the phase: ascending.
    """

    start: int
    count: int
    places: tuple[int, ...]
    shifts: tuple[int, ...]


def phases(axis: Sliding) -> list[Phase]:
    """Return the phases of an axis without base dilation, by their first element."""
    return [_phase(axis, start) for start in range(min(axis.stride, axis.extent))]


def _phase(axis: Sliding, start: int) -> Phase:
    distances = {place: start + axis.low - place * axis.spacing for place in reversed(range(axis.window))}
    found = {place: far // axis.stride for place, far in distances.items() if far % axis.stride == 0}
    count = -(-(axis.extent - start) // axis.stride)
    return Phase(start, count, tuple(found), tuple(found.values()))


def has_few(axes: Sequence[Sliding], most: int = _MOST) -> bool:
    """Return whether there are at most so many phases that they may be written out one by one."""
    plain = all(axis.base == 1 and axis.window <= _LONGEST for axis in axes)
    return plain and math.prod(min(axis.stride, axis.extent) for axis in axes) <= most


def is_small(axes: Sequence[Sliding]) -> bool:
    """Return whether the elements of a window are so few that they may be written out one by one."""
    return math.prod(axis.window for axis in axes) <= _MOST


def spanned(context: VjpContext, value: Value, spans: Sequence[tuple[int, int]]) -> Value:
    """Return what ``value`` has from the first number of each pair up to the second; zeros are around it."""
    inside = [
        (min(max(low, 0), extent), max(min(high, extent), 0))
        for (low, high), extent in zip(spans, value.shape, strict=True)
    ]
    if any(low >= high for low, high in inside):
        return context.zeros(value.type.with_shape(tuple(high - low for low, high in spans)))
    if inside != [(0, extent) for extent in value.shape]:
        starts, ends = zip(*inside, strict=True)
        value = context.emit("Slice", value, starts=starts, ends=ends, steps=(1,) * len(spans))
    if inside == list(spans):
        return value
    return context.emit(
        "Pad",
        value,
        low=tuple(kept[0] - span[0] for kept, span in zip(inside, spans, strict=True)),
        high=tuple(span[1] - kept[1] for kept, span in zip(inside, spans, strict=True)),
        interior=(0,) * len(spans),
        pad_value=TensorLiteral.of(0, value.type.dtype),
    )


def joined(context: VjpContext, axes: Sequence[Sliding], part: Callable[[tuple[Phase, ...]], Value]) -> Value:
    """Return the tensor of which ``part`` appends what lies at each combination of phases of its axes."""
    every = [phases(axis) for axis in axes]
    parts: dict[tuple[int, ...], Value] = {}
    for chosen in itertools.product(*every):
        value = part(chosen)
        spans = [(0, found[0].count) for found in every]
        parts[tuple(phase.start for phase in chosen)] = spanned(context, value, spans)
    for dimension in reversed(range(len(axes))):
        starts = range(len(every[dimension]))
        parts = {
            rest: _interleaved(
                context, [parts[(*rest, start)] for start in starts], dimension, axes[dimension].extent
            )
            for rest in dict.fromkeys(key[:-1] for key in parts)
        }
    return parts[()]


def _interleaved(context: VjpContext, parts: Sequence[Value], dimension: int, extent: int) -> Value:
    """Return the elements of ``parts`` along ``dimension`` in turn, ``extent`` of them."""
    if len(parts) == 1:
        return parts[0]
    shape = parts[0].shape
    before, after = shape[:dimension], shape[dimension + 1 :]
    apart = (*before, shape[dimension], 1, *after)
    columns = [context.emit("Reshape", each, new_shape=apart) for each in parts]
    value = context.emit("Concat", *columns, axis=dimension + 1)
    whole = shape[dimension] * len(parts)
    value = context.emit("Reshape", value, new_shape=(*before, whole, *after))
    spans = [(0, extent if place == dimension else size) for place, size in enumerate(value.shape)]
    return spanned(context, value, spans)


def shifted(
    context: VjpContext, chosen: Sequence[Phase], value: Value, lows: Sequence[int]
) -> Mapping[tuple[int, ...], Value]:
    """Return, by its place in windows, what ``value`` has of each window that holds elements of a phase.

    Args:
        context: Appends the operations.
        chosen: A phase of each axis of ``value``.
        value: Has an element for each window, with zeros around it.
        lows: So many zeros lie before the first window along each axis.
    """
    found = {}
    for pairs in itertools.product(*(zip(phase.places, phase.shifts, strict=True) for phase in chosen)):
        places, shifts = zip(*pairs, strict=True)
        starts = tuple(low + shift for low, shift in zip(lows, shifts, strict=True))
        ends = tuple(start + phase.count for start, phase in zip(starts, chosen, strict=True))
        found[places] = spanned(context, value, list(zip(starts, ends, strict=True)))
    return found


def margins(every: Sequence[Sequence[Phase]], extents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return how many zeros there have to be around windows, before and after them along each axis."""
    lows, highs = [], []
    for found, extent in zip(every, extents, strict=True):
        shifts = [(shift, shift + phase.count) for phase in found for shift in phase.shifts]
        lows.append(max([0, *(-first for first, _ in shifts)]))
        highs.append(max([0, *(last - extent for _, last in shifts)]))
    return lows, highs
