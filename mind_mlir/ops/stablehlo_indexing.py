"""Rules of what reads and writes at positions: those that values give, and those known beforehand.

What our operations report when they run, a position out of bounds, StableHLO lets pass: its gathers and
slices move the position until it fits, and its scatters leave the update out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ops.accumulators import default_accumulator, identity_number
from mind_mlir.ops.stablehlo_conversion import converted
from mind_mlir.ops.stablehlo_reductions import COMBINERS
from mind_mlir.ops.windows import Bounds, Windows, WindowsRule, elements, rows

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext
    from mind_mlir.ops.rules import StablehloRule


#: What combines elements with updates, by the kind of a scatter.
SCATTERED = {"Add": "add", "Mul": "multiply", "Max": "maximum", "Min": "minimum"}


def index(context: StablehloContext) -> HloValue:
    """Rule of `Index`."""
    (x,) = context.operands
    starts, limits = [0] * x.rank, list(x.shape)
    for axis, (place, extent) in enumerate(zip(context.attributes["indices"], x.shape, strict=False)):
        if not extent:
            return context.constant(0, context.result_type)
        starts[axis] = min(max(place + extent if place < 0 else place, 0), extent - 1)
        limits[axis] = starts[axis] + 1
    return context.reshape(context.slice(x, starts, limits), context.result_type.extents)


def gather(windows_of: WindowsRule) -> StablehloRule:
    """Return the rule of a gather of these windows."""

    def rule(context: StablehloContext) -> HloValue:
        x, indices = context.operands
        shapes = (x.shape, indices.shape, context.result_type.extents)
        windows = windows_of(context.attributes, shapes)
        return _gathered(context, x, _from_start(context, windows, indices), windows)

    return rule


def scatter(windows_of: WindowsRule) -> StablehloRule:
    """Return the rule of a scatter to these windows."""

    def rule(context: StablehloContext) -> HloValue:
        operand, indices, updates = context.operands
        kind = context.attributes.get("reduce", "Add")
        if not operand.rank and kind == "Add":
            return _all_added(context, operand, updates)
        windows = windows_of(context.attributes, [each.shape for each in context.operands])
        indices = _from_start(context, windows, indices)
        return _scattered(context, operand, indices, updates, kind, windows)

    return rule


def dynamic_slice(context: StablehloContext) -> HloValue:
    """Rule of `DynamicSlice`."""
    x, start = context.operands
    sizes = context.integers(context.attributes["sizes"])
    return context.emit(
        "dynamic_slice", [x, *_numbers(context, start)], context.result_type, slice_sizes=sizes
    )


def dynamic_update_slice(context: StablehloContext) -> HloValue:
    """Rule of `DynamicUpdateSlice`."""
    x, update, start = context.operands
    return context.emit("dynamic_update_slice", [x, update, *_numbers(context, start)], x.type)


def scatter_reduce(context: StablehloContext) -> HloValue:
    """Rule of `ScatterReduce`."""
    operand, indices, updates = context.operands
    kind = context.attributes["reduce"]
    if not updates.type.element_count:
        return operand
    windows = elements(context.attributes, [operand.shape, indices.shape])
    if kind != "Replace":
        return _scattered(context, operand, indices, updates, kind, windows)
    # StableHLO does not say which of several updates of one element comes last: the greatest number tells.
    numbers = context.iota(indices.type, context.attributes["axis"])
    nobody = context.constant(-1, operand.type.with_dtype(indices.dtype))
    last = _scattered(context, nobody, indices, numbers, "Max", windows)
    there = elements(context.attributes, [updates.shape, last.shape])
    found = _gathered(context, updates, last, there)
    return context.select(context.compare("Less", last, 0), operand, found)


def segment_reduce(context: StablehloContext) -> HloValue:
    """Rule of `SegmentReduce`."""
    values, ids = context.operands
    attributes, result = context.attributes, context.result_type
    accumulator, kind = attributes["accum_dtype"], attributes["kind"]
    start = context.constant(identity_number(kind, accumulator), result.with_dtype(accumulator))
    terms = converted(context, values, accumulator)
    total = start
    if result.element_count and values.type.element_count:
        total = _scattered(context, start, ids, terms, kind, rows({}, [start.shape, ids.shape]))
    return converted(context, total, result.dtype)


def _gathered(context: StablehloContext, x: HloValue, indices: HloValue, windows: Windows) -> HloValue:
    """Append what lies in windows, whose indices count from the start."""
    type_ = x.type.with_shape(windows.shape)
    if not x.type.element_count or not type_.element_count:
        return context.constant(0, type_)
    return context.structured.gather(
        x,
        indices,
        type_,
        sizes=windows.sizes,
        start_index_map=windows.indexed,
        index_vector_dim=windows.vector_dim,
        offset_dims=windows.window_dims,
        collapsed=windows.thin_dims,
        operand_batching=windows.batching_dims,
        indices_batching=windows.indices_batching_dims,
    )


def _scattered(
    context: StablehloContext,
    operand: HloValue,
    indices: HloValue,
    updates: HloValue,
    kind: str,
    windows: Windows,
) -> HloValue:
    """Append a scatter; floats narrower than f32 are added in f32, and rounded once."""
    wide = default_accumulator(operand.dtype) if kind in ("Add", "Sum", "Mul") else operand.dtype
    found = context.structured.scatter(
        context.convert(operand, wide),
        indices,
        context.convert(updates, wide),
        lambda element, update: (
            update if kind == "Replace" else context.binary((COMBINERS | SCATTERED)[kind], element, update)
        ),
        update_window_dims=windows.window_dims,
        inserted=windows.thin_dims,
        scatter_dims=windows.indexed,
        index_vector_dim=windows.vector_dim,
        operand_batching=windows.batching_dims,
        indices_batching=windows.indices_batching_dims,
    )
    return context.convert(found, operand.dtype)


def _all_added(context: StablehloContext, operand: HloValue, updates: HloValue) -> HloValue:
    """Append the sum of a scalar and all updates, which XLA takes for no scatter."""
    wide = default_accumulator(operand.dtype)
    (total,) = context.structured.reduce(
        [context.convert(updates, wide)],
        [context.convert(operand, wide)],
        range(updates.rank),
        context.add,
    )
    return context.convert(total, operand.dtype)


def _from_start(context: StablehloContext, windows: Windows, indices: HloValue) -> HloValue:
    """Append index vectors whose numbers count from the start of their dimension."""
    if windows.bounds is not Bounds.FROM_END:
        return indices
    extents = [windows.operand[dim] if windows.wraps(dim) else 0 for dim in windows.indexed]
    negative = context.compare("Less", indices, 0)
    if windows.vector_dim == indices.rank:
        return context.select(negative, context.add(indices, extents[0]), indices)
    added = context.array(extents, indices.dtype)
    added = context.broadcast_in_dim(added, indices.shape, [windows.vector_dim])
    return context.select(negative, context.add(indices, added), indices)


def _numbers(context: StablehloContext, vector: HloValue) -> list[HloValue]:
    """Append the elements of a vector, of rank 0."""
    parts = [context.part(vector, 0, place, place + 1) for place in range(vector.shape[0])]
    return [context.reshape(part, ()) for part in parts]


# Places that are known beforehand


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
