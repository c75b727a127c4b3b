"""The derivative of ScatterAdd: what is added to a place has the gradient of that place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.ops.scatter_windows import Windows, row_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext


def scatter_vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule: the cotangent itself, and its elements at the places of the updates."""
    wants_operand, _, wants_updates = context.needs
    return (
        context.cotangent if wants_operand else None,
        None,
        _updates(context) if wants_updates else None,
    )


def _updates(context: VjpContext) -> Value:
    operand, indices, updates = context.operands
    attributes, form = context.attributes, row_form(operand.type.rank, indices.type.rank)
    if all(attributes[name] == value for name, value in form.items() if name != "from_end"):
        return context.emit("Gather" if attributes["from_end"] else "Take", context.cotangent, indices)
    count = operand.type.element_count
    if count == 0 or updates.type.element_count == 0:
        return context.zeros(updates.type)
    flat = context.emit("Reshape", context.cotangent, new_shape=(count,))
    windows = Windows.of(attributes, [value.type.extents for value in context.operands])
    return context.emit("Take", flat, _places(context, windows, indices))


def _places(context: VjpContext, windows: Windows, indices: Value) -> Value:
    """Append the place in the flat operand that each update is added to, i64 of the updates' shape."""
    places = _spread(context, context.builder.constant(0, DType.SI64), windows)
    for source, stride in zip(windows.sources, windows.strides, strict=True):
        if source is not None:
            counted = context.emit("Iota", shape=windows.updates, dtype=DType.SI64, axis=source)
            places = _moved(context, places, counted, stride, windows)
    for number, dim in enumerate(windows.indexed):
        begins = _numbers(context, windows, indices, number)
        if windows.wraps(dim):
            zero, extent = (
                _spread(context, context.builder.constant(n, DType.SI64), windows)
                for n in (0, windows.operand[dim])
            )
            negative = context.emit("Compare", begins, zero, op="Less")
            begins = context.emit("Select", negative, context.emit("Add", begins, extent), begins)
        places = _moved(context, places, begins, windows.strides[dim], windows)
    return places


def _moved(context: VjpContext, places: Value, steps: Value, stride: int, windows: Windows) -> Value:
    factor = _spread(context, context.builder.constant(stride, DType.SI64), windows)
    return context.emit("Add", places, context.emit("Mul", steps, factor))


def _numbers(context: VjpContext, windows: Windows, indices: Value, number: int) -> Value:
    """Append number ``number`` of each update's index vector."""
    shape, rank, dim = indices.type.extents, indices.type.rank, windows.vector_dim
    if dim < rank:
        starts = tuple(number if axis == dim else 0 for axis in range(rank))
        ends = tuple(number + 1 if axis == dim else extent for axis, extent in enumerate(shape))
        indices = context.emit("Slice", indices, starts=starts, ends=ends, steps=(1,) * rank)
    if indices.type.dtype is not DType.SI64:
        indices = context.emit("Cast", indices, dtype=DType.SI64)
    extents = tuple(n if axis in windows.scattered else 1 for axis, n in enumerate(windows.updates))
    return _spread(context, context.emit("Reshape", indices, new_shape=extents), windows)


def _spread(context: VjpContext, value: Value, windows: Windows) -> Value:
    """Append ``value`` in the shape of the updates, which it broadcasts to."""
    if value.type.extents == windows.updates:
        return value
    return context.emit("BroadcastTo", value, result_shape=windows.updates)
