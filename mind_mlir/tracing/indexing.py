"""``x[...]`` of traced arrays, as numpy has it.

Integers, slices, ``None`` and an ellipsis are known when the program is made: that is a `Slice`, and a
reshape. Integer arrays and traced integers are read when it runs: each that counts from the end, or is
outside of its axis, is what it is for `Gather` (E6001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mind_mlir import border
from mind_mlir.ir.types import DType
from mind_mlir.tracing.conversion import as_array, as_value
from mind_mlir.tracing.errors import refuse
from mind_mlir.tracing.operators import broadcast, broadcast_to, choose
from mind_mlir.tracing.trace import current_trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray
    from mind_mlir.tracing.trace import Trace

_INDICES = (DType.SI32, DType.SI64)


@dataclass(slots=True)
class Plan:
    """What an index does, axis by axis.

    Attributes:
        starts: Of each axis of the array, what a `Slice` of it begins with.
        ends: What it ends before.
        steps: Its steps.
        shape: The extents after that without the axes of integers, and with new ones.
        arrays: What is read along axes of that shape: the axis, and the integers.
        in_front: Whether the extents of integer arrays come first, for numpy has them apart from one another.
    """

    starts: list[int]
    ends: list[int]
    steps: list[int]
    shape: list[int]
    arrays: list[tuple[int, Any]]
    in_front: bool


def get(array: TracedArray, index: Any) -> TracedArray:
    """Return ``array[index]``.

    Raises:
        TracingError: E2306, it is no index of that array.
    """
    trace = current_trace()
    value = trace.value(array)
    found = plan(value.shape, index)
    whole = all(
        (start, end, step) == (0, extent, 1)
        for start, end, step, extent in zip(found.starts, found.ends, found.steps, value.shape, strict=True)
    )
    if not whole:
        value = trace.emit("Slice", value, starts=found.starts, ends=found.ends, steps=found.steps).value
    if value.shape != tuple(found.shape):
        value = reshaped(trace, value, found.shape)
    if found.arrays:
        value = _read(trace, value, found)
    return trace.wrap(value, weak=array.weak)


def reshaped(trace: Trace, value: Value, shape: Sequence[int]) -> Value:
    """Return the elements of ``value`` in another shape, which may have none of them."""
    if value.shape == tuple(shape):
        return value
    if all(shape):
        return trace.emit("Reshape", value, new_shape=list(shape)).value
    # Of nothing, only the axes of extent 1 can go and come.
    old = [place for place, extent in enumerate(value.shape) if extent == 1]
    value = trace.emit("Squeeze", value, axes=old).value if old else value
    new = [place for place, extent in enumerate(shape) if extent == 1]
    return trace.emit("ExpandDims", value, axes=new).value if new else value


def plan(shape: tuple[int, ...], index: Any) -> Plan:
    """Return what ``index`` does to an array of ``shape``."""
    items = [_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    given = sum(item is not None and item is not Ellipsis for item in items)
    if given > len(shape):
        _refuse(f"there are {given} indices of an array of rank {len(shape)}", "give one for each dimension")
    if sum(item is Ellipsis for item in items) > 1:
        _refuse("there are two ellipses in an index", "give one: it stands for all dimensions that are left")
    if Ellipsis not in [item for item in items if item is Ellipsis]:
        items.append(Ellipsis)
    place = next(at for at, item in enumerate(items) if item is Ellipsis)
    items[place : place + 1] = [slice(None)] * (len(shape) - given)
    return _planned(shape, items)


def _planned(shape: tuple[int, ...], items: list[Any]) -> Plan:
    found = Plan([], [], [], [], [], in_front=False)
    has_array = any(not _is_basic(item) and _rank(item) > 0 for item in items)
    advanced: list[int] = []
    axis = 0
    for place, item in enumerate(items):
        if item is None:
            found.shape.append(1)
            continue
        extent = shape[axis]
        axis += 1
        if isinstance(item, slice):
            start, end, step = _bounds(item, extent)
            count = len(range(start, end, step))
            if not count:  # a start or an end of -1 is no place
                start, end, step = 0, 0, 1
            # Down to the first element is spelled with an end that is beyond it.
            ends = end if step > 0 or end >= 0 else -(extent + 1)
            found.shape.append(count)
        elif isinstance(item, int):
            start, ends, step = _position(item, extent), 0, 1
            ends = start + 1
            advanced.append(place)
        else:
            start, ends, step = 0, extent, 1
            found.arrays.append((len(found.shape), item))
            found.shape.append(extent)
            advanced.append(place)
        found.starts.append(start)
        found.ends.append(ends)
        found.steps.append(step)
    if has_array:
        found.in_front = advanced != list(range(advanced[0], advanced[0] + len(advanced)))
    return found


def _item(item: Any) -> Any:
    """Return a part of an index: None, an ellipsis, a slice, a plain integer, a traced value or an array."""
    if item is None or item is Ellipsis or isinstance(item, (slice, TracedValue)):
        if isinstance(item, TracedValue) and item.value.type.dtype not in _INDICES:
            _refuse_dtype(item.value.type.dtype)
        return item
    whole = border.whole(item)
    if whole is not None:
        return whole
    if isinstance(item, (str, bytes, float, complex)):
        _refuse(f"{border.describe(item)} is no index", "indices are integers, slices and integer arrays")
    array = np.zeros(0, np.int64) if isinstance(item, (list, tuple)) and not item else as_array(item)
    if array.dtype.kind == "b":
        _refuse_dtype(DType.I1)
    if array.dtype.kind not in "iu":
        _refuse(f"an array of {array.dtype} is no index", "convert it: indices.astype('i64')")
    return array.astype(np.int64) if array.dtype not in (np.int32, np.int64) else array


def _refuse(message: str, help: str) -> NoReturn:
    refuse("E2306", message, help)


def _refuse_dtype(dtype: DType) -> NoReturn:
    if dtype is DType.I1:
        _refuse(
            "the shape of what truth values choose is not known before the program runs",
            "write mind_mlir.numpy.where(condition, x, 0), and sums over that",
        )
    _refuse(f"an array of {dtype.core_name} is no index", "convert it: indices.astype('i64')")


def _is_basic(item: Any) -> bool:
    return item is None or isinstance(item, (int, slice))


def _rank(item: Any) -> int:
    return int(item.ndim)


def _bounds(item: slice, extent: int) -> tuple[int, int, int]:
    for bound in (item.start, item.stop, item.step):
        if isinstance(bound, TracedValue):
            _refuse(
                "the extent of a slice between traced bounds is not known before the program runs",
                "write mind_mlir.numpy.dynamic_slice(x, start, sizes), whose sizes are plain numbers",
            )
        if bound is not None and border.whole(bound) is None:
            _refuse(f"{border.describe(bound)} is no bound of a slice", "bounds are integers")
    if item.step is not None and border.whole(item.step) == 0:
        _refuse("the step of a slice is 0", "give a step that goes on, or back")
    return item.indices(extent)


def _position(index: int, extent: int) -> int:
    if not -extent <= index < extent:
        _refuse(
            f"index {index} is out of bounds for an axis of extent {extent}",
            f"indices are {-extent} to {extent - 1}",
        )
    return index % extent


def _read(trace: Trace, value: Value, found: Plan) -> Value:
    """Return the elements of ``value`` at places that are known when the program runs."""
    axes = [axis for axis, _ in found.arrays]
    indices = broadcast(trace, *[as_value(trace, item) for _, item in found.arrays])
    shape, rank = indices[0].shape, value.type.rank
    others = [axis for axis in range(rank) if axis not in axes]
    order = [*axes, *others]
    if order != list(range(rank)):
        value = trace.emit("Transpose", value, permutation=order).value
    value = trace.emit("Gather", value, indices[0]).value
    for index in indices[1:]:
        value = _pick(trace, value, index)
    # The extents of the indices come first now; they belong where their axes are.
    before = 0 if found.in_front else axes[0]
    if not before:
        return value
    count = len(shape)
    places = [*range(count, count + before), *range(count), *range(count + before, value.type.rank)]
    return trace.emit("Transpose", value, permutation=places).value if count else value


def _pick(trace: Trace, value: Value, index: Value) -> Value:
    """Return of each part of ``value``, as many as there are indices, the part at its index."""
    count = index.type.rank
    extent, rest = value.shape[count], value.shape[count + 1 :]
    index_array = trace.wrap(index)
    counted = choose(index_array < 0, index_array + extent, index_array)
    places = reshaped(trace, trace.value(counted), [*index.shape, 1, *[1] * len(rest)])
    places = broadcast_to(trace, places, (*index.shape, 1, *rest))
    picked = trace.emit("GatherElements", value, places, axis=count).value
    return trace.emit("Squeeze", picked, axes=[count]).value
