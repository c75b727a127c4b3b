"""Rules of what moves elements to places that are known beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext


def reshape(context: StablehloContext) -> HloValue:
    """Rule of what gives the elements another shape, row by row."""
    return context.reshape(context.operands[0], context.result_type.extents)


def tile(context: StablehloContext) -> HloValue:
    """Rule of `Tile`: an axis for the copies before each axis, and both as one."""
    (x,) = context.operands
    repeats = context.attributes["repeats"]
    shape = [extent for pair in zip(repeats, x.shape, strict=True) for extent in pair]
    stretched = context.broadcast_in_dim(x, shape, range(1, 2 * x.rank, 2))
    return context.reshape(stretched, context.result_type.extents)


def iota(context: StablehloContext) -> HloValue:
    """Rule of `Iota`."""
    type_ = context.result_type
    return context.iota(type_, context.attributes["axis"] % type_.rank)


def slice_(context: StablehloContext) -> HloValue:
    """Rule of `Slice`; StableHLO has no negative steps: such axes are reversed first."""
    (x,) = context.operands
    attributes = context.attributes
    bounds = zip(x.shape, attributes["starts"], attributes["ends"], attributes["steps"], strict=True)
    taken = [range(extent)[start:end:step] for extent, start, end, step in bounds]
    x = context.reverse(x, [axis for axis, places in enumerate(taken) if places.step < 0])
    starts, limits, strides = [], [], []
    for extent, places in zip(x.shape, taken, strict=True):
        step = abs(places.step)
        first = (extent - 1 - places[0] if places.step < 0 else places[0]) if places else 0
        starts.append(first)
        limits.append(first + (len(places) - 1) * step + 1 if places else first)
        strides.append(step)
    return context.slice(x, starts, limits, strides)


def pad(context: StablehloContext) -> HloValue:
    """Rule of `Pad`."""
    (x,) = context.operands
    attributes = context.attributes
    fill = context.literal(attributes["pad_value"])
    return context.pad(x, fill, attributes["low"], attributes["high"], attributes["interior"])
