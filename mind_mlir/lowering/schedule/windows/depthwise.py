"""Depthwise convolutions: sums over windows for each channel by itself, with a filter of its own.

There is no product to make of them. Vectors run along the channels, and some neighbours of a line are
computed at once: an element of the image is loaded once for all of them, and a weight, too.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import FMA_NS
from mind_mlir.lowering.schedule.emission.decision import Choice
from mind_mlir.lowering.schedule.emission.emitter import zero
from mind_mlir.lowering.schedule.emission.split import Split, split
from mind_mlir.lowering.schedule.linalg_view.layout import static_numbers
from mind_mlir.lowering.schedule.linalg_view.values import (
    MultiplyAdd,
    constant_value,
    is_filled_with,
    match_multiply_add,
)
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.values import definition
from mind_mlir.ops.accumulation import BLOCK

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class Axis:
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
    stride: int
    spacing: int

    def first(self, result: int) -> int:
        """Return where the window of a result begins in the image; below zero in the margin."""
        return result * self.stride - self.low

    def is_inside(self, result: int) -> bool:
        """Return whether the window of a result has no part of the margins."""
        first = self.first(result)
        return first >= 0 and first + (self.window - 1) * self.spacing < self.extent


@dataclasses.dataclass(frozen=True)
class Depthwise:
    """A depthwise convolution of an image ``[N, space..., C]`` with a filter ``[window..., C]``.

    Attributes:
        view: The operation.
        image: The image, without its margins of zeros.
        filter: The filter.
        axes: The windows along each axis of space.
        body: How an element is computed.
    """

    view: View
    image: Value
    filter: Value
    axes: tuple[Axis, ...]
    body: MultiplyAdd

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the result."""
        return self.view.shapes[2]


@dataclasses.dataclass(frozen=True)
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
        return (
            Choice(
                "results", f"{self.results} x {self.lanes}", "neighbours of a line that the registers hold"
            ),
            Choice("chunks", str(self.split.count), self.split.reason),
        )


def match_depthwise(view: View) -> Depthwise | None:
    """Return ``view`` as a depthwise convolution of floats along one to three axes, if it is one."""
    if len(view.operands) != 3 or view.results != 1 or len(view.reductions) not in (1, 2, 3):
        return None
    out = [index.dim for index in view.accesses[2]]
    if None in out or len(out) != len(view.reductions) + 2 or 0 in view.extents:
        return None
    body = match_multiply_add(view.body)
    if body is None or not body.floating or not body.extends:
        return None
    if not all(isinstance(value.type, ir.RankedTensorType) for value in view.operands):
        return None
    element = ir.RankedTensorType(view.inits[0].type).element_type
    if not isinstance(element, ir.F32Type | ir.F64Type) or not is_filled_with(view.inits[0], zero(element)):
        return None
    for place in (0, 1):
        pairs = _windows(view, place, out)
        if pairs is not None:
            return _found(view, body, place, pairs)
    return None


def _windows(view: View, place: int, out: list[int | None]) -> list[tuple[int, int]] | None:
    """Return stride and spacing along each axis, if operand ``place`` is the image of a filter."""
    image, filter_ = view.accesses[place], view.accesses[1 - place]
    batch, *space, channel = out
    taps = [index.dim for index in filter_]
    if len(image) != len(out) or len(taps) != len(space) + 1 or taps[-1] != channel:
        return None
    if (image[0].dim, image[-1].dim) != (batch, channel) or set(taps[:-1]) != set(view.reductions):
        return None
    found = []
    for index, result, tap in zip(image[1:-1], space, taps, strict=False):
        factors = dict(index.terms)
        if index.constant or set(factors) != {result, tap}:
            return None
        assert result is not None, "looked at before"
        assert tap is not None, "it is a dimension of the reductions"
        found.append((factors[result], factors[tap]))
    return found


def _found(view: View, body: MultiplyAdd, place: int, pairs: list[tuple[int, int]]) -> Depthwise | None:
    image, filter_ = view.inputs[place], view.inputs[1 - place]
    if math.prod(filter_.type.shape[:-1]) > BLOCK:
        return None  # one accumulator takes no more terms
    lows = [0] * len(view.shapes[place])
    margin = _margin(image)
    if margin is not None:
        image, lows = margin
    axes = tuple(
        Axis(extent, low, results, window, stride, spacing)
        for extent, low, results, window, (stride, spacing) in zip(
            image.type.shape[1:-1],
            lows[1:-1],
            view.shapes[2][1:-1],
            filter_.type.shape[:-1],
            pairs,
            strict=True,
        )
    )
    casts = body.casts if place == 0 else (body.casts[1], body.casts[0])
    return Depthwise(view, image, filter_, axes, dataclasses.replace(body, casts=casts))


def _margin(value: Value) -> tuple[Value, list[int]] | None:
    """Return the image that ``value`` is with margins of zeros, and how many lie before it on each axis."""
    op = definition(value)
    if op is None or op.name != "tensor.pad":
        return None
    source, end = op.operands[0], op.regions[0].blocks[0].operations[0].operation
    low, high = static_numbers(op, "static_low"), static_numbers(op, "static_high")
    if low is None or high is None or end.name != "tensor.yield":
        return None
    element = ir.RankedTensorType(value.type).element_type
    if constant_value(end.operands[0]) != zero(element) or low[0] or high[0] or low[-1] or high[-1]:
        return None
    return source, list(low)


#: Registers beside those of the results and the weights of a line: for what is loaded.
_SPARE = 4
#: So many neighbours are computed at once at most: more save little.
_MOST = 12


def depthwise_schedule(depthwise: Depthwise, bits: int, target: Target) -> DepthwiseSchedule:
    """Return how to compute a depthwise convolution with accumulators of so many bits."""
    *outer, last = depthwise.axes
    lanes = target.lanes(bits)
    most = max(
        2, min(_MOST, target.vector_registers - _SPARE - min(last.window, target.vector_registers // 3))
    )
    # Where the last ones of a line overlap others, these are computed twice.
    counts = range(1, min(most, last.results) + 1)
    results = min(counts, key=lambda count: (-(-last.results // count) * (count + last.window / 2), -count))
    channels = depthwise.shape[-1]
    lines = depthwise.shape[0] * math.prod(axis.results for axis in outer)
    window = math.prod(axis.window for axis in depthwise.axes)
    time = lines * last.results * -(-channels // lanes) * window * FMA_NS
    return DepthwiseSchedule(lanes, results, split(lines, time))
