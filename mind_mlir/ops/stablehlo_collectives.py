"""Collectives in StableHLO: the ranks of a mesh are its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.mesh import mesh_of
from mind_mlir.ir.sharding import sharding_of
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext

_JOINS = {"sum": "add", "mean": "add", "max": "maximum", "min": "minimum"}


def _groups(context: StablehloContext) -> list[tuple[int, ...]]:
    mesh, axes = mesh_of(context.attributes["mesh"]), context.attributes["axes"]
    return list(dict.fromkeys(mesh.group(rank, axes) for rank in range(mesh.size)))


def _channel(
    context: StablehloContext, groups: Sequence[Sequence[int]] | None = None, **more: Any
) -> dict[str, Any]:
    """Return the attributes of what partitions do together, rather than replicas."""
    groups = _groups(context) if groups is None else groups
    rows = ", ".join(f"[{', '.join(map(str, group))}]" for group in groups)
    return {
        "replica_groups": context.attribute(f"dense<[{rows}]> : tensor<{len(groups)}x{len(groups[0])}xi64>"),
        "channel_handle": context.attribute("#stablehlo.channel_handle<handle = 1, type = 1>"),
        **more,
    }


def _joined(context: StablehloContext, name: str, type_: TensorType, **attributes: Any) -> HloValue:
    kind = context.attributes["kind"]
    join = context.binary
    found = context.structured.joining(
        name, context.operands[0], type_, lambda x, y: join(_JOINS[kind], x, y), **attributes
    )
    return context.divide(found, len(_groups(context)[0])) if kind == "mean" else found


def all_reduce(context: StablehloContext) -> HloValue:
    """Append `stablehlo.all_reduce`."""
    unit = context.attribute("unit")
    attributes = _channel(context, use_global_device_ids=unit)
    return _joined(context, "all_reduce", context.result_type, **attributes)


def reduce_scatter(context: StablehloContext) -> HloValue:
    """Append `stablehlo.reduce_scatter`."""
    axis = context.integer(context.attributes["axis"])
    attributes = _channel(context, use_global_device_ids=context.attribute("unit"), scatter_dimension=axis)
    return _joined(context, "reduce_scatter", context.result_type, **attributes)


def all_gather(context: StablehloContext) -> HloValue:
    """Append `stablehlo.all_gather`."""
    axis = context.integer(context.attributes["axis"])
    attributes = _channel(context, use_global_device_ids=context.attribute("unit"), all_gather_dim=axis)
    return context.emit("all_gather", context.operands, context.result_type, **attributes)


def all_to_all(context: StablehloContext) -> HloValue:
    """Append `stablehlo.all_to_all`."""
    attributes = _channel(
        context,
        split_dimension=context.integer(context.attributes["split_axis"]),
        concat_dimension=context.integer(context.attributes["concat_axis"]),
        split_count=context.integer(len(_groups(context)[0])),
    )
    return context.emit("all_to_all", context.operands, context.result_type, **attributes)


def broadcast_from(context: StablehloContext) -> HloValue:
    """Append `stablehlo.collective_broadcast`, whose groups begin with the rank that has the operand."""
    root = context.attributes["root"]
    groups = [(group[root], *group[:root], *group[root + 1 :]) for group in _groups(context)]
    attributes = _channel(context, groups)
    return context.emit("collective_broadcast", context.operands, context.result_type, **attributes)


def shift(context: StablehloContext) -> HloValue:
    """Append `stablehlo.collective_permute`."""
    offset = context.attributes["offset"]
    pairs = [
        (rank, group[(place + offset) % len(group)])
        for group in _groups(context)
        for place, rank in enumerate(group)
    ]
    return context.emit(
        "collective_permute",
        context.operands,
        context.result_type,
        source_target_pairs=context.pairs(pairs),
        channel_handle=context.attribute("#stablehlo.channel_handle<handle = 1, type = 1>"),
    )


def axis_index(context: StablehloContext) -> HloValue:
    """Append the place of a rank in its group."""
    mesh, axes = mesh_of(context.attributes["mesh"]), context.attributes["axes"]
    return _of_rank(context, [mesh.position(rank, axes) for rank in range(mesh.size)])


def _of_rank(context: StablehloContext, numbers: Sequence[int]) -> HloValue:
    """Append what a table has for the rank, which `stablehlo.partition_id` tells."""
    table, type_ = context.array(numbers, DType.SI64), TensorType(DType.SI64, (1,))
    rank = context.convert(context.emit("partition_id", (), TensorType(DType.UI32)), DType.SI64)
    found = context.emit("dynamic_slice", (table, rank), type_, slice_sizes=context.integers([1]))
    return context.reshape(found, ())


def take_part(context: StablehloContext) -> HloValue:
    """Append the part of a rank, as `stablehlo.dynamic_slice`."""
    mesh, sharding = mesh_of(context.attributes["mesh"]), sharding_of(context.attributes["sharding"])
    (operand,), type_ = context.operands, context.result_type
    parts = [sharding.part(mesh, rank, operand.shape) for rank in range(mesh.size)]
    starts = [_of_rank(context, [part[axis].start for part in parts]) for axis in range(operand.rank)]
    sizes = context.integers(type_.extents)
    return context.emit("dynamic_slice", (operand, *starts), type_, slice_sizes=sizes) if starts else operand


def join_parts(context: StablehloContext) -> HloValue:
    """Append an `all_gather` for each dimension that is divided."""
    mesh, sharding = mesh_of(context.attributes["mesh"]), sharding_of(context.attributes["sharding"])
    (value,) = context.operands
    for axis in range(value.rank):
        axes = ",".join(sharding.of(axis))
        if not axes:
            continue
        extent = context.result_type.extents[axis]
        type_ = value.type.with_shape((*value.shape[:axis], extent, *value.shape[axis + 1 :]))
        groups = list(dict.fromkeys(mesh.group(rank, axes) for rank in range(mesh.size)))
        attributes = _channel(context, groups, all_gather_dim=context.integer(axis))
        value = context.emit(
            "all_gather", (value,), type_, use_global_device_ids=context.attribute("unit"), **attributes
        )
    return value
