"""Convolutions whose pixels are shorter than vectors: filters of pictures, of depth or of sound.

Each channel is convolved by itself, and there are so few of them that vectors run along a line of pixels, all
channels side by side: `result[i] += weight[tap, i mod channels] * line[i + tap * channels]`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value
from mind_mlir.lowering.schedule.kind import Kind, Refusal, Scope, Site, ViewNest
from mind_mlir.lowering.schedule.windows.axis import WindowAxis, image_within, window_axes
from mind_mlir.lowering.schedule.windows.depthwise import match_convolution
from mind_mlir.lowering.schedule.windows.terms import multiply_add, read_factor
from mind_mlir.mlir.bindings import Value, arith, ir, vector
from mind_mlir.ops.accumulation import BLOCK
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.values import MultiplyAdd
    from mind_mlir.target import Target

#: Registers that hold sums, of all that there are.
_SHARE = 3 / 8


@dataclass(frozen=True)
class Lines(ViewNest):
    """A convolution of an image ``[N, space..., C]`` with a filter ``[window..., C]``, channel by channel.

    Attributes:
        image: The image, margins included.
        filter: The filter; there may be dimensions of extent 1 before its last one.
        axes: The windows along each axis of space.
        channels: How many channels there are.
        body: How an element is computed.
    """

    image: Value
    filter: Value
    axes: tuple[WindowAxis, ...]
    channels: int
    body: MultiplyAdd

    @property
    def reads(self) -> tuple[Value, ...]:
        """What it reads."""
        return (self.image, self.filter)

    @property
    def length(self) -> int:
        """Return the elements of a line of results."""
        return self.axes[-1].results * self.channels

    @property
    def taps(self) -> int:
        """Return the elements of a window."""
        return math.prod(axis.window for axis in self.axes)


@dataclass(frozen=True)
class LinesSchedule:
    """The schedule of such a convolution.

    Attributes:
        lanes: Elements of a vector.
        vectors: Vectors of results that are computed at once: whole pixels.
        period: After so many vectors the channels of lanes are the same ones again.
        split: How the parts of lines are split.
    """

    lanes: int
    vectors: int
    period: int
    split: Split

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return chosen(
            ("results", f"{self.vectors} x {self.lanes}", "along a line: pixels are shorter than vectors"),
            ("chunks", str(self.split.count), self.split.reason),
        )


def match_lines(site: Site) -> Lines | Refusal | None:
    """Return the operation as a convolution of floats along lines of short pixels, if it is one."""
    found = match_convolution(site)
    if found is None or (found.roles.feature, found.roles.channel) != (None, None):
        return None
    view, place = found.view, found.place
    image, filter_ = view.inputs[place], view.inputs[1 - place]
    axes = window_axes(view, place, found.roles.space, found.roles.taps, image_within(image, None))
    channels = ir.RankedTensorType(image.type).shape[-1]
    if channels >= site.scope.target.lanes(ir.RankedTensorType(view.inits[0].type).element_type.width):
        return Refusal("vectors would hold less than a pixel")
    if axes[-1].stride > 1:
        return Refusal("windows along a line are more than a pixel apart")
    casts = found.body.casts if place == 0 else found.body.casts[::-1]
    return Lines(view, image, filter_, axes, channels, dataclasses.replace(found.body, casts=casts))


def lines_schedule(lines: Lines, target: Target) -> LinesSchedule | Refusal:
    """Return how to compute a convolution along lines."""
    lanes = target.lanes(lines.element.width)
    period = lines.channels // math.gcd(lines.channels, lanes)
    most = min(int(target.vector_registers * _SHARE), lines.length // lanes)
    if period > most:
        return Refusal("vectors of whole pixels would not fit registers, or lines")
    # The last part of a line overlaps the one before, so that all are alike.
    vectors = min(
        range(period, most + 1, period),
        key=lambda count: (-(-lines.length // (count * lanes)) * (count + 2), -count),
    )
    outer = lines.view.shapes[2][0] * math.prod(axis.results for axis in lines.axes[:-1])
    parts = outer * -(-lines.length // (vectors * lanes))
    return LinesSchedule(
        lanes, vectors, period, split(parts, parts * vectors * lines.taps * target.rates.multiply_add_ns)
    )


class LinesEmitter:
    """Emits a convolution along lines as its schedule says."""

    def __init__(self, scope: Scope, lines: Lines, schedule: LinesSchedule) -> None:
        self._e, self._n, self._s, self._fma = scope.emitter, lines, schedule, scope.target.fma
        shape = list(ir.RankedTensorType(lines.image.type).shape)
        self._image = collapse_value(lines.image, [*shape[:-2], shape[-2] * shape[-1]])
        self._filter = collapse_value(lines.filter, [lines.taps, lines.channels])
        self._zero = self._e.number(self._e.vector_type(schedule.lanes, lines.element), 0)

    def emit(self) -> list[Value]:
        """Emit the nest at the insertion point and return the result tensor."""
        e, shape = self._e, self._n.view.shapes[2]
        places = [shape[0], *(axis.results for axis in self._n.axes[:-1])]
        parts = -(-self._n.length // (self._s.vectors * self._s.lanes))
        result = e.empty([*places, self._n.length], self._n.element)

        def part(number: Index, carried: list[Value]) -> list[Value]:
            number, *at = e.digits(number, [parts, *reversed(places)])
            step = self._s.vectors * self._s.lanes
            return self._part(at[::-1], e.minimum(e.mul(number, step), self._n.length - step), carried)

        return e.iterations(self._s.split, math.prod(places) * parts, [result], part)

    def _part(self, places: Sequence[Index], start: Index, carried: list[Value]) -> list[Value]:
        """Emit the results at ``places`` from element ``start`` of the line on."""
        e, taps = self._e, self._n.taps
        zeros = [self._zero] * self._s.vectors

        def block(first: Index, totals: list[Value]) -> list[Value]:
            sums = e.loop((first, e.minimum(e.add(first, BLOCK), taps), 1), zeros, tap)
            return [arith.AddFOp(total, each).result for total, each in zip(totals, sums, strict=True)]

        def tap(number: Index, sums: list[Value]) -> list[Value]:
            return self._tap(places, start, number, sums)

        sums = e.loop((0, taps, 1), zeros, tap) if taps <= BLOCK else e.loop((0, taps, BLOCK), zeros, block)
        (result,) = carried
        for place, value in enumerate(sums):
            result = e.write(value, result, [*places, e.add(start, place * self._s.lanes)])
        return [result]

    def _tap(self, places: Sequence[Index], start: Index, number: Index, sums: list[Value]) -> list[Value]:
        """Emit what element ``number`` of the windows adds to ``sums``."""
        e, n, lanes = self._e, self._n, self._s.lanes
        *outer, along = reversed(e.digits(number, [axis.window for axis in reversed(n.axes)]))
        rows = [
            e.add(e.mul(place, axis.stride), e.mul(tap, axis.spacing))
            for axis, place, tap in zip(n.axes[:-1], places[1:], outer, strict=True)
        ]
        column = e.add(start, e.mul(along, n.axes[-1].spacing * n.channels))
        pixel = read_factor(e, self._filter, n.body.casts[1], n.channels, [number, 0])
        weights = [
            vector.ShuffleOp(
                pixel, pixel, [(phase * lanes + lane) % n.channels for lane in range(lanes)]
            ).result
            for phase in range(self._s.period)
        ]
        return [
            multiply_add(
                read_factor(
                    e, self._image, n.body.casts[0], lanes, [places[0], *rows, e.add(column, place * lanes)]
                ),
                weights[place % self._s.period],
                total,
                fma=self._fma,
            )
            for place, total in enumerate(sums)
        ]


#: Convolutions of few channels, each by itself.
LINES = Kind(
    "lines",
    match_lines,
    lines_schedule,
    lambda nest, schedule, site: LinesEmitter(site.scope, nest, schedule).emit(),
)
