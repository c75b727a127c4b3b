"""Where the elements of tensors lie: those that are windows of others, and strides in memory."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Window:
    """A tensor whose element ``i`` is element ``i + first`` of ``source``, and ``margin`` outside of that.

    Attributes:
        source: Another tensor.
        first: Where the window begins in each dimension; below 0, in the margin.
        margin: A number; None where the window lies within the tensor.
    """

    source: Value
    first: tuple[int, ...]
    margin: Value | None

    def access(self, access: Access) -> Access:
        """Return how ``source`` is indexed where the window is by ``access``."""
        pairs = zip(access, self.first, strict=True)
        return tuple(Linear(index.terms, index.constant + first) for index, first in pairs)


def padding_of(value: Value) -> Window | None:
    """Return ``value`` as a window that a `tensor.pad` makes."""
    op = definition(value)
    if op is None or op.name != "tensor.pad":
        return None
    low, yielded = static_numbers(op, "static_low"), op.regions[0].blocks[0].operations[0].operation
    if low is None or yielded.name != "tensor.yield":
        return None
    return Window(op.operands[0], tuple(-each for each in low), yielded.operands[0])


def window_of(value: Value) -> Window | None:
    """Return ``value`` as a window that a `tensor.extract_slice`, and a `tensor.pad` of it, make."""
    padding = padding_of(value)
    op = definition(value if padding is None else padding.source)
    offsets = slice_of(op)
    if op is None or offsets is None:
        return padding
    if padding is None:
        return Window(op.operands[0], offsets, None)
    first = tuple(place + offset for place, offset in zip(padding.first, offsets, strict=True))
    return Window(op.operands[0], first, padding.margin)


def slice_of(op: Operation | None) -> tuple[int, ...] | None:
    """Return where ``op`` begins if it is a `tensor.extract_slice` of consecutive elements."""
    if op is None or op.name != "tensor.extract_slice":
        return None
    offsets, strides = static_numbers(op, "static_offsets"), static_numbers(op, "static_strides")
    if offsets is None or strides is None or {*strides} - {1}:
        return None
    same_rank = ir.RankedTensorType(op.results[0].type).rank == len(offsets)
    return offsets if same_rank and len(op.operands) == 1 else None


def static_numbers(op: Operation, name: str) -> tuple[int, ...] | None:
    """Return the numbers that attribute ``name`` of ``op`` lists; None if some are known at run time only."""
    numbers = tuple(ir.DenseI64ArrayAttr(op.attributes[name]))
    return None if ir.ShapedType.get_dynamic_stride_or_offset() in numbers else numbers


def reach(access: Access, extents: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return the least and the greatest number that each index takes in loops of ``extents``."""
    return tuple(
        (index.constant, index.constant + sum(factor * (extents[dim] - 1) for dim, factor in index.terms))
        for index in access
    )


def overlap(accesses: list[Access], dim: int) -> bool:
    """Return whether two of ``accesses`` to a tensor reach the same elements in iterations of ``dim``."""
    return any(_apart(left, right, dim) for left, right in itertools.pairwise(sorted(accesses, key=_order)))


def _order(access: Access) -> tuple[int, ...]:
    return tuple(index.constant for index in access)


def _apart(left: Access, right: Access, dim: int) -> bool:
    if [index.terms for index in left] != [index.terms for index in right]:
        return False
    moved = [(a, b) for a, b in zip(left, right, strict=True) if a.constant != b.constant]
    return len(moved) == 1 and moved[0][0].terms == ((dim, 1),)


Strides = tuple[int, ...]


def strides_of(value: Value) -> Strides:
    """Return the strides in elements of the memory that ``value`` is, or of that which it will be.

    A tensor becomes a buffer of its own, row by row, but for slices and their reshapes: these are views.
    No element is reached along a dimension of one: what it says is what it would be in a row-major buffer.
    """
    type_ = value.type
    if isinstance(type_, ir.MemRefType):
        return _as_rows(type_.shape, type_.get_strides_and_offset()[0])
    op = definition(value)
    found = None
    if op is not None and op.name in _VIEWS:
        found = _VIEWS[op.name](op, list(type_.shape), strides_of(op.operands[0]))
    return contiguous_strides(type_.shape) if found is None else _as_rows(type_.shape, found)


def _as_rows(shape: Sequence[int], strides: Sequence[int]) -> Strides:
    """Return ``strides``, in which those of dimensions of one follow from the dimension after them."""
    found: list[int] = []
    span = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        found.append(span if extent == 1 else stride)
        span = found[-1] * extent
    return tuple(reversed(found))


def contiguous_strides(shape: Sequence[int]) -> Strides:
    """Return the strides in elements of a row-major buffer."""
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))


def has_dense_rows(value: Value) -> bool:
    """Return whether the elements of ``value`` along its last dimension lie side by side."""
    live = [step for step, extent in zip(strides_of(value), value.type.shape, strict=True) if extent != 1]
    return live[-1:] in ([], [1])


def _sliced(op: Operation, shape: list[int], strides: Strides) -> Strides | None:
    steps, sizes = static_numbers(op, "static_strides"), static_numbers(op, "static_sizes")
    if steps is None or sizes is None:
        return None
    moved = [stride * step for stride, step in zip(strides, steps, strict=True)]
    kept: list[int] = []
    for stride, size in zip(moved, sizes, strict=True):  # dimensions of one may be left out
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(stride)
    return tuple(kept)


def _expanded(op: Operation, shape: list[int], strides: Strides) -> Strides | None:
    found: list[int] = []
    for run, stride in zip(reassociation(op), strides, strict=True):
        found += [stride * each for each in contiguous_strides([shape[axis] for axis in run])]
    return tuple(found) if strides else None  # of a tensor of rank 0, each dimension is of one


def _collapsed(op: Operation, _: list[int], strides: Strides) -> Strides | None:
    """Return None where what is collapsed does not lie together, so that it is copied."""
    shape = op.operands[0].type.shape
    found: list[int] = []
    for run in reassociation(op):
        step = whole = None
        for axis in reversed(run):
            if shape[axis] == 1:
                continue
            if whole is not None and strides[axis] != whole:
                return None
            step = strides[axis] if step is None else step
            whole = strides[axis] * shape[axis]
        found.append(1 if step is None else step)
    return tuple(found)


def reassociation(op: Operation) -> list[list[int]]:
    """Return which dimensions of the longer shape of a reshape each of the shorter one is."""
    return [[int(each) for each in group] for group in ir.ArrayAttr(op.attributes["reassociation"])]


_VIEWS = {
    "tensor.collapse_shape": _collapsed,
    "tensor.expand_shape": _expanded,
    "tensor.extract_slice": _sliced,
}
