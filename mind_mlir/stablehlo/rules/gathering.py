"""Gather and scatter in general form: windows of a tensor at positions that are known when the program runs.

Rows along one axis are read and added to as such. Anything else goes by the numbers of elements: the position
of each element of each window in the tensor laid out flat.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.bindings import stablehlo
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.scatter_windows import row_form
from mind_mlir.stablehlo.rules.bodies import kind_of
from mind_mlir.stablehlo.rules.movement import position
from mind_mlir.stablehlo.rules.use import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.bindings import Block
    from mind_mlir.ir.value import Value
    from mind_mlir.stablehlo.rules.use import Use

_KINDS = {"add": "Add", "maximum": "Max", "minimum": "Min"}
_TRUTHS = {"or": "Max", "and": "Min", "maximum": "Max", "minimum": "Min", "add": "Max", "multiply": "Min"}


class _Windows(NamedTuple):
    """Where windows lie, and which dimensions of what is read or written belong to them.

    Attributes:
        starts: For each dimension of the tensor that has one, where windows begin: tensors of the shape of
            all windows.
        sizes: The extents of a window in each dimension of the tensor.
        window_axes: The dimensions of the tensor that the windows' own are.
        places: Which dimensions of the elements are the windows' own.
        batch: The shape of all windows.
    """

    starts: dict[int, Value]
    sizes: tuple[int, ...]
    window_axes: tuple[int, ...]
    places: tuple[int, ...]
    batch: tuple[int, ...]


def _windows(
    use: Use,
    indices: Value,
    vector: int,
    axes: Sequence[int],
    batching: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    window_axes: Sequence[int],
    places: Sequence[int],
) -> _Windows:
    indices = use.cast(position(use, indices), DType.SI64)
    extents = indices.type.extents
    if vector == len(extents):
        indices, extents = use.reshaped(indices, (*extents, 1)), (*extents, 1)
    batch = tuple(extent for axis, extent in enumerate(extents) if axis != vector)
    starts = {
        axis: use.reshaped(use.part(indices, vector, number, number + 1), batch)
        for number, axis in enumerate(axes)
    }
    for axis, index_axis in batching:
        place = index_axis - (index_axis > vector)
        starts[axis] = _counted(use, batch, place)
    return _Windows(starts, tuple(sizes), tuple(window_axes), tuple(places), batch)


def _counted(use: Use, shape: Sequence[int], axis: int) -> Value:
    """Append the position along one axis of each element of a tensor."""
    if 0 in shape:
        return use.full(0, TensorType(DType.SI64, tuple(shape)))
    return use.emit("Iota", shape=tuple(shape), dtype=DType.SI64, axis=axis)


def _gather(use: Use) -> Value:
    operand, indices = use.operands
    dims = stablehlo().GatherDimensionNumbers(use.attribute("dimension_numbers"))
    sizes, extents = use.integers("slice_sizes"), operand.type.extents
    gone = (*dims.collapsed_slice_dims, *dims.operand_batching_dims)
    window_axes = [axis for axis in range(len(extents)) if axis not in gone]
    batching = list(zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True))
    windows = _windows(
        *(use, indices, dims.index_vector_dim, dims.start_index_map, batching, sizes, window_axes),
        dims.offset_dims,
    )
    result = use.result_type()
    if result.element_count == 0:
        return use.full(0, result)
    for axis in dims.start_index_map:
        start = windows.starts[axis]
        start = use.emit("Maximum", start, use.like(0, start))
        windows.starts[axis] = use.emit("Minimum", start, use.like(extents[axis] - sizes[axis], start))
    if (axis := _row_axis(windows, extents)) is not None:
        return _rows(use, operand, windows, axis)
    linear, _ = _linear(use, windows, extents, result.extents)
    flat = use.reshaped(operand, (math.prod(extents),))
    return use.emit("Take", flat, linear)


def _row_axis(windows: _Windows, extents: Sequence[int]) -> int | None:
    """Return the axis whose whole rows the windows are, if they are."""
    if len(windows.starts) != 1:
        return None
    (axis,) = windows.starts
    others = [each for each in range(len(extents)) if each != axis]
    whole = list(windows.window_axes) == others and all(
        windows.sizes[each] == extents[each] for each in others
    )
    return axis if whole else None


def _rows(use: Use, operand: Value, windows: _Windows, axis: int) -> Value:
    rank, batch = operand.type.rank, len(windows.batch)
    front = use.transposed(operand, (axis, *(each for each in range(rank) if each != axis)))
    rows = use.emit("Take", front, windows.starts[axis])
    return use.transposed(rows, _order(windows, batch + rank - 1))


def _order(windows: _Windows, rank: int) -> list[int]:
    """Return for each dimension of elements which it is where all windows come first."""
    batches, own = itertools.count(), itertools.count(len(windows.batch))
    return [next(own) if axis in windows.places else next(batches) for axis in range(rank)]


def _linear(
    use: Use, windows: _Windows, extents: Sequence[int], shape: Sequence[int]
) -> tuple[Value, Value | None]:
    """Append the number of each element in the tensor laid out flat, and which elements lie within it.

    Args:
        use: The operation.
        windows: Where the windows lie.
        extents: The shape of the tensor.
        shape: The shape of the elements, which has the windows' dimensions at `_Windows.places`.
    """
    strides = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
    apart = [1 if axis in windows.places else extent for axis, extent in enumerate(shape)]
    total, inside = None, None
    own = dict(zip(windows.window_axes, windows.places, strict=True))
    for axis, extent in enumerate(extents):
        found = None
        if axis in windows.starts:
            found = use.stretched(use.reshaped(windows.starts[axis], apart), shape)
        if axis in own and windows.sizes[axis] > 1:
            counted = _counted(use, shape, own[axis])
            found = counted if found is None else use.emit("Add", found, counted)
        if found is None:
            continue
        if axis in windows.starts:
            fits = use.emit(
                "And",
                use.emit("Compare", found, use.like(0, found), op="GreaterEqual"),
                use.emit("Compare", found, use.like(extent, found), op="Less"),
            )
            inside = fits if inside is None else use.emit("And", inside, fits)
        if strides[axis] != 1:
            found = use.emit("Mul", found, use.like(strides[axis], found))
        total = found if total is None else use.emit("Add", total, found)
    if total is None:
        total = use.full(0, TensorType(DType.SI64, tuple(shape)))
    return total, inside


# Scatter


def _scatter(use: Use) -> Sequence[Value]:
    if len(use.operands) != 3:
        use.refuse("scattering to several tensors at once")
    operand, indices, updates = use.operands
    dims = stablehlo().ScatterDimensionNumbers(use.attribute("scatter_dimension_numbers"))
    extents = operand.type.extents
    kind = _combination(use.body(), operand.type.dtype)
    if kind is None:
        use.refuse("combining elements other than by sum, maximum, minimum or replacement")
    gone = (*dims.inserted_window_dims, *dims.input_batching_dims)
    window_axes = [axis for axis in range(len(extents)) if axis not in gone]
    sizes = [1] * len(extents)
    for axis, place in zip(window_axes, dims.update_window_dims, strict=True):
        sizes[axis] = updates.type.extents[place]
    batching = list(zip(dims.input_batching_dims, dims.scatter_indices_batching_dims, strict=True))
    windows = _windows(
        *(use, indices, dims.index_vector_dim, dims.scattered_dims_to_operand_dims, batching, sizes),
        *(window_axes, dims.update_window_dims),
    )
    if updates.type.element_count == 0 or 0 in extents:
        return (operand,)
    row_axis = _row_axis(windows, extents) if kind == "Add" else None
    if row_axis is not None:
        return (_added_rows(use, operand, updates, windows, row_axis),)
    linear, inside = _linear(use, windows, extents, updates.type.extents)
    count = math.prod(extents)
    if inside is not None:
        linear = use.emit("Select", inside, linear, use.like(count, linear))
    number = updates.type.element_count
    flat = use.reshaped(operand, (count,))
    spare = use.full(0, TensorType(operand.type.dtype, (1,)))
    longer = use.emit("Concat", flat, spare, axis=0)  # what lies outside goes to one more element
    found = use.emit(
        "ScatterReduce",
        longer,
        use.reshaped(linear, (number,)),
        use.reshaped(updates, (number,)),
        axis=0,
        reduce=kind,
    )
    return (use.reshaped(use.part(found, 0, 0, count), extents),)


def _combination(block: Block, dtype: DType) -> str | None:
    operations = list(block.operations)
    if len(operations) == 1 and list(operations[0].operation.operands) == [block.arguments[1]]:
        return "Replace"
    return (_TRUTHS if dtype is DType.I1 else _KINDS).get(kind_of(block) or "")


def _added_rows(use: Use, operand: Value, updates: Value, windows: _Windows, axis: int) -> Value:
    rank, extents = operand.type.rank, operand.type.extents
    to_front = [axis, *(each for each in range(rank) if each != axis)]
    front = use.transposed(operand, to_front)
    spare = use.full(0, TensorType(operand.type.dtype, (1, *front.type.extents[1:])))
    longer = use.emit("Concat", front, spare, axis=0)
    start = windows.starts[axis]
    fits = use.emit(
        "And",
        use.emit("Compare", start, use.like(0, start), op="GreaterEqual"),
        use.emit("Compare", start, use.like(extents[axis], start), op="Less"),
    )
    rows = use.emit("Select", fits, start, use.like(extents[axis], start))
    order = _order(windows, updates.type.rank)
    back = [order.index(each) for each in range(len(order))]
    added = use.emit(
        "ScatterAdd",
        longer,
        rows,
        use.transposed(updates, back),
        **row_form(rank, len(windows.batch), from_end=False),
    )
    kept = use.part(added, 0, 0, extents[axis])
    return use.transposed(kept, [to_front.index(each) for each in range(rank)])


RULES: Mapping[str, Rule] = {
    "stablehlo.gather": Rule(_gather),
    "stablehlo.scatter": Rule(_scatter),
}
