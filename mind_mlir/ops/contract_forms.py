"""Operations of Core IR that PTIR has none for, said with those that it has (`OpDef.in_contract`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.ops.axes import sliced_positions
from mind_mlir.ops.sliding import spatial_padding
from mind_mlir.ops.windows import scatter_add_windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import ExpandContext


def sum_form(context: ExpandContext) -> bool:
    """Append `Reduce`, which sums in the operand's dtype."""
    _reduced(context, defines=context.results)
    return True


def mean_form(context: ExpandContext) -> bool:
    """Append `Reduce` and a division by how many elements there are for each of the result's."""
    (operand,), (result,) = context.operands, context.results
    total = _reduced(context)
    axes = _axes(context)
    count = math.prod(operand.type.extents[axis] for axis in axes)
    _define(context, "Div", total, _full(context, count, result))
    return True


def reshape_form(context: ExpandContext) -> bool:
    """Append `Reshape` to the shape of the result."""
    _define(context, "Reshape", context.operands[0], new_shape=context.results[0].type.extents)
    return True


def relu_form(context: ExpandContext) -> bool:
    """Append the elements that are greater than 0, and 0 for the others: for NaN, too."""
    (operand,), (result,) = context.operands, context.results
    zero = _full(context, 0, result)
    positive = context.builder.emit("Compare", operand, zero, op="Greater")
    _define(context, "Select", positive, operand, zero)
    return True


def not_form(context: ExpandContext) -> bool:
    """Append whether the operand is false; False for integers, whose bits PTIR does not change."""
    if not _are_truths(context):
        return False
    _define(context, "Compare", context.operands[0], _full(context, False, context.results[0]), op="Equal")
    return True


def and_form(context: ExpandContext) -> bool:
    """Append the right operand where the left one is true, else false; False for integers."""
    if not _are_truths(context):
        return False
    left, right = _stretched(context)
    _define(context, "Select", left, right, _full(context, False, context.results[0]))
    return True


def or_form(context: ExpandContext) -> bool:
    """Append true where the left operand is, else the right one; False for integers."""
    if not _are_truths(context):
        return False
    left, right = _stretched(context)
    _define(context, "Select", left, _full(context, True, context.results[0]), right)
    return True


def xor_form(context: ExpandContext) -> bool:
    """Append whether the operands differ; False for integers."""
    if not _are_truths(context):
        return False
    _define(context, "Compare", *_stretched(context), op="NotEqual")
    return True


def _are_truths(context: ExpandContext) -> bool:
    return context.results[0].type.dtype is DType.I1


def index_form(context: ExpandContext) -> bool:
    """Append `Slice` and `Reshape`; where an index is out of range what finds that when it runs."""
    (operand,), (result,) = context.operands, context.results
    extents, indices = operand.type.extents, tuple(context.attributes["indices"])
    if not all(-extent <= index < extent for index, extent in zip(indices, extents, strict=False)):
        missing_index_form(context)  # a Slice that is out of range breaks a rule of programs
        return True
    left = len(indices)
    starts = [index % extent for index, extent in zip(indices, extents, strict=False)]
    starts += [0] * (len(extents) - left)
    ends = [start + 1 for start in starts[:left]] + list(extents[left:])
    window = context.builder.emit(
        "Slice", operand, starts=tuple(starts), ends=tuple(ends), steps=(1,) * len(extents)
    )
    _define(context, "Reshape", window, new_shape=result.type.extents)
    return True


def slice_form(context: ExpandContext) -> bool:
    """Append what takes elements that are no neighbours; False where all are."""
    positions = sliced_positions(context.attributes, context.operands[0].type.extents)
    if all(taken.step == 1 for taken in positions):
        return False
    strided_form(context, positions)
    return True


def conv2d_form(context: ExpandContext) -> bool:
    """Append the windows as rows, and their product with the filter as a matrix."""
    (image, filter_), builder = context.operands, context.builder
    kernel, strides = filter_.type.extents[:2], context.attributes["strides"]
    pairs = spatial_padding(context.attributes["padding"], image.type.extents[1:3], kernel, strides)
    low, high = zip(*pairs, strict=True)
    rows = builder.emit(
        "ExtractPatches",
        image,
        window=kernel,
        strides=strides,
        dilation=(1, 1),
        padding_low=low,
        padding_high=high,
        pad_value=TensorLiteral.of(0, image.type.dtype),
    )
    depth, channels = math.prod(filter_.type.extents[:3]), filter_.type.extents[3]
    matrix = builder.emit("Reshape", filter_, new_shape=(depth, channels))
    _contract(context, rows, matrix, (3,), (0,), 0)
    return True


