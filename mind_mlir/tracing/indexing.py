"""``x[...]`` of traced arrays, as numpy has it.

Integers, slices, ``None`` and an ellipsis are known when the program is made: that is a `Slice`, and a
reshape. Integer arrays and traced integers are read when it runs, all of them by one operation, which reads
what the result holds and nothing else; each that counts from the end, or is outside of its axis, is what it
is for `Gather` (E6001). Truth values that are known now are the places where they are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tracing.conversion import as_array, as_value
from mind_mlir.tracing.operators import broadcast, broadcast_to
from mind_mlir.tracing.places import refuse
from mind_mlir.tracing.trace import Trace, current_trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray

_INDICES = (DType.SI32, DType.SI64)
#: The greatest i64.
_MOST = 2**63 - 1


@dataclass(slots=True)
class IndexingPlan:
    """The effect of an index, axis by axis.

    Attributes:
        starts: Of each axis of the array, what a `Slice` of it begins with.
        ends: What it ends before.
        steps: Its steps.
        shape: The extents after that without the axes of integers, and with new ones.
        axes: Of each of these, the axis of the array that it is of; None for a new one.
        arrays: What is read along axes of that shape: the axis, and the integers.
        in_front: Whether the extents of integer arrays come first, for numpy has them apart from one another.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    axes: list[int | None] = field(default_factory=list)
    arrays: list[tuple[int, Any]] = field(default_factory=list)
    in_front: bool = False

    @property
    def others(self) -> list[int]:
        """Return the axes of `shape` that no integers are read along."""
        read = [place for place, _ in self.arrays]
        return [place for place in range(len(self.shape)) if place not in read]

    @property
    def before(self) -> int:
        """Return how many of the `others` come before the extents of integer arrays."""
        return 0 if self.in_front or not self.arrays else self.arrays[0][0]


def get(array: TracedArray, index: Any) -> TracedArray:
    """Return ``array[index]`` (E2306: it is no index of that array)."""
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


def plan(shape: tuple[int, ...], index: Any) -> IndexingPlan:
    """Return what ``index`` does to an array of ``shape``."""
    return _planned(shape, expanded(len(shape), index))


