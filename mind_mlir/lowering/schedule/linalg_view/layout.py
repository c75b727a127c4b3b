"""The layout of tensors in memory: the one place that gives the strides of their dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.windows import static_numbers
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    for run, stride in zip(_runs(op), strides, strict=True):
        found += [stride * each for each in contiguous_strides([shape[axis] for axis in run])]
    return tuple(found) if strides else None  # of a tensor of rank 0, each dimension is of one


def _collapsed(op: Operation, _: list[int], strides: Strides) -> Strides | None:
    """Return None where what is collapsed does not lie together, so that it is copied."""
    shape = op.operands[0].type.shape
    found: list[int] = []
    for run in _runs(op):
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


def _runs(op: Operation) -> list[list[int]]:
    """Return which dimensions of the finer shape make up each one of the coarser."""
    return [
        [ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(run)] for run in op.attributes["reassociation"]
    ]


_VIEWS = {
    "tensor.collapse_shape": _collapsed,
    "tensor.expand_shape": _expanded,
    "tensor.extract_slice": _sliced,
}
