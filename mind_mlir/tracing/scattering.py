"""Write to places of an array: one scatter, or a choice where truth values say which places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.ops.gather_scatter import COMBINATIONS
from mind_mlir.tracing import indexing
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.operators import binary, broadcast_to, choose
from mind_mlir.tracing.places import refuse

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray
    from mind_mlir.tracing.trace import Trace


def combined(how: str, old: TracedArray, new: TracedArray) -> TracedArray:
    """Return elements of ``new``, or what ``how`` makes of them and those of ``old``; both are broadcast."""
    opcode = COMBINATIONS[how]
    return new if opcode is None else binary(opcode, old, new)


def spread(trace: Trace, value: Value, shape: tuple[int, ...]) -> Value:
    """Return ``value`` repeated to fill ``shape``; it may have further axes of extent 1 in front."""
    more = max(value.type.rank - len(shape), 0)
    if set(value.shape[:more]) <= {1}:
        value = indexing.reshaped(trace, value, value.shape[more:])
    return broadcast_to(trace, value, shape)


def scattered(trace: Trace, operand: Value, update: Value, how: str, found: indexing.IndexingPlan) -> Value:
    """Return ``operand`` with elements combined with those of ``update``, in row-major order.

    Slices of step 1 are windows, which are written wholly where the other parts of the index say.
    """
    arrays = {found.axes[place]: each for (place, _), each in _integers(trace, found)}
    shape = next(iter(arrays.values())).shape if arrays else ()
    # The dimensions of what is written: axes of the operand, new ones (None), and those of integer arrays.
    others = [found.axes[place] for place in found.others]
    axes = [*others[: found.before], *[_OF_ARRAYS] * len(shape), *others[found.before :]]
    extents = [found.shape[place] for place in found.others]
    target = (*extents[: found.before], *shape, *extents[found.before :])
    update = spread(trace, update, target)
    if 0 in target:
        return operand
    kept = [place for place, axis in enumerate(axes) if axis is not None]
    update = indexing.reshaped(trace, update, [target[place] for place in kept])
    axes, target = [axes[place] for place in kept], tuple(target[place] for place in kept)
    windows = [place for place, axis in enumerate(axes) if _is_window(axis, found)]
    thin = [axis for axis in range(operand.type.rank) if axis not in [axes[place] for place in windows]]
    run = [place for place in range(len(target)) if place not in windows]
    numbers = {}
    for axis in range(operand.type.rank):
        number = _number(
            trace, axis, arrays, axes, found, operand.shape[axis], [target[place] for place in run], run
        )
        if number is not None:
            numbers[axis] = number
    return trace.emit(
        "ScatterWindows",
        operand,
        indexing.index_vectors(trace, list(numbers.values())),
        update,
        update_window_dims=windows,
        inserted_window_dims=thin,
        scatter_dims_to_operand_dims=list(numbers),
        index_vector_dim=0 if len(numbers) > 1 else len(run),
        reduce=how,
        checked=True,
    ).value


#: Stands for an axis where a dimension is one of the integer arrays.
_OF_ARRAYS = -1


def _integers(trace: Trace, found: indexing.IndexingPlan) -> Sequence[Any]:
    return list(zip(found.arrays, indexing.index_arrays(trace, found), strict=True)) if found.arrays else []


def _is_window(axis: int | None, found: indexing.IndexingPlan) -> bool:
    return axis is not None and axis != _OF_ARRAYS and found.steps[axis] == 1


def _number(
    trace: Trace,
    axis: int,
    arrays: dict[Any, Value],
    axes: Sequence[int | None],
    found: indexing.IndexingPlan,
    extent: int,
    shape: Sequence[int],
    run: Sequence[int],
) -> Value | None:
    """Return where on an axis of the operand windows begin, of ``shape``; None for 0 and the whole axis."""
    sources = [axes[place] for place in run]
    if axis in arrays:
        ones = [size if source == _OF_ARRAYS else 1 for size, source in zip(shape, sources, strict=True)]
        return broadcast_to(trace, indexing.reshaped(trace, arrays[axis], ones), tuple(shape))
    start, step = found.starts[axis], found.steps[axis]
    if axis in sources:
        counted = trace.emit("Iota", shape=list(shape), dtype=DType.SI64, axis=sources.index(axis))
        return trace.value(counted * step + start)
    if (start, found.ends[axis]) == (0, extent) and axis in axes:
        return None
    return broadcast_to(trace, as_value(trace, start, DType.SI64), tuple(shape))


def masked(array: TracedArray, items: list[Any], how: str, update: Value) -> TracedArray:
    """Return the array with elements combined where truth values, which are part of its index, say so."""
    trace = array.trace
    places = [place for place, item in enumerate(items) if indexing.is_mask(item)]
    integers = any(
        not (item is None or isinstance(item, (int, slice)) or indexing.is_mask(item)) for item in items
    )
    if len(places) > 1 or integers:
        refuse(
            "E2306",
            "truth values choose places together with other truth values or integer arrays",
            "write x.at[index].set(mind_mlir.numpy.where(condition, y, x[index])), one after the other",
        )
    (place,) = places
    mask = items[place]
    axis = sum(item is not None for item in items[:place])
    indexing.check_mask(mask.shape, array.shape[axis : axis + mask.ndim])
    basic = (*items[:place], *[slice(None)] * mask.ndim, *items[place + 1 :])
    old = array[basic]
    before = sum(not isinstance(item, int) for item in items[:place])
    after = old.ndim - before - mask.ndim
    # The values have one dimension where the array has those of the truth values: how many are true.
    at = before if _are_together(items) else 0
    rank = before + 1 + after
    extents = [*[1] * (rank - update.type.rank), *update.shape]
    if len(extents) > rank or extents[at] != 1:
        refuse(
            "E2306",
            f"values of shape {list(update.shape)} are written to as many places as truth values are true",
            "how many these are is not known before the program runs: write one value for all of them, or "
            "mind_mlir.numpy.where(condition, y, x) with y of the shape of x",
        )
    del extents[at]
    values = indexing.reshaped(trace, update, [*extents[:before], *[1] * mask.ndim, *extents[before:]])
    condition = mask.reshape([1] * before + list(mask.shape) + [1] * after)
    new = combined(how, old, trace.wrap(values, weak=array.weak))
    return array.at[basic].set(choose(condition, new, old))


def _are_together(items: Sequence[Any]) -> bool:
    """Return whether the integers and truth values of an index stand beside one another, for numpy's rule."""
    places = [place for place, item in enumerate(items) if item is not None and not isinstance(item, slice)]
    return places == list(range(places[0], places[0] + len(places)))
