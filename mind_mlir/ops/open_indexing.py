"""Rules for open axes of what reads and writes by index: an index in the padding is zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ops.open_axes import Axis, Factor, Linear, OpenContext, OpenValue, axis_of, is_open
from mind_mlir.ops.open_rules import joint_axes, places

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType
    from mind_mlir.ir.value import Value


#: Further than any index reaches.
_BEYOND = 2**31 - 1


def taking(context: OpenContext) -> list[OpenValue]:
    """Take rows of a tensor, as Gather and Take do."""
    rows, indices = context.operands
    context.expect_same()
    found = context.repeat(rows.value, _within(context, rows.axes[0], indices))
    return [OpenValue(each, (*indices.axes, *rows.axes[1:])) for each in found]


def taking_elements(context: OpenContext) -> list[OpenValue]:
    """Take an element for each index, as GatherElements does."""
    source, indices = context.operands
    context.expect_same()
    along = context.attributes["axis"] % len(source.axes)
    joint_axes(context, [_but(source, along), _but(indices, along)], len(source.axes))
    found = context.repeat(source.value, _within(context, source.axes[along], indices))
    return [OpenValue(each, indices.axes) for each in found]


def _but(operand: OpenValue, axis: int) -> OpenValue:
    return OpenValue(operand.value, (*operand.axes[:axis], (), *operand.axes[axis + 1 :]))


def _within(context: OpenContext, axis: Axis, indices: OpenValue) -> Value:
    """Append indices of an axis; those that are of its padding go beyond that, for they are errors."""
    value = context.filled(indices, 0)
    if not is_open(axis):
        return value
    dtype = value.type.dtype
    one = context.constant(1, value.type)
    most = context.emit("Sub", _cast(context, context.number_of([axis]), dtype), one)
    if len(axis) == 1:
        return _checked(context, value, most)

    def spread(number: Value) -> Value:
        return context.spread(_cast(context, number, dtype), value.shape)

    # An index counts the elements of a call, and those of the program lie further apart.
    rest, step, moved = value, 1, spread(context.constant(0, value.type))
    for factor in reversed(axis):
        extent = spread(context.number_of([(factor,)]))
        digit = context.emit("Remainder", rest, extent)
        rest = context.emit("Div", rest, extent)
        moved = context.emit(
            "Add", moved, context.emit("Mul", digit, spread(context.constant(step, value.type)))
        )
        step *= factor.extent
    return context.emit(
        "Select", _is_place(context, value, most), moved, spread(context.constant(_BEYOND, value.type))
    )


def _checked(context: OpenContext, value: Value, most: Value) -> Value:
    """Append places from 0 to ``most``, with others beyond all that there is."""
    beyond = context.spread(context.constant(_BEYOND, value.type), value.shape)
    return context.emit("Select", _is_place(context, value, most), value, beyond)


def _is_place(context: OpenContext, value: Value, most: Value) -> Value:
    most = context.spread(_cast(context, most, value.type.dtype), value.shape)
    zero = context.spread(context.constant(0, value.type), value.shape)
    return context.emit(
        "And",
        context.emit("Compare", value, zero, op="GreaterEqual"),
        context.emit("Compare", value, most, op="LessEqual"),
    )


def _cast(context: OpenContext, value: Value, dtype: DType) -> Value:
    return value if value.type.dtype is dtype else context.emit("Cast", value, dtype=dtype)


def taking_windows(context: OpenContext) -> list[OpenValue]:
    """Take windows, which have all of an open axis, or a fixed extent of it."""
    source, indices = context.operands
    context.expect_same("slice_sizes")
    vector, offsets = context.attributes["index_vector_dim"], context.attributes["offset_dims"]
    sizes, whole = context.attributes["slice_sizes"], source.value.shape
    thin = {*context.attributes["collapsed_slice_dims"], *context.attributes["operand_batching_dims"]}
    window = _window(context, source, sizes)[0]
    batching = context.attributes["operand_batching_dims"]
    if any(is_open(source.axes[place]) for place in batching):
        context.refuse("its batch is an open dimension")
    left = [axis for place, axis in enumerate(indices.axes) if place != vector]
    inner = [axis for place, axis in enumerate(window) if place not in thin]
    rank = context.operation.tensor_type.rank
    axes = tuple([inner.pop(0) if place in offsets else left.pop(0) for place in range(rank)])
    value, mapped = context.filled(indices, 0), context.attributes["start_index_map"]
    if any(is_open(source.axes[place]) and sizes[place] != whole[place] for place in mapped):
        counts = [
            Linear(whole[place])
            if not is_open(source.axes[place]) or sizes[place] == whole[place]
            else Linear(source.axes[place][0].offset, source.axes[place][0].symbol)
            for place in mapped
        ]
        value = _limited_vectors(context, value, counts, [sizes[place] for place in mapped])
    return [OpenValue(each, axes) for each in context.repeat(source.value, value)]


def _limited_vectors(
    context: OpenContext, value: Value, counts: Sequence[Linear], sizes: Sequence[int]
) -> Value:
    """Append index vectors that mean in extents ``counts`` what they mean to the operation in its own."""
    shape, dtype = value.shape, value.type.dtype
    vector = context.attributes["index_vector_dim"]
    alone = [1] * len(shape)
    if vector < len(shape):
        alone[vector] = shape[vector]

    def spread(numbers: Sequence[Linear]) -> Value:
        made = context.reshaped(places(context, numbers), tuple(alone))
        return context.spread(_cast(context, made, dtype), shape)

    most = spread(
        [Linear(each.constant - size, each.symbol) for each, size in zip(counts, sizes, strict=True)]
    )
    if not context.attributes["checked"]:
        return context.emit("Minimum", value, most)
    thin = [each if size == 1 else Linear(0) for each, size in zip(counts, sizes, strict=True)]
    zero = context.spread(context.constant(0, value.type), shape)
    is_behind = context.emit("Compare", value, zero, op="Less")
    value = context.emit("Select", is_behind, context.emit("Add", value, spread(thin)), value)
    return _checked(context, value, most)


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
    most = places(context, [Linear(_BEYOND) if limit is None else limit for limit in limits])
    return context.emit("Minimum", start, _cast(context, most, start.type.dtype))
