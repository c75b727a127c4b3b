"""Rules of what reads and writes at positions that values give.

What our operations report when they run, a position out of bounds, StableHLO lets pass: its gathers and
slices move the position until it fits, and its scatters leave the update out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.extremes import identity_number
from mind_mlir.ops.stablehlo_conversion import converted
from mind_mlir.ops.window_numbers import SCATTER, WindowNumbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext

_COMBINERS = {"Add": "add", "Sum": "add", "Mul": "multiply", "Max": "maximum", "Min": "minimum"}


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


def gather(context: StablehloContext) -> HloValue:
    """Rule of `Gather`, whose indices may count from the end."""
    x, indices = context.operands
    return _rows(context, x, _from_start(context, indices, x.shape[0]))


def take(context: StablehloContext) -> HloValue:
    """Rule of `Take`."""
    return _rows(context, *context.operands)


def gather_elements(context: StablehloContext) -> HloValue:
    """Rule of `GatherElements`."""
    x, indices = context.operands
    return _elements(context, x, indices, context.attributes["axis"] % x.rank)


def gather_windows(context: StablehloContext) -> HloValue:
    """Rule of `GatherWindows`, which is StableHLO's."""
    x, indices = context.operands
    attributes = context.attributes
    if attributes["checked"]:
        sizes, indexed = attributes["slice_sizes"], attributes["start_index_map"]
        extents = [x.shape[dim] if sizes[dim] == 1 else 0 for dim in indexed]
        indices = _wrapped(context, indices, extents, attributes["index_vector_dim"])
    return context.structured.gather(
        x,
        indices,
        context.result_type,
        sizes=attributes["slice_sizes"],
        start_index_map=attributes["start_index_map"],
        index_vector_dim=attributes["index_vector_dim"],
        offset_dims=attributes["offset_dims"],
        collapsed=attributes["collapsed_slice_dims"],
        operand_batching=attributes["operand_batching_dims"],
        indices_batching=attributes["start_indices_batching_dims"],
    )


def scatter_windows(context: StablehloContext) -> HloValue:
    """Rule of `ScatterWindows`, which is StableHLO's."""
    operand, indices, updates = context.operands
    attributes = context.attributes
    if attributes["checked"]:
        windows = WindowNumbers.of(SCATTER, attributes, operand.shape, updates.shape)
        extents = [operand.shape[dim] if windows.wraps(dim) else 0 for dim in windows.indexed]
        indices = _wrapped(context, indices, extents, windows.vector_dim)
    return _scattered(
        context,
        operand,
        indices,
        updates,
        attributes["reduce"],
        attributes["update_window_dims"],
        attributes["inserted_window_dims"],
        attributes["scatter_dims_to_operand_dims"],
        attributes["index_vector_dim"],
        attributes["input_batching_dims"],
        attributes["scatter_indices_batching_dims"],
    )


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


def scatter_add(context: StablehloContext) -> HloValue:
    """Rule of `ScatterAdd`, whose dimension numbers are StableHLO's."""
    operand, indices, updates = context.operands
    attributes, rank = context.attributes, indices.rank
    if not operand.rank:
        return _all_added(context, operand, updates)
    windows = tuple(dim % max(updates.rank, 1) for dim in attributes["update_window_dims"])
    inserted, indexed = attributes["inserted_window_dims"], attributes["scatter_dims_to_operand_dims"]
    vector_dim = attributes["index_vector_dim"]
    vector_dim = vector_dim + rank if vector_dim < 0 else vector_dim
    if attributes["from_end"]:
        kept = [dim for dim in range(operand.rank) if dim not in inserted]
        sizes = dict.fromkeys(inserted, 1) | {
            dim: updates.shape[window] for dim, window in zip(kept, windows, strict=True)
        }
        extents = [operand.shape[dim] if sizes[dim] == 1 else 0 for dim in indexed]
        indices = _wrapped(context, indices, extents, vector_dim)
    return _scattered(context, operand, indices, updates, "Add", windows, inserted, indexed, vector_dim)


