"""Reading and scattering by index as PTIR says it (`OpDef.in_contract`): nothing counts from the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.ops.scatter_windows import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.expansion import ExpandContext


def gather_form(context: ExpandContext) -> bool:
    """Append `Take` at indices that have been counted from the front."""
    operand, indices = context.operands
    counted = _counted(context, indices, operand.type.extents[:1], indices.type.rank)
    return context.define("Take", operand, counted)


def scatter_form(context: ExpandContext) -> bool:
    """Append the same with indices that have been counted from the front; False where they are already."""
    if not context.attributes["from_end"]:
        return False
    operand, indices, updates = context.operands
    windows = Windows.of(context.attributes, [each.type.extents for each in context.operands])
    lengths = [windows.operand[dim] if windows.wraps(dim) else 0 for dim in windows.indexed]
    counted = _counted(context, indices, lengths, windows.vector_dim)
    attributes: Mapping[str, Any] = {**context.attributes, "from_end": False}
    return context.define("ScatterAdd", operand, counted, updates, **attributes)


def _counted(context: ExpandContext, indices: Value, lengths: Sequence[int], vector_dim: int) -> Value:
    """Return indices that count from the front.

    Those that are out of range stay so: a negative one of more than the length is still negative.

    Args:
        context: Takes the operations.
        indices: Those given.
        lengths: For each number of an index vector, the extent from whose end a negative one counts; 0 where
            none does.
        vector_dim: The dimension along which index vectors lie; beyond the last for vectors of one number.
    """
    builder, type_ = context.builder, indices.type
    if not any(lengths) or type_.element_count == 0:
        return indices
    if max(lengths) > limits(type_.dtype)[1]:
        indices = builder.emit("Cast", indices, dtype=DType.SI64)
        type_ = indices.type
    length = builder.constant(lengths[0] if len(set(lengths)) == 1 else list(lengths), type_.dtype)
    if length.type.rank:
        shape = [1] * type_.rank
        shape[vector_dim] = len(lengths)
        length = builder.emit("Reshape", length, new_shape=tuple(shape))
    length = _to(context, length, type_.extents)
    zero = _to(context, builder.constant(0, type_.dtype), type_.extents)
    from_end = builder.emit("Compare", indices, zero, op="Less")
    return builder.emit("Select", from_end, builder.emit("Add", indices, length), indices)


def missing_index_form(context: ExpandContext) -> None:
    """Append `Take` of one element on each axis, one of which it finds out of range when it runs."""
    value, builder = context.operands[0], context.builder
    *first, last = context.attributes["indices"]
    for index in first:
        value = builder.emit("Take", value, _position(context, index, value))
    builder.emit_all("Take", value, _position(context, last, value), defines=context.results)


def _position(context: ExpandContext, index: int, value: Value) -> Value:
    extent = value.type.extents[0]
    return context.builder.constant(index % extent if -extent <= index < extent else index, DType.SI64)


def strided_form(context: ExpandContext, positions: Sequence[range]) -> None:
    """Append `Slice` where positions are neighbours in order, and `Take` on each axis where they are not.

    Args:
        context: Of a Slice.
        positions: What the result takes from the operand on each axis.
    """
    (value,), builder = context.operands, context.builder
    strided = [axis for axis, taken in enumerate(positions) if taken.step != 1]
    whole = [
        range(extent) if axis in strided else taken
        for axis, (taken, extent) in enumerate(zip(positions, value.type.extents, strict=True))
    ]
    if whole != [range(extent) for extent in value.type.extents]:
        starts, ends = (tuple(each) for each in zip(*((r.start, r.stop) for r in whole), strict=True))
        value = builder.emit("Slice", value, starts=starts, ends=ends, steps=(1,) * len(whole))
    for axis in strided:
        value = _to_front(context, value, axis)
        value = builder.emit("Take", value, builder.constant(list(positions[axis]), DType.SI64))
        value = _from_front(context, value, axis)
    builder.emit_all("Reshape", value, new_shape=context.results[0].type.extents, defines=context.results)


def _to_front(context: ExpandContext, value: Value, axis: int) -> Value:
    order = (axis, *(other for other in range(value.type.rank) if other != axis))
    return value if axis == 0 else context.builder.emit("Transpose", value, permutation=order)


def _from_front(context: ExpandContext, value: Value, axis: int) -> Value:
    order = (*range(1, axis + 1), 0, *range(axis + 1, value.type.rank))
    return value if axis == 0 else context.builder.emit("Transpose", value, permutation=order)


def _to(context: ExpandContext, value: Value, shape: tuple[int, ...]) -> Value:
    if value.type.extents == shape:
        return value
    return context.builder.emit("BroadcastTo", value, result_shape=shape)
