"""Rules for open axes of what reads and writes by index: an index in the padding is zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.ops.open_axes import Axis, Factor, Linear, OpenContext, OpenValue, axis_of, is_open
from mind_mlir.ops.open_rules import places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value


def taking(context: OpenContext) -> list[OpenValue]:
    """Take rows of a tensor, as Gather and Take do."""
    rows, indices = context.operands
    context.expect_same()
    if is_open(rows.axes[0]):
        context.refuse("it takes rows of an open dimension by index")
    found = context.repeat(rows.value, context.filled(indices, 0))
    return [OpenValue(each, (*indices.axes, *rows.axes[1:])) for each in found]


def taking_elements(context: OpenContext) -> list[OpenValue]:
    """Take an element for each index, as GatherElements does."""
    source, indices = context.operands
    context.expect_same()
    along = context.attributes["axis"] % len(source.axes)
    if is_open(source.axes[along]):
        context.refuse("it takes elements of an open dimension by index")
    found = context.repeat(source.value, context.filled(indices, 0))
    return [OpenValue(each, indices.axes) for each in found]


def taking_windows(context: OpenContext) -> list[OpenValue]:
    """Take windows of a tensor of fixed extents."""
    source, indices = context.operands
    context.expect_same()
    if source.is_open:
        context.refuse("it takes windows of a tensor with an open dimension")
    vector = context.attributes["index_vector_dim"]
    queue = [axis for place, axis in enumerate(indices.axes) if place != vector]
    offsets, extents = context.attributes["offset_dims"], context.operation.tensor_type.extents
    axes = [
        axis_of([Factor(extent)]) if place in offsets else queue.pop(0)
        for place, extent in enumerate(extents)
    ]
    found = context.repeat(source.value, context.filled(indices, 0))
    return [OpenValue(each, tuple(axes)) for each in found]


def adding_windows(context: OpenContext) -> list[OpenValue]:
    """Add updates to a tensor of fixed extents: zero, where there is padding."""
    target, indices, updates = context.operands
    context.expect_same()
    if target.is_open:
        context.refuse("it adds to a tensor with an open dimension by index")
    found = context.repeat(target.value, context.filled(indices, 0), context.filled(updates, 0))
    return [OpenValue(each, target.axes) for each in found]


def picking(context: OpenContext) -> list[OpenValue]:
    """Pick an element, or a part of leading indices, some of which may count from an open end."""
    (operand,) = context.operands
    indices = context.follows("indices")
    context.expect_same("indices")
    left = operand.axes[len(indices) :]
    if all(index.symbol is None for index in indices):
        return [OpenValue(each, left) for each in context.repeat()]
    sizes = (*([1] * len(indices)), *operand.value.shape[len(indices) :])
    start = places(context, [*indices, *([Linear(0)] * len(left))])
    value = context.emit("DynamicSlice", operand.value, start, sizes=sizes)
    return [OpenValue(context.reshaped(value, sizes[len(indices) :]), left)]


def slicing_at(context: OpenContext) -> list[OpenValue]:
    """Take a slice that begins where an operand says."""
    operand, start = context.operands
    context.expect_same("sizes")
    axes, limits = _window(context, operand, context.attributes["sizes"])
    found = context.repeat(operand.value, _limited(context, start.value, limits))
    return [OpenValue(each, axes) for each in found]


def updating_at(context: OpenContext) -> list[OpenValue]:
    """Write an update where an operand says."""
    operand, update, start = context.operands
    context.expect_same()
    axes, limits = _window(context, operand, update.value.shape)
    if axes != update.axes:
        context.refuse("it writes a part of an open dimension whose length is open")
    found = context.repeat(operand.value, update.value, _limited(context, start.value, limits))
    return [OpenValue(each, operand.axes) for each in found]


def _window(
    context: OpenContext, operand: OpenValue, extents: Sequence[int]
) -> tuple[tuple[Axis, ...], list[Linear | None]]:
    """Return the axes of a window of ``operand``, and the greatest start on each axis that needs a limit.

    A window of an open axis is all of it, or of a fixed extent.
    """
    axes: list[Axis] = []
    limits: list[Linear | None] = []
    for axis, extent, whole in zip(operand.axes, extents, operand.value.shape, strict=True):
        limit = None
        if is_open(axis) and extent == whole:
            axes.append(axis)
        elif is_open(axis) and len(axis) > 1:
            context.refuse("its window is a part of an open dimension that has been reshaped")
        else:
            axes.append(axis_of([Factor(extent)]))
            limit = Linear(axis[0].offset - extent, axis[0].symbol) if is_open(axis) else None
        limits.append(limit)
    return tuple(axes), limits


def _limited(context: OpenContext, start: Value, limits: Sequence[Linear | None]) -> Value:
    """Append ``start`` with the limits that a start has on open axes, as on others by itself."""
    if all(limit is None for limit in limits):
        return start
    dtype = start.type.dtype
    beyond = Linear(2**31 - 1)  # further than any start reaches
    most = places(context, [beyond if limit is None else limit for limit in limits])
    return context.emit(
        "Minimum", start, most if dtype is DType.SI64 else context.emit("Cast", most, dtype=dtype)
    )
