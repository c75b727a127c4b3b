"""Depthwise convolutions: sums over windows for each channel by itself, or for few channels in each group.

There is no product to make of them. Vectors run along the features, those of several groups side by side, and
some neighbours of a line are computed at once: an element of the image is loaded once for all of them, and a
weight, too. Of groups of several channels, shuffles of what is loaded have one in all lanes of its group.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.emitter import zero
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.kind import Refusal, Site, ViewNest
from mind_mlir.lowering.schedule.linalg_view.layout import padding_of
from mind_mlir.lowering.schedule.linalg_view.values import (
    MultiplyAdd,
    constant_value,
    is_filled_with,
    match_multiply_add,
)
from mind_mlir.lowering.schedule.windows.axis import WindowAxis, image_within, window_axes
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.values import definition
from mind_mlir.ops.accumulation import BLOCK
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.target import Target


@dataclass(frozen=True)
class Depthwise(ViewNest):
    """A convolution of an image ``[N, space..., C]`` with a filter ``[window..., channels, F]``, in groups.

    The operands of the operation have a dimension for groups where these have several channels.

    Attributes:
        image: The image, without its margins of zeros.
        filter: The filter; ``[window..., F]`` where groups have one channel.
        axes: The windows along each axis of space.
        channels: The channels of a group.
        features: The features of a group.
        body: How an element is computed.
    """

    image: Value
    filter: Value
    axes: tuple[WindowAxis, ...]
    channels: int
    features: int
    body: MultiplyAdd

    @property
    def reads(self) -> tuple[Value, ...]:
        """What it reads."""
        return (self.image, self.filter)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the result, ``[N, space..., F]``."""
        shape = self.view.shapes[2]
        outer = len(self.axes) + 1
        return (*shape[:outer], math.prod(shape[outer:]))


@dataclass(frozen=True)
class DepthwiseSchedule:
    """The schedule of a depthwise convolution.

    Attributes:
        lanes: The channels of a vector.
        results: Neighbours of a line that are computed at once.
        split: How the lines are split.
    """

    lanes: int
    results: int
    split: Split

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return chosen(
            ("results", f"{self.results} x {self.lanes}", "neighbours of a line that the registers hold"),
            ("chunks", str(self.split.count), self.split.reason),
        )


class Roles(NamedTuple):
    """The loops of a convolution: over windows, their elements, groups, and what these have several of."""

    space: tuple[int, ...]
    taps: tuple[int, ...]
    group: int | None
    feature: int | None
    channel: int | None


class Convolution(NamedTuple):
    """An operation that is a convolution of floats in groups, of which operand ``place`` is the image."""

    view: View
    body: MultiplyAdd
    place: int
    roles: Roles


def match_convolution(site: Site) -> Convolution | None:
    """Return the operation as a convolution of floats in groups, if it is one."""
    view = site.view
    if view is None or len(view.operands) != 3 or view.results != 1 or not view.reductions:
        return None
    body = match_multiply_add(view.body)
    if body is None or not body.floating or not body.extends or 0 in view.extents:
        return None
    if not all(isinstance(value.type, ir.RankedTensorType) for value in view.operands):
        return None
    element = ir.RankedTensorType(view.inits[0].type).element_type
    if not isinstance(element, ir.F32Type | ir.F64Type) or not is_filled_with(view.inits[0], zero(element)):
        return None
    found = ((place, _roles(view, place)) for place in (0, 1))
    return next((Convolution(view, body, place, roles) for place, roles in found if roles is not None), None)


def match_depthwise(site: Site) -> Depthwise | Refusal | None:
    """Return the operation as a convolution of floats in groups of few channels, if it is one."""
    found = match_convolution(site)
    if found is None or found.roles.group is None:
        return None
    return _found(*found, site.scope.target)


