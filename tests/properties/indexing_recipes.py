"""Recipes of operations that take or write a part of a tensor (`recipes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from growth import MAX_RANK, Growth, has_elements

from mind_mlir.ir.types import TensorType
from mind_mlir.ops.opdef import ANY, INTEGERS, NUMERIC
from mind_mlir.ops.windows import row_form

if TYPE_CHECKING:
    from growth import Shape

    from mind_mlir.ir.value import Value


def index(g: Growth) -> Value:
    operand = g.operand(ANY, wanted=has_elements)
    return g.emit("Index", operand, indices=tuple(g.number(-extent, extent - 1) for extent in operand.shape))


def _index_shape(g: Growth, row: Shape) -> Shape:
    shape: list[int] = []
    while len(shape) + len(row) < MAX_RANK and g.flag():
        shape.append(g.extent(tuple(shape), row))
    return tuple(shape)


def gather(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK), wanted=lambda value: value.shape[0] > 0)
    return g.emit("Gather", operand, g.indices(operand.shape[0], _index_shape(g, operand.shape[1:])))


def scatter_add(g: Growth) -> Value:
    operand = g.operand(NUMERIC, (1, MAX_RANK), wanted=lambda value: value.shape[0] > 0)
    indices = g.indices(operand.shape[0], _index_shape(g, operand.shape[1:]))
    updates = g.of_type(operand.type.with_shape((*indices.shape, *operand.shape[1:])))
    form = row_form(operand.type.rank, indices.type.rank)
    return g.accumulated(g.emit("ScatterAdd", operand, indices, updates, **form))


def take(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK), wanted=lambda value: value.shape[0] > 0)
    return g.emit("Take", operand, g.positions(operand.shape[0], _index_shape(g, operand.shape[1:])))


def _along(g: Growth, operand: Value) -> tuple[int, Shape]:
    """Return an axis that is not empty, and the shape of ``operand`` with another extent there."""
    axis = g.pick([axis for axis, extent in enumerate(operand.shape) if extent])
    others = (*operand.shape[:axis], *operand.shape[axis + 1 :])
    return axis, (*others[:axis], g.extent(others), *others[axis:])


def gather_elements(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK), wanted=lambda value: any(value.shape))
    axis, shape = _along(g, operand)
    return g.emit("GatherElements", operand, g.positions(operand.shape[axis], shape), axis=axis)


def scatter_reduce(g: Growth) -> Value:
    operand = g.operand(NUMERIC, (1, MAX_RANK), wanted=lambda value: any(value.shape))
    axis, shape = _along(g, operand)
    indices = g.positions(operand.shape[axis], shape)
    updates = g.of_type(operand.type.with_shape(shape))
    kind = g.pick(["Add", "Max", "Min", "Replace"])
    return g.accumulated(g.emit("ScatterReduce", operand, indices, updates, axis=axis, reduce=kind))


def arg_sort(g: Growth) -> Value:
    first = g.operand(ANY, (1, MAX_RANK))
    keys = [g.of_type(first.type.with_dtype(g.dtype(ANY))) for _ in range(g.number(0, 1))]
    axis, dtype = g.number(0, first.type.rank - 1), g.dtype(INTEGERS)
    form = {"axis": axis, "descending": g.flag(), "total_order": g.flag(), "indices_dtype": dtype}
    return g.emit("ArgSort", first, *keys, **form)


def gather_windows(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK - 1), wanted=has_elements)
    sizes = _window(g, operand.shape)
    indices = g.of_type(TensorType(g.dtype(INTEGERS), (g.extent((), sizes), 1)))
    return g.emit(
        "GatherWindows",
        operand,
        indices,
        offset_dims=tuple(range(1, len(sizes) + 1)),
        collapsed_slice_dims=(),
        start_index_map=(g.number(0, len(sizes) - 1),),
        index_vector_dim=1,
        slice_sizes=sizes,
    )


def scatter_windows(g: Growth) -> Value:
    operand = g.operand(NUMERIC, (1, MAX_RANK - 1), wanted=has_elements)
    sizes = _window(g, operand.shape)
    count = g.extent((), sizes)
    indices = g.of_type(TensorType(g.dtype(INTEGERS), (count, 1)))
    updates = g.of_type(operand.type.with_shape((count, *sizes)))
    kind = g.pick(["Add", "Max", "Min", "Replace"])
    return g.accumulated(
        g.emit(
            "ScatterWindows",
            operand,
            indices,
            updates,
            update_window_dims=tuple(range(1, len(sizes) + 1)),
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=(g.number(0, len(sizes) - 1),),
            index_vector_dim=1,
            reduce=kind,
        )
    )


def slice_(g: Growth) -> Value:
    operand = g.operand(ANY)
    starts, ends, steps = [], [], []
    for extent in operand.shape:
        start, end, step = _range(g, extent)
        starts.append(start)
        ends.append(end)
        steps.append(step)
    return g.emit("Slice", operand, starts=tuple(starts), ends=tuple(ends), steps=tuple(steps))


def _range(g: Growth, extent: int) -> tuple[int, int, int]:
    if g.flag():
        return 0, extent, 1
    step = g.pick([1, 2, -1, 3, -2])
    start, end = g.number(-extent - 1, extent + 1), g.number(-extent - 1, extent + 1)
    if range(*slice(start, end, step).indices(extent)) or g.empties:
        return start, end, step
    return (0, extent, step) if step > 0 else (extent, -extent - 1, step)


def _start(g: Growth, rank: int) -> Value:
    return g.of_type(TensorType(g.dtype(INTEGERS), (rank,)))


def _window(g: Growth, shape: Shape) -> Shape:
    return tuple(g.number(0 if g.empties else min(1, extent), extent) for extent in shape)


def dynamic_slice(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK))
    start = _start(g, operand.type.rank)
    return g.emit("DynamicSlice", operand, start, sizes=_window(g, operand.shape))


def dynamic_update_slice(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK))
    update = g.of_type(operand.type.with_shape(_window(g, operand.shape)))
    return g.emit("DynamicUpdateSlice", operand, update, _start(g, operand.type.rank))
