"""Operations of Core IR that PTIR has none for, said with those that it has (`OpDef.in_contract`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.ops.axes import sliced_positions
from mind_mlir.ops.convolution_form import axes_of, general_attributes

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.rules import ExpandRule
    from mind_mlir.ops.sliding import Sliding
    from mind_mlir.ops.vjp import ExpandContext


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
    return context.define("Div", total, context.full(count, result))


def reshape_form(context: ExpandContext) -> bool:
    """Append `Reshape` to the shape of the result."""
    return context.define("Reshape", context.operands[0], new_shape=context.results[0].type.extents)


def relu_form(context: ExpandContext) -> bool:
    """Append the elements that are greater than 0, and 0 for the others: for NaN, too."""
    (operand,), (result,) = context.operands, context.results
    zero = context.full(0, result)
    positive = context.emit("Compare", operand, zero, op="Greater")
    return context.define("Select", positive, operand, zero)


def _of_truths(form: ExpandRule) -> ExpandRule:
    """Return ``form`` for truth values alone: the bits of integers, PTIR does not change."""
    return lambda context: context.results[0].type.dtype is DType.I1 and form(context)


@_of_truths
def not_form(context: ExpandContext) -> bool:
    """Append whether the operand is false."""
    return context.define("Compare", context.operands[0], context.full(False, context.results[0]), op="Equal")


@_of_truths
def and_form(context: ExpandContext) -> bool:
    """Append the right operand where the left one is true, else false."""
    left, right = _stretched(context)
    return context.define("Select", left, right, context.full(False, context.results[0]))


@_of_truths
def or_form(context: ExpandContext) -> bool:
    """Append true where the left operand is, else the right one."""
    left, right = _stretched(context)
    return context.define("Select", left, context.full(True, context.results[0]), right)


@_of_truths
def xor_form(context: ExpandContext) -> bool:
    """Append whether the operands differ."""
    return context.define("Compare", *_stretched(context), op="NotEqual")


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
    window = context.emit("Slice", operand, starts=tuple(starts), ends=tuple(ends), steps=(1,) * len(extents))
    return context.define("Reshape", window, new_shape=result.type.extents)


def slice_form(context: ExpandContext) -> bool:
    """Append what takes elements that are no neighbours; False where all are."""
    positions = sliced_positions(context.attributes, context.operands[0].type.extents)
    if all(taken.step == 1 for taken in positions):
        return False
    strided_form(context, positions)
    return True


def conv2d_form(context: ExpandContext) -> bool:
    """Append the windows as rows, and their product with the filter as a matrix."""
    image, filter_ = (operand.type for operand in context.operands)
    general = general_attributes(context.attributes, image.extents, filter_.extents, image.dtype)
    return convolution_form(replace(context, attributes=general))


def convolution_form(context: ExpandContext) -> bool:
    """Append the windows as rows, and their products with the filter, in groups."""
    (image, filter_), attributes = context.operands, context.attributes
    *window, inputs, outputs = filter_.type.extents
    groups: int = attributes["groups"]
    rows = _window_rows(context, axes_of(attributes, image.type.extents, filter_.type.extents))
    dtypes = {name: attributes[name] for name in ("accum_dtype", "out_dtype")}
    last, count = rows.type.rank - 1, math.prod(window)
    if groups == 1:
        matrix = context.emit("Reshape", filter_, new_shape=(count * inputs, outputs))
        pairs = {"batch_lhs": (), "batch_rhs": (), "contract_lhs": (last,), "contract_rhs": (0,)}
        return context.define("DotGeneral", rows, matrix, **pairs, **dtypes)
    outer = rows.type.extents[:-1]
    rows = context.emit("Reshape", rows, new_shape=(*outer, count, groups, inputs))
    taps = context.emit("Reshape", filter_, new_shape=(count, inputs, groups, outputs // groups))
    pairs = {
        "batch_lhs": (last + 1,),
        "batch_rhs": (2,),
        "contract_lhs": (last, last + 2),
        "contract_rhs": (0, 1),
    }
    found = context.emit("DotGeneral", rows, taps, **pairs, **dtypes)  # [groups, N, windows..., features]
    found = context.emit("Transpose", found, permutation=(*range(1, last + 1), 0, last + 1))
    return context.define("Reshape", found, new_shape=context.results[0].type.extents)


def _window_rows(context: ExpandContext, axes: Sequence[Sliding]) -> Value:
    """Append the windows of an image as rows."""
    image = context.operands[0]
    zero = TensorLiteral.of(0, image.type.dtype)
    low, high = ([0, *(max(0, getattr(axis, side)) for axis in axes), 0] for side in ("low", "high"))
    gaps = [0, *(axis.base - 1 for axis in axes), 0]
    below = [0, *(max(0, -axis.low) for axis in axes), 0]
    if any(gaps) or any(min(axis.low, axis.high) < 0 for axis in axes):
        lists = {"low": tuple(low), "high": tuple(high), "interior": tuple(gaps)}
        image = context.emit("Pad", image, **lists, pad_value=zero)
        ends = [image.type.extents[0], *(axis.padded for axis in axes), image.type.extents[-1]]
        ends[1:-1] = [start + extent for start, extent in zip(below[1:-1], ends[1:-1], strict=True)]
        steps = (1,) * len(ends)
        image = context.emit("Slice", image, starts=tuple(below), ends=tuple(ends), steps=steps)
        low = high = [0] * len(ends)
    return context.emit(
        "ExtractPatches",
        image,
        window=tuple(axis.window for axis in axes),
        strides=tuple(axis.stride for axis in axes),
        dilation=tuple(axis.spacing for axis in axes),
        padding_low=tuple(low[1:-1]),
        padding_high=tuple(high[1:-1]),
        pad_value=zero,
    )


def dot_form(context: ExpandContext) -> bool:
    """Append `DotGeneral` over the last dimension of the left operand and the first of the right one."""
    left, right = context.operands
    return _contract(context, left, right, (left.type.rank - 1,), (0,), 0)


def matmul_form(context: ExpandContext) -> bool:
    """Append `DotGeneral` with the leading dimensions as batch dimensions, which have been stretched."""
    left, right = context.operands
    batch = context.results[0].type.extents[:-2]
    left, right = (context.stretched(each, (*batch, *each.type.extents[-2:])) for each in (left, right))
    rank = len(batch) + 2
    return _contract(context, left, right, (rank - 1,), (rank - 2,), len(batch))


def _contract(
    context: ExpandContext,
    left: Value,
    right: Value,
    over_left: tuple[int, ...],
    over_right: tuple[int, ...],
    batch: int,
) -> bool:
    dtype, paired = left.type.dtype, tuple(range(batch))
    return context.define(
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


def _stretched(context: ExpandContext) -> tuple[Value, ...]:
    shape = context.results[0].type.extents
    return tuple([context.stretched(operand, shape) for operand in context.operands])


# Reading and scattering by index: nothing counts from the end in PTIR.


def gather_form(context: ExpandContext) -> bool:
    """Append `Take` at indices that have been counted from the front."""
    operand, indices = context.operands
    counted = _counted(context, indices, operand.type.extents[:1], indices.type.rank)
    return context.define("Take", operand, counted)


def scatter_form(context: ExpandContext) -> bool:
    """Append the same with indices that have been counted from the front; False where they are already."""
    from mind_mlir.ops.windows import scatter_add_windows  # noqa: PLC0415 -- kept code starts without

    if not context.attributes["from_end"]:
        return False
    operand, indices, updates = context.operands
    windows = scatter_add_windows(context.attributes, [each.type.extents for each in context.operands])
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
    length = context.stretched(length, type_.extents)
    zero = context.stretched(builder.constant(0, type_.dtype), type_.extents)
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
