"""Convolutions of few channels and features: filters of pictures, of depth or of sound.

Vectors run along lines of pixels. Where each channel is convolved by itself and pixels of results are
neighbours in the image, all channels lie side by side in them: `result[i] += weight[tap, i mod channels] *
line[i + tap*channels]`. Else the image is taken apart into planes first, one for each channel, and, where
windows are several pixels apart, one for each pixel of a step: neighbours of a result then read neighbours of
a plane. Planes of features are transposed to pixels.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.kind import Refusal, Site, ViewNest
from mind_mlir.lowering.schedule.windows.axis import WindowAxis, image_within, window_axes
from mind_mlir.lowering.schedule.windows.depthwise import match_convolution
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.values import MultiplyAdd
    from mind_mlir.target import Target

#: Registers that hold sums, of all that there are.
_SHARE = 3 / 8
#: So many features are computed at once at most.
_FEATURES = 4
# How much longer than to multiply and add vectors in a product it takes to do so along planes, where more is
# loaded for each; to move an element; to do so along channels; and to add up the elements of a vector.
_SLOWER, _MOVED, _CHANNELS_SUMMED, _SUM_ACROSS = 1.25, 2, 2, 8


@dataclass(frozen=True)
class Lines(ViewNest):
    """A convolution of an image ``[N, space..., C]`` with a filter ``[window..., channels, F]``, in groups.

    Attributes:
        image: The image, margins included.
        filter: The filter; there may be dimensions of extent 1 before its last ones.
        axes: The windows along each axis of space.
        groups: How many groups there are, where the image is taken apart into planes.
        channels: The channels of a group.
        features: The features of a group.
        side: How many channels, each a group, lie side by side in a line; 1 in planes.
        body: How an element is computed.
    """

    image: Value
    filter: Value
    axes: tuple[WindowAxis, ...]
    groups: int
    channels: int
    features: int
    side: int
    body: MultiplyAdd

    @property
    def reads(self) -> tuple[Value, ...]:
        """What it reads."""
        return (self.image, self.filter)

    @property
    def length(self) -> int:
        """Return the elements of a line of results."""
        return self.axes[-1].results * self.side

    @property
    def planes(self) -> int:
        """Return how many planes the image becomes; 1 where it stays as it is."""
        return self.groups * self.channels * self.axes[-1].stride

    @property
    def terms(self) -> int:
        """Return how many terms an element is the sum of."""
        return math.prod(axis.window for axis in self.axes) * self.channels

    @property
    def places(self) -> list[int]:
        """Return where lines of results are: images, groups of features, and all axes but the last."""
        return [self.view.shapes[2][0], self.groups, *(axis.results for axis in self.axes[:-1])]


@dataclass(frozen=True)
class LinesSchedule:
    """The schedule of such a convolution.

    Attributes:
        lanes: Elements of a vector.
        vectors: Vectors of results that are computed at once: whole pixels.
        features: Features of a group that are.
        period: After so many vectors the channels of lanes are the same ones again.
        planes: How many planes the image becomes.
        split: How the parts of lines are split.
    """

    lanes: int
    vectors: int
    features: int
    period: int
    planes: int
    split: Split

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        tile = f"{self.features} x " if self.features > 1 else ""
        tile += f"{self.vectors} x {self.lanes}"
        return chosen(
            ("results", tile, "along a line: pixels are shorter than vectors"),
            self.planes > 1 and ("planes", str(self.planes), "neighbours read neighbours of a plane"),
            ("chunks", str(self.split.count), self.split.reason),
        )


def match_lines(site: Site) -> Lines | Refusal | None:
    """Return the operation as a convolution of floats along lines of short pixels, if it is one."""
    found = match_convolution(site)
    if found is None:
        return None
    view, place, roles = found.view, found.place, found.roles
    image, filter_ = view.inputs[place], view.inputs[1 - place]
    axes = window_axes(view, place, roles.space, roles.taps, image_within(image, None))
    groups, channels, features = (
        1 if loop is None else view.extents[loop] for loop in (roles.group, roles.channel, roles.feature)
    )
    lanes = site.scope.target.lanes(ir.RankedTensorType(view.inits[0].type).element_type.width)
    if groups * features >= lanes:
        return Refusal("vectors would hold less than a pixel") if channels == features == 1 else None
    side = groups if channels == features == axes[-1].stride == 1 else 1
    casts = found.body.casts if place == 0 else found.body.casts[::-1]
    body = dataclasses.replace(found.body, casts=casts)
    lines = Lines(view, image, filter_, axes, groups // side, channels, features, side, body)
    return Refusal("planes would take longer") if _moves_too_much(lines, lanes) else lines


def _moves_too_much(lines: Lines, lanes: int) -> bool:
    """Return whether planes take longer than vectors of features, or of channels for one feature."""
    if lines.side > 1 or lines.planes * lines.features == 1:
        return False
    pixels, features = lines.axes[-1].results, lines.groups * lines.features
    read = math.prod(axis.stride for axis in lines.axes) * lines.groups * lines.channels
    moved = pixels * ((lines.planes > 1) * read + (features > 1) * features)
    other = lines.terms
    if features == 1:
        taps, vectors = lines.terms // lines.channels, -(-lines.channels // lanes)
        other = min(other, _CHANNELS_SUMMED * taps * vectors + _SUM_ACROSS)
    along = _SLOWER * features * -(-pixels // lanes) * lines.terms
    return _MOVED * moved + along >= pixels * other


def lines_schedule(lines: Lines, target: Target) -> LinesSchedule | Refusal:
    """Return how to compute a convolution along lines."""
    lanes = target.lanes(lines.element.width)
    period = lines.side // math.gcd(lines.side, lanes)
    registers = int(target.vector_registers * _SHARE)
    most = min(registers, lines.length // lanes)
    if period > most:
        return Refusal("vectors of whole pixels would not fit registers, or lines")

    def cost(tile: tuple[int, int]) -> tuple[int, int]:
        features, count = tile
        tiles = -(-lines.features // features) * -(-lines.length // (count * lanes))
        return tiles * (features * count + features + 1), -features * count

    # The last part of a line overlaps the one before, so that all are alike; so do the last features.
    features, vectors = min(
        (
            (features, count)
            for features in range(1, min(_FEATURES, lines.features) + 1)
            for count in range(period, min(most, registers // features) + 1, period)
        ),
        key=cost,
    )
    tiles = -(-lines.features // features) * -(-lines.length // (vectors * lanes))
    parts = math.prod(lines.places) * tiles
    time = parts * vectors * features * lines.terms * target.rates.multiply_add_ns
    return LinesSchedule(lanes, vectors, features, period, lines.planes, split(parts, time))
