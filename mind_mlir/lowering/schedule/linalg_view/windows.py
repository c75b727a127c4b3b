"""Tensors that are windows of another one, with margins around it perhaps."""

from __future__ import annotations

import dataclasses
import itertools

from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition


@dataclasses.dataclass(frozen=True)
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


def window_of(value: Value) -> Window | None:
    """Return ``value`` as a window that a `tensor.extract_slice`, and a `tensor.pad` of it, make."""
    op = definition(value)
    if op is None or op.name not in ("tensor.pad", "tensor.extract_slice"):
        return None
    first, margin = (0,) * ir.RankedTensorType(value.type).rank, None
    if op.name == "tensor.pad":
        low, yielded = static_numbers(op, "static_low"), op.regions[0].blocks[0].operations[0].operation
        if low is None or yielded.name != "tensor.yield":
            return None
        first, margin = tuple(-each for each in low), yielded.operands[0]
        value = op.operands[0]
        op = definition(value)
    offsets = slice_of(op) if op is not None and op.name == "tensor.extract_slice" else None
    if op is None or offsets is None:
        return None if margin is None else Window(value, first, margin)
    first = tuple(place + offset for place, offset in zip(first, offsets, strict=True))
    return Window(op.operands[0], first, margin)


def slice_of(op: Operation) -> tuple[int, ...] | None:
    """Return where a `tensor.extract_slice` of consecutive elements begins; None if it is another one."""
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