def dot_form(context: ExpandContext) -> bool:
    """Append `DotGeneral` over the last dimension of the left operand and the first of the right one."""
    left, right = context.operands
    _contract(context, left, right, (left.type.rank - 1,), (0,), 0)
    return True


def matmul_form(context: ExpandContext) -> bool:
    """Append `DotGeneral` with the leading dimensions as batch dimensions, which have been stretched."""
    left, right = context.operands
    batch = context.results[0].type.extents[:-2]
    left, right = (_to(context, each, (*batch, *each.type.extents[-2:])) for each in (left, right))
    rank = len(batch) + 2
    _contract(context, left, right, (rank - 1,), (rank - 2,), len(batch))
    return True


def _contract(
    context: ExpandContext,
    left: Value,
    right: Value,
    over_left: tuple[int, ...],
    over_right: tuple[int, ...],
    batch: int,
) -> None:
    dtype, paired = left.type.dtype, tuple(range(batch))
    _define(
        context,
        "DotGeneral",
        left,
        right,
        batch_lhs=paired,
        batch_rhs=paired,
        contract_lhs=over_left,
        contract_rhs=over_right,
        accum_dtype=dtype,
        out_dtype=dtype,
    )


def _reduced(context: ExpandContext, defines: tuple[Value, ...] = ()) -> Value:
    (operand,), attributes = context.operands, context.attributes
    dtype = operand.type.dtype
    return context.builder.emit_all(
        "Reduce",
        operand,
        kind="Sum",
        axes=_axes(context),
        # Without axes, all are reduced, and the result is a scalar.
        keepdims=bool(attributes["keepdims"] and attributes["axes"]),
        accum_dtype=dtype,
        out_dtype=dtype,
        defines=defines,
    )[0]


def _axes(context: ExpandContext) -> tuple[int, ...]:
    rank = context.operands[0].type.rank
    axes = context.attributes["axes"] or range(rank)
    return tuple(sorted(axis % rank for axis in axes))


def _define(context: ExpandContext, opcode: str, *operands: Value, **attributes: Any) -> None:
    """Append the operation whose results are those of the one that is expanded."""
    context.builder.emit_all(opcode, *operands, defines=context.results, **attributes)


def _full(context: ExpandContext, number: float, like: Value) -> Value:
    return _to(context, context.builder.constant(number, like.type.dtype), like.type.extents)


def _to(context: ExpandContext, value: Value, shape: tuple[int, ...]) -> Value:
    if value.type.extents == shape:
        return value
    return context.builder.emit("BroadcastTo", value, result_shape=shape)


def _stretched(context: ExpandContext) -> tuple[Value, ...]:
    shape = context.results[0].type.extents
    return tuple([_to(context, operand, shape) for operand in context.operands])


# Reading and scattering by index: nothing counts from the end in PTIR.


def gather_form(context: ExpandContext) -> bool:
    """Append `Take` at indices that have been counted from the front."""
    operand, indices = context.operands
    counted = _counted(context, indices, operand.type.extents[:1], indices.type.rank)
    context.builder.emit_all("Take", operand, counted, defines=context.results)
    return True


def scatter_form(context: ExpandContext) -> bool:
    """Append the same with indices that have been counted from the front; False where they are already."""
    if not context.attributes["from_end"]:
        return False
    operand, indices, updates = context.operands
    windows = scatter_add_windows(context.attributes, [each.type.extents for each in context.operands])
    lengths = [windows.operand[dim] if windows.wraps(dim) else 0 for dim in windows.indexed]
    counted = _counted(context, indices, lengths, windows.vector_dim)
    attributes: Mapping[str, Any] = {**context.attributes, "from_end": False}
    context.builder.emit_all("ScatterAdd", operand, counted, updates, defines=context.results, **attributes)
    return True


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
