"""Marked products on memory that are computed together, as their marks say and memory allows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import SCHEDULE_ATTRIBUTE
from mind_mlir.lowering.schedule.emission.emitter import TOGETHER_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import VIEWS, root_of
from mind_mlir.mlir.values import attributes_of, definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.mlir.bindings import Block, Operation, Value

#: What accesses no memory, so that it may stand between products.
_BETWEEN = (*VIEWS, "arith.constant", "memref.alloc", "memref.get_global")


def runs_together(marked: Sequence[Operation]) -> list[list[Operation]]:
    """Return ``marked`` products in runs, each of which is computed together where its last one stands.

    The products of a run have the same mark, nothing between them that accesses memory, and none writes what
    another one reads or writes.
    """
    runs: list[list[Operation]] = []
    followed: dict[Operation, bool] = {}
    for block in dict.fromkeys(op.operation.block for op in marked if TOGETHER_ATTRIBUTE in op.attributes):
        followed |= _followers(block)
    for each in marked:
        op = each.operation
        if followed.get(op) and runs and _goes_with(op, runs[-1]):
            runs[-1].append(op)
        else:
            runs.append([op])
    return runs


def _followers(block: Block) -> dict[Operation, bool]:
    """Return which products of ``block`` stand right behind one with the same mark."""
    found: dict[Operation, bool] = {}
    mark: int | None = None
    for each in block.operations:
        op = each.operation
        if op.name == "linalg.generic" and SCHEDULE_ATTRIBUTE in op.attributes:
            own = together(op)
            found[op] = own is not None and own == mark
            mark = own
        elif op.name not in _BETWEEN:
            mark = None
    return found


def _goes_with(op: Operation, run: Sequence[Operation]) -> bool:
    roots = [[root_of(value) for value in each.operands] for each in (*run, op)]
    if any(root is None for each in roots for root in each):
        return False
    *before, (left, right, out) = roots
    return all(mine not in (left, right, out) and out not in inputs for *inputs, mine in before)


def together(op: Operation) -> int | None:
    """Return the number of the products, or parallel loops, that ``op`` may be one with, if any."""
    mark = op.attributes.get(TOGETHER_ATTRIBUTE)
    return None if mark is None else int(ir.IntegerAttr(mark).value)


def same_memory(value: Value) -> object:
    """Return something that is equal for two views of the same elements of a buffer."""
    op = definition(value)
    if op is None or op.name not in VIEWS:
        return value
    sources = tuple(same_memory(operand) for operand in op.operands)
    return op.name, value.type, attributes_of(op), sources


class LoopNumbers:
    """Numbers for the parallel loops of a module that may be one."""

    def __init__(self) -> None:
        self._next = 0

    @contextmanager
    def next_of(self, emitter: Emitter, products: int) -> Iterator[None]:
        """Mark the parallel loops that ``emitter`` emits meanwhile for ``products``, if these are several."""
        if products > 1:
            emitter.together = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self._next)
            self._next += 1
        try:
            yield
        finally:
            emitter.together = None
