"""Moves operations of a block before it is scheduled, so that what may be one nest is found to be one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import SHARED_BYTES
from mind_mlir.mlir.memory import bytes_of
from mind_mlir.mlir.values import is_result_of

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Attribute, Block, Operation, Value


def bring_together(block: Block) -> None:
    """Move reductions of a large tensor along the same axes together, and elements to where they are used.

    What a reduction has found, as a check of indices does, is then no reason to end its loops before that.
    """
    operations = [op.operation for op in block.operations]
    order = {op: number for number, op in enumerate(operations)}
    last: dict[tuple[Value, Attribute], Operation] = {}
    for op in filter(_reduces, operations):
        axes = op.attributes["dimensions" if op.name == "linalg.reduce" else "iterator_types"]
        before = last.get((op.operands[0], axes))
        if before is not None:
            _move_behind(before, op, order)
        last[op.operands[0], axes] = op
    for op in reversed(operations):
        if op.name == "tensor.extract" and len(op.operands) == 1:
            users = [use.owner.operation for use in op.results[0].uses]
            if users and all(user in order for user in users):
                op.move_before(min(users, key=order.__getitem__))


def _reduces(op: Operation) -> bool:
    """Return whether ``op`` reduces the elements of one large tensor alone, and starts from numbers."""
    if op.name not in ("linalg.generic", "linalg.reduce") or len(op.operands) != 1 + len(op.results):
        return False
    source, *inits = op.operands
    size = bytes_of(source)
    if size < SHARED_BYTES or any(bytes_of(init) >= size for init in inits):
        return False
    if not all(is_result_of(init, "linalg.fill") for init in inits):
        return False
    return all(is_result_of(value, *_MADE) for init in inits for value in init.owner.operands)


def _move_behind(there: Operation, op: Operation, order: dict[Operation, int]) -> None:
    """Move ``op`` behind an operation before it, with what it starts from, and note that in ``order``.

    What stands around the block is before all that is in it.
    """
    fills = [init.owner.operation for init in op.operands[1:]]
    needed = [value.owner.operation for fill in fills for value in fill.operands]
    place = order[there]
    for each in (*needed, *fills, op):
        if order.get(each, -1) > place:
            each.move_after(there)
            order[each], there = place, each


#: What a fill is of, where it may move: what needs nothing itself.
_MADE = ("tensor.empty", "arith.constant")