def expanded(rank: int, index: Any) -> list[Any]:
    """Return the parts of an index of an array of ``rank``, with slices for what it leaves out."""
    items = [_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    given = sum(_count(item) for item in items)
    if given > rank:
        _refuse(f"there are {given} indices of an array of rank {rank}", "give one for each dimension")
    if sum(item is Ellipsis for item in items) > 1:
        _refuse("there are two ellipses in an index", "give one: it stands for all dimensions that are left")
    if Ellipsis not in [item for item in items if item is Ellipsis]:
        items.append(Ellipsis)
    place = next(at for at, item in enumerate(items) if item is Ellipsis)
    items[place : place + 1] = [slice(None)] * (rank - given)
    return items


def is_mask(item: Any) -> bool:
    """Return whether a part of an index are truth values that are known when the program runs."""
    return isinstance(item, TracedValue) and item.value.type.dtype is DType.I1


def _count(item: Any) -> int:
    """Return how many dimensions a part of an index is of."""
    if item is None or item is Ellipsis:
        return 0
    has_truth = is_mask(item) or (isinstance(item, np.ndarray) and item.dtype.kind == "b")
    return _rank(item) if has_truth else 1


def _planned(shape: tuple[int, ...], items: list[Any]) -> IndexingPlan:
    found = IndexingPlan()
    items = _without_masks(shape, items)
    has_array = any(not _is_basic(item) and _rank(item) > 0 for item in items)
    advanced: list[int] = []
    axis = 0
    for place, item in enumerate(items):
        if item is None:
            found.shape.append(1)
            found.axes.append(None)
            continue
        extent = shape[axis]
        if isinstance(item, slice):
            start, end, step = _bounds(item, extent)
            count = len(range(start, end, step))
            if not count:  # a start or an end of -1 is no place
                start, end, step = 0, 0, 1
            # Down to the first element is spelled with an end that is beyond it.
            ends = end if step > 0 or end >= 0 else -(extent + 1)
            found.shape.append(count)
            found.axes.append(axis)
        elif isinstance(item, int):
            start, ends, step = _position(item, extent), 0, 1
            ends = start + 1
            advanced.append(place)
        else:
            start, ends, step = 0, extent, 1
            found.arrays.append((len(found.shape), item))
            found.shape.append(extent)
            found.axes.append(axis)
            advanced.append(place)
        axis += 1
        found.starts.append(start)
        found.ends.append(ends)
        found.steps.append(step)
    if has_array:
        found.in_front = advanced != list(range(advanced[0], advanced[0] + len(advanced)))
    return found


def _without_masks(shape: tuple[int, ...], items: list[Any]) -> list[Any]:
    """Return the parts of an index with integers in the place of truth values."""
    made: list[Any] = []
    axis = 0
    for item in items:
        if is_mask(item):
            _refuse_mask()
        if isinstance(item, np.ndarray) and item.dtype.kind == "b":
            check_mask(item.shape, shape[axis : axis + item.ndim])
            made += np.nonzero(item)
        else:
            made.append(item)
        axis += _count(item)
    return made


def check_mask(found: tuple[int, ...], extents: tuple[int, ...]) -> None:
    """Refuse truth values of a shape that is not that of the dimensions that they choose in."""
    if found != extents or not found:
        _refuse(
            f"truth values of shape {list(found)} choose in dimensions of extents {list(extents)}",
            "give one for each element: those of a comparison with the array itself",
        )


def _item(item: Any) -> Any:
    """Return a part of an index: None, an ellipsis, a slice, a plain integer, a traced value or an array."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, TracedValue):
        return item if item.value.type.dtype is DType.I1 else as_places(item)
    if isinstance(item, (bool, np.bool_)):
        _refuse("a truth value is no index", "indices are integers, slices and integer arrays")
    whole = argument_checks.whole(item)
    if whole is not None:
        return whole
    if isinstance(item, (str, bytes, float, complex)):
        _refuse(
            f"{argument_checks.describe(item)} is no index", "indices are integers, slices and integer arrays"
        )
    array = np.zeros(0, np.int64) if isinstance(item, (list, tuple)) and not item else as_array(item)
    if array.dtype.kind not in "iub":
        _refuse(f"an array of {array.dtype} is no index", "convert it: indices.astype('i64')")
    if array.dtype.kind == "b" or array.dtype in (np.int32, np.int64):
        return array
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(_MOST))
    return array.astype(np.int64)


def as_places(item: TracedValue) -> TracedArray:
    """Return integers of any dtype as ones of i32 or i64; what these do not hold is outside of any axis."""
    trace = current_trace()
    value = trace.value(item)
    dtype = value.type.dtype
    if dtype in _INDICES:
        return trace.wrap(value, weak=item.weak)
    if not dtype.is_integer or not trace.promotes:
        _refuse(f"an array of {dtype.core_name} is no index", "convert it: indices.astype('i64')")
    if value.type.dtype is DType.UI64:
        most = as_value(trace, _MOST, DType.UI64)
        value = trace.emit("Minimum", value, most).value
    return trace.emit("Cast", value, dtype=DType.SI64)


def _refuse(message: str, help: str) -> NoReturn:
    refuse("E2306", message, help)


def _refuse_mask() -> NoReturn:
    _refuse(
        "the shape of what truth values choose is not known before the program runs",
        "write mind_mlir.numpy.where(condition, x, 0), and sums over that; x.at[condition].set(y) changes "
        "what they choose",
    )


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
        if bound is not None and argument_checks.whole(bound) is None:
            _refuse(f"{argument_checks.describe(bound)} is no bound of a slice", "bounds are integers")
    if item.step is not None and argument_checks.whole(item.step) == 0:
        _refuse("the step of a slice is 0", "give a step that goes on, or back")
    return item.indices(extent)


def _position(index: int, extent: int) -> int:
    if not -extent <= index < extent:
        _refuse(
            f"index {index} is out of bounds for an axis of extent {extent}",
            f"indices are {-extent} to {extent - 1}",
        )
    return index % extent


def _read(trace: Trace, value: Value, found: IndexingPlan) -> Value:
    """Return the elements of ``value`` at places that are known when the program runs."""
    axes = [axis for axis, _ in found.arrays]
    indices = index_arrays(trace, found)
    shape, rank = indices[0].shape, len(indices[0].shape)
    sizes = [1 if axis in axes else extent for axis, extent in enumerate(value.shape)]
    kept = [extent for axis, extent in enumerate(value.shape) if axis not in axes]
    result = [*kept[: found.before], *shape, *kept[found.before :]]
    if 0 in [value.shape[axis] for axis in axes]:
        return _nothing(trace, value, shape, result)
    if axes == [0]:
        return trace.emit("Gather", value, indices[0]).value
    windows = [*range(found.before), *range(found.before + rank, len(result))]
    return trace.emit(
        "GatherWindows",
        value,
        index_vectors(trace, indices),
        offset_dims=windows,
        collapsed_slice_dims=axes,
        start_index_map=axes,
        index_vector_dim=0 if len(axes) > 1 else rank,
        slice_sizes=sizes,
        checked=True,
    ).value


def _nothing(trace: Trace, value: Value, shape: tuple[int, ...], result: list[int]) -> Value:
    """Return what an empty axis holds at no places."""
    if 0 not in shape:
        _refuse("an axis of extent 0 is indexed", "give no indices for it, or an array that has elements")
    return broadcast_to(trace, as_value(trace, False, value.type.dtype), tuple(result))


def index_arrays(trace: Trace, found: IndexingPlan) -> list[Value]:
    """Return the integers of all axes that are read along, of one shape."""
    return broadcast(trace, *[as_value(trace, item) for _, item in found.arrays])


def index_vectors(trace: Trace, numbers: Sequence[Value]) -> Value:
    """Return numbers of one shape as vectors, which lie along the first axis; one alone as it is."""
    if len(numbers) == 1:
        return numbers[0]
    parts = [as_value(trace, trace.wrap(number), DType.SI64) for number in numbers]
    parts = [trace.emit("ExpandDims", part, axes=[0]).value for part in parts]
    return trace.emit("Concat", *parts, axis=0).value