def _roles(view: View, place: int) -> Roles | None:
    """Return the loops of ``view`` if operand ``place`` is the image of a convolution in groups."""
    image, filter_, result = view.accesses[place], view.accesses[1 - place], view.accesses[2]
    plain = [[index.dim for index in access] for access in (filter_, result)]
    if any(None in dims for dims in plain):
        return None
    taps, out = ([dim for dim in dims if dim is not None] for dims in plain)
    slides = [number for number, index in enumerate(image) if len(index.terms) == 2]
    space = len(slides)
    if not space or slides != list(range(1, space + 1)) or len(out) <= space + 1:
        return None
    group, feature = out[space + 1 : space + 2], out[space + 2 :]
    channel = [dim for dim in taps[space:] if dim in view.reductions]
    if len(feature) > 1 or len(channel) > 1 or taps != [*taps[:space], *channel, *group, *feature]:
        return None
    ends = [image[0].dim, *(index.dim for index in image[space + 1 :])]
    if ends == [out[0], *channel] and not feature:
        group, feature = [], group  # all channels for all features
    if ends != [out[0], *group, *channel] or not {*taps[:space], *channel} <= set(view.reductions):
        return None
    for index, window, tap in zip(image[1:], out[1:], taps[:space], strict=False):
        if index.constant or {dim for dim, _ in index.terms} != {window, tap}:
            return None
    loops = tuple(out[1 : space + 1]), tuple(taps[:space])
    return Roles(*loops, *(next(iter(each), None) for each in (group, feature, channel)))


def _found(
    view: View, body: MultiplyAdd, place: int, roles: Roles, target: Target
) -> Depthwise | Refusal | None:
    lanes = target.lanes(ir.RankedTensorType(view.inits[0].type).element_type.width)
    channels, features = (
        1 if loop is None else view.extents[loop] for loop in (roles.channel, roles.feature)
    )
    if features & (features - 1) or channels & (channels - 1) or not channels <= features <= lanes:
        return Refusal("vectors would not hold whole groups")
    if channels > 1 and features == lanes:
        return Refusal("vectors would hold one group: a product with its channels is faster")
    windows = [view.extents[tap] for tap in roles.taps]
    if math.prod(windows) * channels > BLOCK:
        return Refusal(f"more than {BLOCK} terms for one accumulator")
    space = len(windows)
    image = _flat(view.inputs[place], space + 1)
    filter_ = _flat(view.inputs[1 - place], space + (channels > 1))
    if image is None or filter_ is None:
        return None
    padding = padding_of(image)
    margin = None if padding is None else padding.margin
    if margin is None or constant_value(margin) != zero(image.type.element_type):
        padding = None
    window = image_within(image, padding)
    axes = window_axes(view, place, roles.space, roles.taps, window)
    if axes[-1].margins > 2 * axes[-1].window * axes[-1].spacing:  # too many to be code of their own each
        window = image_within(image, None)
        axes = window_axes(view, place, roles.space, roles.taps, window)
    casts = body.casts if place == 0 else (body.casts[1], body.casts[0])
    body = dataclasses.replace(body, casts=casts)
    return Depthwise(view, window.source, filter_, axes, channels, features, body)


def _flat(value: Value, outer: int) -> Value | None:
    """Return the tensor that ``value`` shows with its dimensions behind ``outer`` apart; None if none is."""
    shape = ir.RankedTensorType(value.type).shape
    if len(shape) == outer + 1:
        return value
    op = definition(value)
    if op is None or op.name != "tensor.expand_shape":
        return None
    source = op.operands[0]
    wanted = [*shape[:outer], math.prod(shape[outer:])]
    return source if list(ir.RankedTensorType(source.type).shape) == wanted else None


#: Registers beside those of the results and the weights of a line: for what is loaded.
_SPARE = 4
#: So many neighbours are computed at once at most: more save little.
_MOST = 12


def depthwise_schedule(depthwise: Depthwise, target: Target) -> DepthwiseSchedule:
    """Return how to compute a depthwise convolution."""
    *outer, last = depthwise.axes
    lanes = target.lanes(depthwise.element.width)
    most = max(
        2, min(_MOST, target.vector_registers - _SPARE - min(last.window, target.vector_registers // 3))
    )
    # Where the last ones of a line overlap others, these are computed twice.
    counts = range(1, min(most, last.results) + 1)
    results = min(counts, key=lambda count: (-(-last.results // count) * (count + last.window / 2), -count))
    vectors = -(-depthwise.shape[-1] // lanes)
    lines = depthwise.shape[0] * math.prod(axis.results for axis in outer)
    terms = math.prod(axis.window for axis in depthwise.axes) * depthwise.channels
    time = lines * last.results * vectors * terms * target.rates.multiply_add_ns
    return DepthwiseSchedule(lanes, results, split(lines, time))
