"""Gather and scatter: windows of a tensor at positions that are known when the program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.stablehlo.rules.bodies import KINDS_OF_TRUTHS, combined, kind_of_result
from mind_mlir.languages.stablehlo.rules.movement import numbers, position
from mind_mlir.languages.stablehlo.rules.strides import StrideNumbering, part_of
from mind_mlir.languages.stablehlo.rules.use import Rule, Use
from mind_mlir.mlir.bindings import Block, stablehlo
from mind_mlir.ops.stablehlo_indexing import SCATTERED
from mind_mlir.ops.xla_windows import clamped

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value

_KINDS = {name: kind for kind, name in SCATTERED.items()}


def _gather(use: Use) -> Value:
    operand, indices = use.operands[:2]
    dims = stablehlo().GatherDimensionNumbers(use.attribute("dimension_numbers"))
    found = _part_read(use, StrideNumbering.of(dims, scatters=False))
    if found is not None:
        return found
    return use.emit(
        "GatherWindows",
        operand,
        position(use, indices),
        offset_dims=tuple(dims.offset_dims),
        collapsed_slice_dims=tuple(dims.collapsed_slice_dims),
        operand_batching_dims=tuple(dims.operand_batching_dims),
        start_indices_batching_dims=tuple(dims.start_indices_batching_dims),
        start_index_map=tuple(dims.start_index_map),
        index_vector_dim=dims.index_vector_dim,
        slice_sizes=_slice_sizes(use),
    )


def _slice_sizes(use: Use) -> tuple[int, ...]:
    """Return the extents of a window: an attribute, or what the last operand is."""
    return use.integers("slice_sizes") if len(use.operands) == 2 else numbers(use, use.operands[2])


def _part_read(use: Use, numbering: StrideNumbering) -> Value | None:
    """Append the part of the operand that a gather reads, where its windows are one."""
    operand, indices = use.operands[:2]
    extents, window = operand.type.extents, _slice_sizes(use)
    shape, known = use.result_type().extents, use.imports.folded(indices)
    if known is not None:
        starts = numbering.starts(known, len(extents))
        most = np.subtract(extents, window).reshape((-1, *[1] * (starts.ndim - 1)))
        starts = np.clip(starts, 0, most)
        part = part_of(numbering, starts, window, shape)
        if part is None:
            return None
        read, order = use.sliced(operand, part.starts, part.ends, part.steps), part.order
    elif numbering.is_single(shape):
        read = use.emit("DynamicSlice", operand, _start(use, numbering, indices), sizes=window)
        order = numbering.single(len(shape))
    else:
        return None
    turned = use.reshaped(read, [shape[axis] for axis in order])
    return use.transposed(turned, [order.index(axis) for axis in range(len(order))])


def _start(use: Use, numbering: StrideNumbering, indices: Value) -> Value:
    """Append where the only window begins, a number for each dimension of the operand."""
    vector = use.reshaped(position(use, indices), (indices.type.element_count,))
    rank = use.operands[0].type.rank
    if numbering.indexed == tuple(range(rank)):
        return vector
    zero = use.full(0, vector.type.with_shape((1,)))
    parts = [
        use.part(vector, 0, place, place + 1) if place is not None else zero
        for place in numbering.places(rank)
    ]
    return parts[0] if len(parts) == 1 else use.emit("Concat", *parts, axis=0)


def _scatter(use: Use) -> Sequence[Value]:
    count = len(use.operands) // 2
    operands, indices, updates = use.operands[:count], use.operands[count], use.operands[count + 1 :]
    dims = stablehlo().ScatterDimensionNumbers(use.attribute("scatter_dimension_numbers"))
    found = _part_written(use, StrideNumbering.of(dims, scatters=True))
    if found is not None:
        return found
    kinds = [_combination(use.body(), place, operands[place].type.dtype) for place in range(count)]
    positions = position(use, indices)
    if use.imports.for_xla:
        positions = _whole(use, dims, positions)
    results = []
    for operand, update, kind in zip(operands, updates, kinds, strict=True):
        if kind is None:
            use.refuse("combining elements other than by sum, product, maximum, minimum or replacement")
        results.append(
            use.emit(
                "ScatterWindows",
                operand,
                positions,
                update,
                update_window_dims=tuple(dims.update_window_dims),
                inserted_window_dims=tuple(dims.inserted_window_dims),
                input_batching_dims=tuple(dims.input_batching_dims),
                scatter_indices_batching_dims=tuple(dims.scatter_indices_batching_dims),
                scatter_dims_to_operand_dims=tuple(dims.scattered_dims_to_operand_dims),
                index_vector_dim=dims.index_vector_dim,
                reduce=kind,
            )
        )
    return results


def _part_written(use: Use, numbering: StrideNumbering) -> Sequence[Value] | None:
    """Append the operands of a scatter with the part replaced that its windows are, where they are one."""
    count = len(use.operands) // 2
    operands, indices, updates = use.operands[:count], use.operands[count], use.operands[count + 1 :]
    extents, shape = operands[0].type.extents, updates[0].type.extents
    window, known = numbering.window(len(extents), shape), use.imports.folded(indices)
    if known is None:
        return _written_somewhere(use, numbering, window) if numbering.is_single(shape) else None
    part = part_of(numbering, numbering.starts(known, len(extents)), window, shape)
    if part is None:
        return None
    if not part.lies_within(extents):
        return operands if use.imports.for_xla and numbering.is_single(shape) else None
    old = [use.sliced(each, part.starts, part.ends, part.steps) for each in operands]
    new = combined(use, use.body(), old, _laid(use, updates, part.order, part.sizes))
    if part.is_dense:
        start = use.builder.constant(np.array(part.starts, np.int64), DType.SI64)
        return [_replaced(use, each, one, start) for each, one in zip(operands, new, strict=True)]
    behind = [extent - end for extent, end in zip(extents, part.ends, strict=True)]
    between = [step - 1 for step in part.steps]
    ones = use.full(True, TensorType(DType.I1, part.sizes))
    mask = use.padded(ones, part.starts, behind, between, False)
    spread = [use.padded(each, part.starts, behind, between, 0) for each in new]
    return [use.emit("Select", mask, one, each) for each, one in zip(operands, spread, strict=True)]


def _written_somewhere(use: Use, numbering: StrideNumbering, window: Sequence[int]) -> Sequence[Value] | None:
    """Append the operands with one window replaced, unless that is not wholly within them."""
    count = len(use.operands) // 2
    operands, indices, updates = use.operands[:count], use.operands[count], use.operands[count + 1 :]
    extents = operands[0].type.extents
    if 0 in window:
        return operands
    # Of a window that is partly within, StableHLO keeps what is; XLA leaves out all of it.
    if not use.imports.for_xla and any(window[axis] > 1 for axis in numbering.indexed):
        return None
    start = _start(use, numbering, indices)
    order = numbering.single(updates[0].type.rank)
    old = [use.emit("DynamicSlice", each, start, sizes=window) for each in operands]
    new = combined(use, use.body(), old, _laid(use, updates, order, window))
    if numbering.indexed:
        limits = np.array([extents[axis] - window[axis] for axis in range(len(extents))])
        most = np.minimum(limits, np.iinfo(start.type.dtype.numpy).max)
        last = use.builder.constant(most.astype(start.type.dtype.numpy), start.type.dtype)
        low = use.emit("Compare", start, use.like(0, start), op="GreaterEqual")
        high = use.emit("Compare", start, last, op="LessEqual")
        fits = use.reduced(use.emit("And", low, high), "Min", (0,))
        new = [
            use.emit("Select", use.stretched(fits, window), one, each)
            for each, one in zip(old, new, strict=True)
        ]
    return [_replaced(use, each, one, start) for each, one in zip(operands, new, strict=True)]


def _laid(use: Use, updates: Sequence[Value], order: Sequence[int], sizes: Sequence[int]) -> list[Value]:
    """Append updates in the layout of the operand's part."""
    return [use.reshaped(use.transposed(each, order), sizes) for each in updates]