def scatter_reduce(context: StablehloContext) -> HloValue:
    """Rule of `ScatterReduce`."""
    operand, indices, updates = context.operands
    axis, kind = context.attributes["axis"], context.attributes["reduce"]
    if not updates.type.element_count:
        return operand
    if kind != "Replace":
        return _scattered_elements(context, operand, indices, updates, axis, kind)
    # StableHLO does not say which of several updates of one element comes last: the greatest number tells.
    numbers = context.iota(indices.type, axis)
    nobody = context.constant(-1, operand.type.with_dtype(indices.dtype))
    last = _scattered_elements(context, nobody, indices, numbers, axis, "Max")
    found = _elements(context, updates, last, axis)
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
        windows = range(1, values.rank)
        total = _scattered(context, start, ids, terms, kind, windows, (0,), (0,), ids.rank)
    return converted(context, total, result.dtype)


def _rows(context: StablehloContext, x: HloValue, indices: HloValue) -> HloValue:
    result = context.result_type
    if not x.type.element_count or not result.element_count:
        return context.constant(0, result)
    return context.structured.gather(
        x,
        indices,
        result,
        sizes=(1, *x.shape[1:]),
        start_index_map=[0],
        index_vector_dim=indices.rank,
        offset_dims=range(indices.rank, result.rank),
        collapsed=[0],
    )


def _elements(context: StablehloContext, x: HloValue, indices: HloValue, axis: int) -> HloValue:
    """Append the elements of ``x`` at positions on an axis, in the shape of these."""
    type_ = x.type.with_shape(indices.type.shape)
    if not x.type.element_count or not type_.element_count:
        return context.constant(0, type_)
    others = [dim for dim in range(x.rank) if dim != axis]
    return context.structured.gather(
        x,
        indices,
        type_,
        sizes=[1] * x.rank,
        start_index_map=[axis],
        index_vector_dim=x.rank,
        collapsed=[axis],
        operand_batching=others,
        indices_batching=others,
    )


def _scattered_elements(
    context: StablehloContext, operand: HloValue, indices: HloValue, updates: HloValue, axis: int, kind: str
) -> HloValue:
    others = [dim for dim in range(operand.rank) if dim != axis]
    return _scattered(
        context, operand, indices, updates, kind, (), (axis,), (axis,), operand.rank, batching=others
    )


def _scattered(
    context: StablehloContext,
    operand: HloValue,
    indices: HloValue,
    updates: HloValue,
    kind: str,
    windows: Sequence[int],
    inserted: Sequence[int],
    indexed: Sequence[int],
    vector_dim: int,
    batching: Sequence[int] = (),
    indices_batching: Sequence[int] | None = None,
) -> HloValue:
    """Append a scatter; floats narrower than f32 are added in f32, and rounded once."""
    wide = default_accumulator(operand.dtype) if kind in ("Add", "Sum", "Mul") else operand.dtype
    found = context.structured.scatter(
        context.convert(operand, wide),
        indices,
        context.convert(updates, wide),
        lambda element, update: (
            update if kind == "Replace" else context.binary(_COMBINERS[kind], element, update)
        ),
        update_window_dims=windows,
        inserted=inserted,
        scatter_dims=indexed,
        index_vector_dim=vector_dim,
        operand_batching=batching,
        indices_batching=batching if indices_batching is None else indices_batching,
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


def _from_start(context: StablehloContext, indices: HloValue, extent: int) -> HloValue:
    """Append indices of which negative ones count from the end."""
    return context.select(context.compare("Less", indices, 0), context.add(indices, extent), indices)


def _wrapped(
    context: StablehloContext, indices: HloValue, extents: Sequence[int], vector_dim: int
) -> HloValue:
    """Append index vectors in which negative numbers count from the end of their dimension."""
    if vector_dim == indices.rank:
        return _from_start(context, indices, extents[0])
    added = context.array(extents, indices.dtype)
    added = context.broadcast_in_dim(added, indices.shape, [vector_dim])
    return context.select(context.compare("Less", indices, 0), context.add(indices, added), indices)


def _numbers(context: StablehloContext, vector: HloValue) -> list[HloValue]:
    """Append the elements of a vector, of rank 0."""
    parts = [context.part(vector, 0, place, place + 1) for place in range(vector.shape[0])]
    return [context.reshape(part, ()) for part in parts]
