"""Results of a loop's iteration that may overwrite what the iteration was given.

A value that a loop carries lies in one buffer. Where a group reads it element by element, nothing needs it
any more afterwards and a result takes its place in the next iteration, the result is written over it: then
there is neither a second buffer nor a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.group import is_identity

if TYPE_CHECKING:
    from collections.abc import Container

    from mind_mlir.bindings import Block, Operation, Value
    from mind_mlir.lowering.schedule.fusion.group import Group


def overwritten(group: Group, result: Value, pending: Container[Value]) -> Value | None:
    """Return the value of a loop that ``result`` of a member of ``group`` may be written over, or None.

    Args:
        group: It is to be emitted in the place of its last member.
        result: One of its results, which is used outside of it.
        pending: Results of operations that stand in the block, but are emitted later.
    """
    if group.vector < 0:
        return None
    chain = [group.members[-1].op]
    value = result
    while True:
        terminator, position = _yielded(value, chain[-1].block)
        if terminator is None:
            return None
        parent = terminator.parent.operation
        if parent.name != "scf.if":
            break
        value = parent.results[position]
        if len(list(value.uses)) != 1:
            return None
        chain.append(parent)
    carried = _carried(parent, position)
    if carried is None or carried.type != result.type:
        return None
    return carried if _is_last_user(group, carried, chain, pending) else None


def _yielded(value: Value, block: Block) -> tuple[Operation | None, int]:
    """Return the `scf.yield` of ``block`` if it uses ``value``, and as which operand; None if it does not."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "scf.yield" and user.block == block:
            return user, use.operand_number
    return None, 0


def _carried(loop: Operation, position: int) -> Value | None:
    """Return the argument of the body of ``loop`` whose next value its `scf.yield` has at ``position``."""
    if loop.name == "scf.for":
        return loop.regions[0].blocks[0].arguments[position + 1]
    if loop.name != "scf.while":
        return None
    before, after = (region.blocks[0] for region in loop.regions)
    forwarded = list(_last(before).operands)[1:]
    numbers = [number for number, value in enumerate(forwarded) if value == before.arguments[position]]
    return after.arguments[numbers[0]] if len(numbers) == 1 else None


def _last(block: Block) -> Operation:
    return block.operations[len(block.operations) - 1].operation


def _is_last_user(group: Group, carried: Value, chain: list[Operation], pending: Container[Value]) -> bool:
    for use in carried.uses:
        user = use.owner.operation
        view = group.produced.get(user.results[0]) if len(user.results) else None
        if view is not None:
            number = use.operand_number
            if number >= len(view.inputs) or not is_identity(view.accesses[number], len(view.extents)):
                return False
        elif not _is_before(user, chain, pending):
            return False
    return True


def _is_before(user: Operation, chain: list[Operation], pending: Container[Value]) -> bool:
    """Return whether ``user`` has run, or does not run at all, when the first of ``chain`` runs.

    Args:
        user: An operation.
        chain: An operation, and those that it is inside of.
        pending: Results of operations that are emitted later than they stand.
    """
    blocks = [op.block for op in chain]
    op = user
    while op.block not in blocks:
        op = op.parent.operation
    around = chain[blocks.index(op.block)]
    if op == around:
        return True  # in the other branch
    return bool(op.is_before_in_block(around)) and not any(result in pending for result in op.results)
