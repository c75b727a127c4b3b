"""Gather and scatter: windows of a tensor at positions that are known when the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.bodies import KINDS_OF_TRUTHS, kind_of
from mind_mlir.languages.stablehlo.rules.movement import position
from mind_mlir.languages.stablehlo.rules.use import Rule
from mind_mlir.mlir.bindings import stablehlo
from mind_mlir.ops.stablehlo_indexing import SCATTERED
from mind_mlir.ops.xla_windows import clamped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use
    from mind_mlir.mlir.bindings import Block

_KINDS = {name: kind for kind, name in SCATTERED.items()}


def _gather(use: Use) -> Value:
    operand, indices = use.operands
    dims = stablehlo().GatherDimensionNumbers(use.attribute("dimension_numbers"))
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
        slice_sizes=use.integers("slice_sizes"),
    )


def _scatter(use: Use) -> Value:
    if len(use.operands) != 3:
        use.refuse("scattering to several tensors at once")
    operand, indices, updates = use.operands
    dims = stablehlo().ScatterDimensionNumbers(use.attribute("scatter_dimension_numbers"))
    kind = _combination(use.body(), operand.type.dtype)
    if kind is None:
        use.refuse("combining elements other than by sum, product, maximum, minimum or replacement")
    positions = position(use, indices)
    if use.imports.for_xla:
        positions = _whole(use, dims, positions)
    return use.emit(
        "ScatterWindows",
        operand,
        positions,
        updates,
        update_window_dims=tuple(dims.update_window_dims),
        inserted_window_dims=tuple(dims.inserted_window_dims),
        input_batching_dims=tuple(dims.input_batching_dims),
        scatter_indices_batching_dims=tuple(dims.scatter_indices_batching_dims),
        scatter_dims_to_operand_dims=tuple(dims.scattered_dims_to_operand_dims),
        index_vector_dim=dims.index_vector_dim,
        reduce=kind,
    )


def _whole(use: Use, dims: Any, indices: Value) -> Value:
    """Append ``indices`` with those of windows that are partly outside moved until nothing of them is inside.

    StableHLO leaves out of such a window only what is outside; XLA, and so jax, leaves out all of it.
    """
    operand, _, updates = use.operands
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


def _combination(block: Block, dtype: DType) -> str | None:
    """Return how a region combines an element with an update, where that is one of the ways there are."""
    operations = list(block.operations)
    if len(operations) == 1 and list(operations[0].operation.operands) == [block.arguments[1]]:
        return "Replace"
    return (KINDS_OF_TRUTHS if dtype is DType.I1 else _KINDS).get(kind_of(block) or "")


RULES: Mapping[str, Rule] = {
    "stablehlo.gather": Rule(_gather),
    "stablehlo.scatter": Rule(_scatter),
}