def _replaced(use: Use, operand: Value, part: Value, start: Value) -> Value:
    if part.shape == operand.shape:
        return part
    return use.emit("DynamicUpdateSlice", operand, part, start)


def _whole(use: Use, dims: Any, indices: Value) -> Value:
    """Append ``indices`` with those of windows that are partly outside moved until nothing of them is inside.

    StableHLO leaves out of such a window only what is outside; XLA, and so jax, leaves out all of it.
    """
    count = len(use.operands) // 2
    operand, updates = use.operands[0], use.operands[count + 1]
    thin = {*dims.inserted_window_dims, *dims.input_batching_dims}
    thick = [axis for axis in range(operand.type.rank) if axis not in thin]
    sizes = {
        axis: updates.type.extents[window]
        for axis, window in zip(thick, dims.update_window_dims, strict=True)
    }
    indexed = list(dims.scattered_dims_to_operand_dims)
    windows = [sizes.get(axis, 1) for axis in indexed]
    if max(windows, default=1) == 1:
        return indices
    limits = np.iinfo(indices.type.dtype.numpy)
    # A window of one element is outside as a whole.
    ranges = [
        (0, min(operand.type.extents[axis] - size, limits.max)) if size > 1 else (limits.min, limits.max)
        for axis, size in zip(indexed, windows, strict=True)
    ]
    least, most = zip(*ranges, strict=True)
    moved = clamped(use.emit, use.builder, indices, least, most, dims.index_vector_dim)
    fits = use.emit("Compare", indices, moved, op="Equal")
    return use.emit("Select", fits, indices, use.like(-max(windows), indices))


def _combination(block: Block, place: int, dtype: DType) -> str | None:
    """Return how a region combines an element with an update, where that is one of the ways there are.

    Args:
        block: The region.
        place: Of which operand the elements are.
        dtype: Their dtype.
    """
    count = len(block.arguments) // 2
    pair = [block.arguments[place], block.arguments[count + place]]
    result = list(block.operations)[-1].operation.operands[place]
    if result == pair[1]:
        return "Replace"
    return (KINDS_OF_TRUTHS if dtype is DType.I1 else _KINDS).get(kind_of_result(result, pair) or "")


RULES: Mapping[str, Rule] = {
    "stablehlo.dynamic_gather": Rule(_gather),
    "stablehlo.gather": Rule(_gather),
    "stablehlo.scatter": Rule(_scatter),
}
