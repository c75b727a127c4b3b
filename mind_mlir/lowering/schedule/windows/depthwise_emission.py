"""The nest of a depthwise convolution: lines, vectors of features, and neighbours of a line in registers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import cast
from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.windows.depthwise import Depthwise, DepthwiseSchedule


class DepthwiseEmitter:
    """Emits one depthwise convolution as its schedule says."""

    def __init__(
        self, emitter: Emitter, depthwise: Depthwise, schedule: DepthwiseSchedule, *, fma: bool
    ) -> None:
        self._e, self._d = emitter, depthwise
        self._fma = fma
        self._element = depthwise.element
        self._schedule = schedule
        self._lanes = self._schedule.lanes
        self._zero = emitter.number(emitter.vector_type(self._lanes, self._element), 0)
        self._last = depthwise.axes[-1]
        #: The lanes of what is loaded of an image for a vector of features.
        self._loaded = self._lanes * depthwise.channels // depthwise.features
        #: Where elements of windows lie along a line, from the first of several neighbours on.
        self._places = sorted(
            {
                result * self._last.stride + tap * self._last.spacing
                for result in range(self._schedule.results)
                for tap in range(self._last.window)
            }
        )

    def emit(self) -> Value:
        """Emit the nest at the insertion point and return the result tensor."""
        e, shape = self._e, self._d.shape
        lines = math.prod(shape[:-2])
        result = e.empty(list(shape), self._element)

        def chunk(first: Index, end: Index, carried: list[Value]) -> list[Value]:
            return e.loop((first, end, 1), carried, self._line)

        return e.chunks(self._schedule.split, lines, [result], chunk)[0]

    def _line(self, number: Index, carried: list[Value]) -> list[Value]:
        """Emit the results of one line."""
        e, outer = self._e, self._d.axes[:-1]
        extents = [self._d.shape[0], *(axis.results for axis in outer)]
        image, *places = reversed(e.digits(number, extents[::-1]))
        conditions = []
        for axis, place in zip(outer, places, strict=True):
            inside = [result for result in range(axis.results) if axis.is_inside(result)]
            if not inside:
                return self._channels(image, places, carried, within=False)
            if inside[0] > 0:
                conditions.append(e.compare("uge", place, inside[0]))
            if inside[-1] < axis.results - 1:
                conditions.append(e.compare("ule", place, inside[-1]))
        if not conditions:
            return self._channels(image, places, carried, within=True)
        return e.either(
            e.all(conditions),
            carried,
            lambda inner: self._channels(image, places, inner, within=True),
            lambda inner: self._channels(image, places, inner, within=False),
        )

    def _channels(
        self, image: Index, places: Sequence[Index], carried: list[Value], *, within: bool
    ) -> list[Value]:
        """Emit a line for each vector of features.

        Args:
            image: Which image it is of.
            places: Where the line is along the other axes.
            carried: The result.
            within: Whether windows have no part of the margins along these.
        """

        def vectors(c: Index, mask: Value | None, inside: list[Value]) -> list[Value]:
            count, last = self._schedule.results, self._last
            starts = [min(first, last.results - count) for first in range(0, last.results, count)]
            whole = [start for start in starts if last.is_inside(start) and last.is_inside(start + count - 1)]
            runs = [start for start in whole if start % count == 0]
            for start in starts:
                if start not in runs:
                    inside = self._neighbours(image, places, start, c, mask, inside, within=within)
                elif start == runs[0]:
                    inside = self._e.loop(
                        (runs[0], runs[-1] + 1, count),
                        inside,
                        lambda at, inner: self._neighbours(image, places, at, c, mask, inner, within=within),
                    )
            return inside

        return self._e.vectors(self._d.shape[-1], self._lanes, carried, vectors)

    def _neighbours(
        self,
        image: Index,
        places: Sequence[Index],
        start: Index,
        c: Index,
        mask: Value | None,
        carried: list[Value],
        *,
        within: bool,
    ) -> list[Value]:
        """Emit neighbours of a line from ``start`` on; a start that is known may have part of the margins."""
        e, outer, last = self._e, self._d.axes[:-1], self._last
        windows = [axis.window for axis in outer]

        def tap_line(number: Index, sums: list[Value]) -> list[Value]:
            taps = list(reversed(e.digits(number, list(reversed(windows))))) if windows else []
            rows, inside = self._rows(places, taps, within=within)
            weights = [
                [self._weight([*taps, tap], channel, c, mask) for channel in range(self._d.channels)]
                for tap in range(last.window)
            ]
            sums = list(sums)
            begin = e.sub(e.mul(start, last.stride), last.low) if last.low else e.mul(start, last.stride)
            for place in self._places:
                column = begin + place if isinstance(begin, int) else e.add(begin, place)
                if isinstance(column, int) and not 0 <= column < last.extent:
                    values = [self._zero] * self._d.channels
                else:
                    values = self._elements([image, *rows, column], c, mask, inside)
                for result in range(self._schedule.results):
                    tap, rest = divmod(place - result * last.stride, last.spacing)
                    if rest or not 0 <= tap < last.window:
                        continue
                    for value, weight in zip(values, weights[tap], strict=True):
                        sums[result] = self._multiply_add(value, weight, sums[result])
            return sums

        sums = e.loop((0, math.prod(windows), 1), [self._zero] * self._schedule.results, tap_line)
        (total,) = carried
        for result, value in enumerate(sums):
            total = e.write(value, total, [image, *places, e.add(start, result), c], mask)
        return [total]

    def _rows(
        self, places: Sequence[Index], taps: Sequence[Index], *, within: bool
    ) -> tuple[list[Index], Value | None]:
        """Return where elements lie along the other axes, and whether that is in the image.

        None stands for certainly; elsewhere, the nearest one that is in the image is read.
        """
        e, rows, conditions = self._e, [], []
        for axis, place, tap in zip(self._d.axes[:-1], places, taps, strict=True):
            at = e.add(e.mul(place, axis.stride), e.mul(tap, axis.spacing))
            if within:
                rows.append(e.sub(at, axis.low))
                continue
            end = axis.low + axis.extent
            nearest = e.minimum(e.maximum(at, axis.low), end - 1)
            rows.append(e.sub(nearest, axis.low))
            conditions += [e.compare("uge", at, axis.low), e.compare("ult", at, end)]
        return rows, e.all(conditions) if conditions else None

    def _weight(self, taps: Sequence[Index], channel: int, c: Index, mask: Value | None) -> Value:
        """Return the weights of a channel of each group, for a vector of features."""
        place = [*taps, *([channel] if self._d.channels > 1 else []), c]
        return self._read(self._d.filter, 1, self._lanes, place, mask)

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
        value = self._read(self._d.image, 0, self._loaded, place, mask)
        if inside is not None:
            nothing = e.number(e.vector_type(self._loaded, self._element), 0)
            value = e.select(inside, value, nothing)
        if channels == features == 1:
            return [value]
        return [
            vector.ShuffleOp(
                value, value, [lane // features * channels + channel for lane in range(self._lanes)]
            ).result
            for channel in range(channels)
        ]

    def _read(
        self, source: Value, operand: int, lanes: int, place: Sequence[Index], mask: Value | None
    ) -> Value:
        """Return a vector of an operand as accumulators have it."""
        element = ir.RankedTensorType(source.type).element_type
        type_ = self._e.vector_type(lanes, element)
        value = self._e.read(type_, source, place, self._e.number(element, 0), mask)
        return cast(self._d.body.casts[operand], value, [lanes])

    def _multiply_add(self, left: Value, right: Value, total: Value) -> Value:
        if self._fma:
            return vector.FMAOp(left, right, total).result
        return arith.AddFOp(total, arith.MulFOp(left, right).result).result
