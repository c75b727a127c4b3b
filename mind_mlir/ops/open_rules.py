"""Rules for open axes: of operations on elements, and of what moves them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.opdef import Movement
from mind_mlir.ops.open_axes import (
    Axis,
    Factor,
    Linear,
    OpenContext,
    OpenValue,
    axis_of,
    is_open,
    regrouped,
)

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.rules import OpenRule


def joint_axes(context: OpenContext, operands: Sequence[OpenValue], rank: int) -> tuple[Axis, ...]:
    """Return the axes that operands have together, whose shapes broadcast to a rank."""
    found: list[Axis] = [()] * rank
    for operand in operands:
        first = rank - len(operand.axes)
        for place, axis in enumerate(operand.axes):
            if axis and found[first + place] not in ((), axis):
                context.refuse("its operands have dimensions that are the same for some extents alone")
            found[first + place] = axis or found[first + place]
    return tuple(found)


# Elements


def elementwise(context: OpenContext) -> list[OpenValue]:
    """Compute elements from elements: padding from padding."""
    context.expect_same()
    rank = context.operation.tensor_type.rank
    axes = joint_axes(context, context.operands, rank)
    (value,) = context.repeat()
    made = OpenValue(value, axes, opcode=context.record.opcode)
    _learn_padding(context, made)
    _learn_rows(context, made)
    return [made]


def dividing(context: OpenContext) -> list[OpenValue]:
    """Divide elements; integers by one where there is padding, for no number may be divided by zero."""
    dividend, divisor = context.operands
    if divisor.value.type.dtype.is_integer and divisor.is_open:
        context.operands = (dividend, OpenValue(context.filled(divisor, 1), divisor.axes))
    return elementwise(context)


def _learn_padding(context: OpenContext, made: OpenValue) -> None:
    """Find out which number an operation on elements makes of those in the padding of its operands."""
    rank = len(made.axes)
    known = {*made.open_axes}
    for operand in context.operands:
        if not operand.uniform:
            known &= {rank - len(operand.axes) + place for place in operand.along}
    first_, *others = context.operands
    if others and _is_row_of(context.record.opcode, first_, others[0]):
        # In a row where this is no number, the others are none, either.
        made.padding, made.along = first_.padding, first_.along & others[0].rows.axes  # type: ignore[union-attr]  # it has been looked at
        return
    made.uniform = bool(context.operands) and all(operand.uniform for operand in context.operands)
    if not (known or made.uniform) or any(operand.padding is None for operand in context.operands):
        return
    numbers = tuple([operand.padding for operand in context.operands])
    result = context.operation.tensor_type.with_shape(())
    given = EvalContext(context.record.opcode, "", numbers, context.attributes, result)
    with np.errstate(all="ignore"):
        made.padding, made.along = np.asarray(context.record.evaluate(given)), frozenset(known)


def _is_row_of(opcode: str, value: OpenValue, other: OpenValue) -> bool:
    """Return whether a step of a softmax leaves padding as it is.

    That is -inf less the greatest of a row, and 0 by the sum of exponentials.
    """
    rows = other.rows
    if rows is None or rows.of is not value.value or value.padding is None:
        return False
    assert len(value.axes) == len(other.axes), "rows are kept as long as their axes are"
    if opcode == "Sub":
        return rows.opcode == "Max" and bool(value.padding == -np.inf)
    return opcode == "Div" and rows.opcode == "Sum" and value.opcode == "Exp" and bool(value.padding == 0)


def _learn_rows(context: OpenContext, made: OpenValue) -> None:
    """Keep what is known of rows where a number stands in for some of it, as for rows that are all -inf."""
    if context.record.opcode == "Select":
        _, *branches = context.operands
        rows = [each.rows for each in branches if not (each.uniform and np.isfinite(each.padding))]
        made.rows = rows[0] if len(rows) == 1 else None


def repeated(context: OpenContext) -> list[OpenValue]:
    """Repeat an operation whose result has the axes of its first operand, which alone may be open."""
    context.expect_same()
    if any(operand.is_open for operand in context.operands[1:]):
        context.refuse("an operand after the first has an open dimension")
    return [OpenValue(value, context.operands[0].axes) for value in context.repeat()]


def made(context: OpenContext) -> list[OpenValue]:
    """Make a tensor whose elements are the same for any extents, as far as it reaches."""
    context.expect_same("shape", "value")
    return [OpenValue(value, context.axes_of_type()) for value in context.repeat()]


def constant(context: OpenContext) -> list[OpenValue]:
    """Repeat a constant: one number, which may follow the extents of a call, or a table of all of them."""
    context.expect_same("shape", "value")
    axes = context.axes_of_type()
    arrays = [literal.array for literal in context.all_of("value")]
    numbers = [array.reshape(-1)[:1] for array in arrays]
    if all(array.size and (array == number).all() for array, number in zip(arrays, numbers, strict=True)):
        if len({number.tobytes() for number in numbers}) > 1:
            value = _scalar(context, [number.item() for number in numbers])
            return [OpenValue(context.spread(value, context.operation.tensor_type.extents), axes)]
        made = [OpenValue(value, axes, numbers[0].reshape(()), uniform=True) for value in context.repeat()]
        for each in made:
            each.along = each.open_axes
        return made
    for array in arrays[1:]:
        if arrays[0][tuple(map(slice, array.shape))].tobytes() != array.tobytes():
            return [OpenValue(_counted(context, arrays), axes)]
    return [OpenValue(value, axes) for value in context.repeat()]


def _counted(context: OpenContext, arrays: Sequence[Array]) -> Value:
    """Append integers that grow evenly along each axis, in steps that may follow the extents of a call."""
    dtype, shape = context.operation.tensor_type.dtype, arrays[0].shape
    firsts = [int(array.flat[0]) for array in arrays]
    steps = [[_step(array, axis) for axis in range(len(shape))] for array in arrays]
    for array, first, each in zip(arrays, firsts, steps, strict=True):
        wanted = sum([n * step for n, step in zip(np.indices(array.shape), each, strict=True)], first)
        if not dtype.is_integer or (array != wanted).any():
            context.refuse("it is a table of numbers that depends on an open dimension")

    def number(numbers: Sequence[int]) -> Value:
        made = context.count(context.follow(numbers))
        return context.spread(made if dtype is DType.SI64 else context.emit("Cast", made, dtype=dtype), shape)

    value = number(firsts)
    for axis, along in enumerate(zip(*steps, strict=True)):
        if any(along):
            index = context.emit("Iota", shape=shape, dtype=dtype, axis=axis)
            value = context.emit("Add", value, context.emit("Mul", index, number(along)))
    return value


def _step(array: Array, axis: int) -> int:
    """Return by how much the second number along an axis is greater than the first."""
    if array.shape[axis] < 2:
        return 0
    return int(array[tuple([int(each == axis) for each in range(array.ndim)])]) - int(array.flat[0])


#: Powers of an extent that numbers are multiples of: means, their gradients, and scales.
_POWERS = (1.0, -1.0, 0.5, -0.5)


def _scalar(context: OpenContext, numbers: Sequence[float]) -> Value:
    """Append an integer that follows an extent; or a float that is a fixed number times powers of extents."""
    dtype = context.operation.tensor_type.dtype
    if dtype.is_integer:
        extent = context.count(context.follow([int(number) for number in numbers]))
        return extent if dtype is DType.SI64 else context.emit("Cast", extent, dtype=dtype)
    greatest, fixed = context.extents[0], numbers[0]
    powers = []
    for symbol, number in enumerate(numbers[1 : len(greatest) + 1]):
        ratio = context.extents[symbol + 1][symbol] / greatest[symbol]
        near = [each for each in (0.0, *_POWERS) if _is_near(numbers[0] * ratio**each, number)]
        powers.append(near[0] if near else np.nan)
        fixed /= greatest[symbol] ** powers[-1]
    for extents, number in zip(context.extents, numbers, strict=True):
        found = fixed * math.prod(each**power for each, power in zip(extents, powers, strict=True))
        if not dtype.is_float or not fixed or not _is_near(found, number):
            context.refuse("it is a number that depends on an open dimension")
    value = context.builder.constant(dtype.numpy.type(fixed), dtype)
    for symbol, power in enumerate(powers):
        if power:
            count = context.emit("Cast", context.counts[symbol], dtype=dtype)
            factor = count if power in (1, -1) else context.emit("Sqrt", count)
            value = context.emit("Mul" if power > 0 else "Div", value, factor)
    return value


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= abs(other) * 1e-6


def untouched(touched: Callable[[OpenContext], Sequence[int]]) -> OpenRule:
    """Return the rule of what leaves axes of its first operand alone, and works along those ``touched``."""

    def rule(context: OpenContext) -> list[OpenValue]:
        context.expect_same()
        first, *others = context.operands
        rank = len(first.axes)
        along = {axis % rank for axis in touched(context)}
        if any(is_open(first.axes[axis]) for axis in along) or any(each.is_open for each in others):
            context.refuse("it works along an open dimension")
        results = zip(context.repeat(), context.operation.result_types, strict=True)
        return [
            OpenValue(
                value,
                tuple(
                    axis_of([Factor(extent)]) if place in along else first.axes[place]
                    for place, extent in enumerate(type_.extents)
                ),
            )
            for value, type_ in results
        ]

    return rule


def sorting(context: OpenContext) -> list[OpenValue]:
    """Order elements along an axis that is not open."""
    context.expect_same()
    axes = joint_axes(context, context.operands, len(context.operands[0].axes))
    if is_open(axes[context.attributes["axis"] % len(axes)]):
        context.refuse("it works along an open dimension")
    return [OpenValue(value, axes) for value in context.repeat()]


# Movement


def reshaping(context: OpenContext) -> list[OpenValue]:
    """Reshape a tensor."""
    (operand,) = context.operands
    axes = regrouped(operand.axes, context.operation.tensor_type.extents)
    if axes is None:
        context.refuse("it cuts an open dimension in several")
    (value,) = context.repeat()
    made = OpenValue(value, axes, operand.padding, uniform=operand.uniform)
    if operand.along == operand.open_axes:
        made.along = made.open_axes
    if len(axes) == len(operand.axes):
        made.rows = operand.rows
    return [made]


def transposing(context: OpenContext) -> list[OpenValue]:
    """Permute the axes."""
    (operand,) = context.operands
    context.expect_same()
    (value,) = context.repeat()
    order = context.attributes["permutation"]
    along = frozenset([place for place, before in enumerate(order) if before in operand.along])
    axes = tuple([operand.axes[place] for place in order])
    return [OpenValue(value, axes, operand.padding, along, operand.uniform)]


def broadcasting(context: OpenContext) -> list[OpenValue]:
    """Broadcast a tensor, also to an open extent."""
    (operand,) = context.operands
    first = context.operation.tensor_type.rank - len(operand.axes)
    axes, along = [], set()
    for place in range(context.operation.tensor_type.rank):
        own = operand.axes[place - first] if place >= first else ()
        axes.append(own or context.axis_at(place))
        if is_open(axes[-1]) and (operand.uniform or place - first in operand.along):
            along.add(place)
    (value,) = context.repeat()
    rows = None if first else operand.rows
    return [OpenValue(value, tuple(axes), operand.padding, frozenset(along), operand.uniform, rows)]


def slicing(context: OpenContext) -> list[OpenValue]:
    """Take a slice: the beginning or all of an open axis, or some of its last elements."""
    (operand,) = context.operands
    context.expect_same("starts", "ends")
    shape = operand.value.shape
    axes, moved, along = [], {}, set()
    for place in range(len(shape)):
        axis, start, keeps = _sliced(context, operand, place)
        axes.append(axis)
        if keeps and place in operand.along and is_open(axis):
            along.add(place)
        if start is not None:
            moved[place] = start
    if not moved:
        (value,) = context.repeat()
        return [OpenValue(value, tuple(axes), operand.padding, frozenset(along), operand.uniform)]
    # What moves with the extents of a call is taken from all that the slice has on the other axes.
    first, last = ([*context.attributes[name]] for name in ("starts", "ends"))
    for place in moved:
        first[place], last[place] = 0, shape[place]
    value = context.emit(
        "Slice", operand.value, starts=tuple(first), ends=tuple(last), steps=context.attributes["steps"]
    )
    begin = places(context, [moved.get(place, Linear(0)) for place in range(len(shape))])
    value = context.emit("DynamicSlice", value, begin, sizes=context.operation.tensor_type.extents)
    return [OpenValue(value, tuple(axes), operand.padding, frozenset(along), operand.uniform)]


def _sliced(context: OpenContext, operand: OpenValue, place: int) -> tuple[Axis, Linear | None, bool]:
    """Return what a slice makes of an axis.

    That is the axis, where the slice begins if that moves, and whether all of its padding was padding before.
    """
    axis, whole = operand.axes[place], operand.value.shape[place]
    extent = context.operation.tensor_type.extents[place]
    (first, *firsts), (last, *lasts) = (
        [numbers[place] for numbers in context.all_of(name)] for name in ("starts", "ends")
    )
    if not is_open(axis) and all(each == first for each in firsts) and all(each == last for each in lasts):
        return axis_of([Factor(extent)]), None, True
    if (first, last, context.attributes["steps"][place]) == (0, whole, 1):
        return axis, None, True
    start, end = context.follow([first, *firsts]), context.follow([last, *lasts])
    if len(axis) > 1 or context.attributes["steps"][place] != 1:
        context.refuse("it slices an open dimension in steps, or one that has been reshaped")
    if start.symbol is not None and start.symbol == end.symbol:
        return axis_of([Factor(extent)]), start, True
    if start.symbol is not None:
        context.refuse("it slices an open dimension from a place that moves to one that does not")
    if end.symbol is None:
        return axis_of([Factor(extent)]), None, True
    left = Factor(extent, end.symbol, end.constant - start.constant)
    return axis_of([left]), None, is_open(axis) and end.constant == axis[0].offset


def places(context: OpenContext, numbers: Sequence[Linear]) -> Value:
    """Append numbers that follow the extents of a call as a vector of i64."""
    parts = [context.reshaped(context.count(number), (1,)) for number in numbers]
    return context.emit("Concat", *parts, axis=0)


#: The rules of what only moves elements, by what it does.
MOVEMENTS: Mapping[Movement, OpenRule] = {
    Movement.RESHAPE: reshaping,
    Movement.PERMUTATION: transposing,
    Movement.BROADCAST: broadcasting,
    Movement.SELECTION: slicing,
}


def joining(context: OpenContext) -> list[OpenValue]:
    """Join tensors, of which one may be open along the axis: what follows it is written behind it."""
    context.expect_same()
    rank = len(context.operands[0].axes)
    axis = context.attributes["axis"] % rank
    open_ones = [each for each in context.operands if is_open(each.axes[axis])]
    others = [
        OpenValue(each.value, (*each.axes[:axis], (), *each.axes[axis + 1 :])) for each in context.operands
    ]
    axes = list(joint_axes(context, others, rank))
    if not open_ones:
        axes[axis] = axis_of([Factor(context.operation.tensor_type.extents[axis])])
        (value,) = context.repeat()
        return [OpenValue(value, tuple(axes))]
    if len(open_ones) > 1 or len(open_ones[0].axes[axis]) > 1:
        context.refuse("it joins several tensors along an open dimension")
    (inner,) = open_ones[0].axes[axis]
    fixed = context.operation.tensor_type.extents[axis] - inner.extent
    axes[axis] = axis_of([Factor(inner.extent + fixed, inner.symbol, inner.offset + fixed)])
    (value,) = context.repeat()
    if open_ones[0] is not context.operands[-1]:
        before, behind = 0, False
        for each in context.operands:
            if behind:
                start = [Linear(0)] * rank
                start[axis] = Linear(inner.offset + before, inner.symbol)
                value = context.emit("DynamicUpdateSlice", value, each.value, places(context, start))
            behind = behind or each is open_ones[0]
            before += 0 if each is open_ones[0] else each.value.shape[axis]
    return [OpenValue(value, tuple(axes))]


def padding(context: OpenContext) -> list[OpenValue]:
    """Pad a tensor: what has been padding so far gets the number that it is padded with."""
    (operand,) = context.operands
    context.expect_same()
    low, high, interior = (context.attributes[name] for name in ("low", "high", "interior"))
    axes, padded = [], set()
    for place, axis in enumerate(operand.axes):
        if not low[place] and not high[place] and not interior[place]:
            axes.append(axis)
            continue
        if not is_open(axis):
            axes.append(axis_of([Factor(context.operation.tensor_type.extents[place])]))
            continue
        if len(axis) > 1 or interior[place]:
            context.refuse("it pads between the elements of an open dimension, or one that has been reshaped")
        (inner,) = axis
        more = low[place] + high[place]
        axes.append(axis_of([Factor(inner.extent + more, inner.symbol, inner.offset + more)]))
        padded.add(place)
    number = context.attributes["pad_value"].array
    value = context.filled(operand, number, padded) if padded else operand.value
    return [OpenValue(each, tuple(axes)) for each in context.repeat(value)]
