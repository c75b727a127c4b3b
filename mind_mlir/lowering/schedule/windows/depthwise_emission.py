"""The nest of a depthwise convolution: lines, vectors of features, and neighbours of a line in registers."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.kind import Kind, Scope
from mind_mlir.lowering.schedule.windows.axis import where_inside
from mind_mlir.lowering.schedule.windows.depthwise import depthwise_schedule, match_depthwise
from mind_mlir.lowering.schedule.windows.terms import multiply_add, read_factor
from mind_mlir.mlir.bindings import Value, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.windows.depthwise import Depthwise, DepthwiseSchedule


class _Line(NamedTuple):
    """A line of results: its image, its places along the other axes, and whether no window leaves these."""

    image: Index
    places: Sequence[Index]
    within: bool


class DepthwiseEmitter:
    """Emits one depthwise convolution as its schedule says."""

    def __init__(self, scope: Scope, depthwise: Depthwise, schedule: DepthwiseSchedule) -> None:
        self._e, self._d, self._s, self._fma = scope.emitter, depthwise, schedule, scope.target.fma
        self._lanes, self._last = schedule.lanes, depthwise.axes[-1]
        self._zero = self._e.number(self._e.vector_type(schedule.lanes, depthwise.element), 0)
        #: The lanes of what is loaded of an image for a vector of features.
        self._loaded = schedule.lanes * depthwise.channels // depthwise.features

    def emit(self) -> list[Value]:
        """Emit the nest at the insertion point and return the result tensor."""
        e, shape = self._e, self._d.shape
        lines = math.prod(shape[:-2])
        return e.iterations(self._s.split, lines, [e.empty(shape, self._d.element)], self._line)

    def _line(self, number: Index, carried: list[Value]) -> list[Value]:
        """Emit the results of one line."""
        e, outer = self._e, self._d.axes[:-1]
        extents = [self._d.shape[0], *(axis.results for axis in outer)]
        image, *places = reversed(e.digits(number, extents[::-1]))
        whole, border = (partial(self._channels, _Line(image, places, each)) for each in (True, False))
        return where_inside(e, outer, places, carried, whole, border)

    def _channels(self, line: _Line, carried: list[Value]) -> list[Value]:
        """Emit a line for each vector of features."""
        count, last = self._s.results, self._last
        starts = range(0, last.results, count)
        first, end = -(-last.inside.start // count), last.inside.stop // count
        runs = starts[first:end]
        before, behind = (starts[:first], starts[end:]) if runs else (starts, starts[:0])

        def vectors(c: Index, mask: Value | None, carried: list[Value]) -> list[Value]:
            neighbours = partial(self._neighbours, line, c, mask)
            for start in before:
                carried = neighbours(min(start, last.results - count), carried)
            if runs:
                carried = self._e.loop((runs.start, runs.stop, count), carried, neighbours)
            for start in behind:
                carried = neighbours(min(start, last.results - count), carried)
            return carried

        return self._e.vectors(self._d.shape[-1], self._lanes, carried, vectors)

    def _neighbours(
        self, line: _Line, c: Index, mask: Value | None, start: Index, carried: list[Value]
    ) -> list[Value]:
        """Emit neighbours of a line from ``start`` on; a start that is known may have part of the margins."""
        e, d, last = self._e, self._d, self._last
        windows = [axis.window for axis in d.axes[:-1]]
        #: Where elements of windows lie along the line, from the first of several neighbours on.
        lie = {
            n * last.stride + tap * last.spacing for n in range(self._s.results) for tap in range(last.window)
        }

        def tap_line(number: Index, sums: list[Value]) -> list[Value]:
            taps = list(reversed(e.digits(number, list(reversed(windows))))) if windows else []
            rows, inside = self._rows(line, taps)
            weights = [
                [self._weight([*taps, tap], channel, c, mask) for channel in range(d.channels)]
                for tap in range(last.window)
            ]
            sums = list(sums)
            begin = e.sub(e.mul(start, last.stride), last.low)
            for place in sorted(lie):
                column = e.add(begin, place)
                if isinstance(column, int) and not 0 <= column < last.extent:
                    values = [self._zero] * d.channels
                else:
                    values = self._elements([line.image, *rows, column], c, mask, inside)
                for result in range(self._s.results):
                    tap, rest = divmod(place - result * last.stride, last.spacing)
                    if rest or not 0 <= tap < last.window:
                        continue
                    for value, weight in zip(values, weights[tap], strict=True):
                        sums[result] = multiply_add(value, weight, sums[result], fma=self._fma)
            return sums

        sums = e.loop((0, math.prod(windows), 1), [self._zero] * self._s.results, tap_line)
        (total,) = carried
        for result, value in enumerate(sums):
            total = e.write(value, total, [line.image, *line.places, e.add(start, result), c], mask)
        return [total]

    def _rows(self, line: _Line, taps: Sequence[Index]) -> tuple[list[Index], Value | None]:
        """Return where elements lie along the other axes, and whether that is in the image.

        None stands for certainly; elsewhere, the nearest one that is in the image is read.
        """
        e, rows = self._e, []
        conditions: list[Value] = []
        for axis, place, tap in zip(self._d.axes[:-1], line.places, taps, strict=True):
            at = e.add(e.mul(place, axis.stride), e.mul(tap, axis.spacing))
            row, there = axis.element(e, at, within=line.within)
            rows.append(row)
            conditions += there
        return rows, e.all(conditions) if conditions else None

    def _weight(self, taps: Sequence[Index], channel: int, c: Index, mask: Value | None) -> Value:
        """Return the weights of a channel of each group, for a vector of features."""
        place = [*taps, *([channel] if self._d.channels > 1 else []), c]
        return read_factor(self._e, self._d.filter, self._d.body.casts[1], self._lanes, place, mask)

    def _elements(
        self, pixel: Sequence[Index], c: Index, mask: Value | None, inside: Value | None
    ) -> list[Value]:
        """Return each channel of the groups of a vector of features, in all lanes of its group.

        Where ``inside`` is given and does not hold, they are zeros.
        """
        e, channels, features = self._e, self._d.channels, self._d.features
        if mask is not None:
            live = self._d.shape[-1] % self._lanes * channels // features
            mask = e.mask(self._loaded, live)
        place = [*pixel, e.floordiv(c, features // channels)]
        value = read_factor(e, self._d.image, self._d.body.casts[0], self._loaded, place, mask)
        if inside is not None:
            value = e.select(inside, value, e.number(value.type, 0))
        if channels == features == 1:
            return [value]
        firsts = [lane // features * channels for lane in range(self._lanes)]
        return [
            vector.ShuffleOp(value, value, [first + channel for first in firsts]).result
            for channel in range(channels)
        ]


#: Convolutions in groups of one channel, or of few.
DEPTHWISE = Kind(
    "depthwise",
    match_depthwise,
    depthwise_schedule,
    lambda nest, schedule, site: DepthwiseEmitter(site.scope, nest, schedule).emit(),
)
