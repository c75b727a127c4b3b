"""Results that may be written over what they are computed from, element by element.

A value that a loop carries lies in one buffer. Where a group reads it element by element, nothing needs it
any more afterwards and a result takes its place in the next iteration, the result is written over it: then
there is neither a second buffer nor a copy. So it is with an intermediate value that the group reads last.

Bufferization looks once more at what is written over, and copies it where something still reads it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.group import Group, is_identity
from mind_mlir.lowering.schedule.linalg_view.layout import static_numbers
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES, filler, unreshaped
from mind_mlir.mlir.values import definition, terminator_of

if TYPE_CHECKING:
    from collections.abc import Container

    from mind_mlir.mlir.bindings import Block, Operation, OpOperand, Value


#: Operations that compute a tensor in a buffer of its own, or of what dies there.
_COMPUTING = ("func.call", "scf.for", "tensor.insert_slice")
#: With more readers than these, bufferization is told that nothing writes a value (see `buffers.fan_out`).
_MANY = 16


def overwritten(
    group: Group, result: Value, pending: Container[Value], spared: Value | None = None
) -> Value | None:
    """Return the value that ``result`` of a member of ``group`` may be written over, or None.

    Args:
        group: It is to be emitted in the place of its last member.
        result: One of its results, which is used outside of it and is no reduction.
        pending: Results of operations that stand in the block, but are emitted later.
        spared: A value that is not to be overwritten, nor are views of it.
    """
    if group.vector < 0:
        return None
    found = _next_in_loop(group, result, pending)
    found = _part_replaced(group, result, pending) if found is None else found
    return found if found is not None else _read_last(group, result, pending, spared)


def _part_replaced(group: Group, result: Value, pending: Container[Value]) -> Value | None:
    """Return the part of a tensor that ``group`` reads and ``result`` alone takes the place of, or None."""
    uses = list(islice(result.uses, 2))
    insertion = uses[0].owner.operation
    last = group.members[-1].op
    if len(uses) > 1 or insertion.name != "tensor.insert_slice" or uses[0].operand_number != 0:
        return None
    if insertion.block != last.block or len(insertion.operands) > 2:
        return None
    whole, found = insertion.operands[1], None
    for use in whole.uses:
        user = use.owner.operation
        if user == insertion:
            continue
        if _takes_what(user, insertion) and _dies(group, user.results[0], last, pending):
            found = user.results[0]
        elif not _is_over(user, group, last, pending):
            return None
    return found


def _takes_what(part: Operation, insertion: Operation) -> bool:
    """Return whether ``part`` is a `tensor.extract_slice` of what ``insertion`` replaces."""
    if part.name != "tensor.extract_slice" or len(part.operands) > 1:
        return False
    names = ("static_offsets", "static_sizes", "static_strides")
    return all(static_numbers(part, name) == static_numbers(insertion, name) for name in names)


def _is_over(user: Operation, group: Group, last: Operation, pending: Container[Value]) -> bool:
    """Return whether ``user`` has run when ``group`` does, and what has read its result if it is a view."""
    if any(value in group.produced for value in user.results) or not _is_before(user, [last], pending):
        return False
    if user.name != "tensor.extract_slice" and user.name not in RESHAPES:
        return True
    readers = [use.owner.operation for use in islice(user.results[0].uses, _MANY + 1)]
    return len(readers) <= _MANY and all(_is_over(each, group, last, pending) for each in readers)


def _read_last(group: Group, result: Value, pending: Container[Value], spared: Value | None) -> Value | None:
    """Return an intermediate value like ``result`` that nothing but ``group`` still reads, or None."""
    last = group.members[-1].op
    for view in group.members:
        for value in view.inputs:
            if value.type != result.type or value in group.produced or filler(value) is not None:
                continue
            source = unreshaped(value)
            op = definition(source)
            if op is None or (spared is not None and source == spared):
                continue
            if not (op.name in _COMPUTING or op.name.startswith("linalg.")):
                continue
            if op.operation.block == last.block and _dies(group, source, last, pending):
                return value
    return None


def _dies(group: Group, value: Value, last: Operation, pending: Container[Value]) -> bool:
    """Return whether ``value`` is read by ``group``, element by element, and then by nothing any more."""
    if len(list(islice(value.uses, _MANY + 1))) > _MANY:
        return False
    for use in value.uses:
        user, reads_each = use.owner.operation, _reads_each(group, use)
        if reads_each is None and user.name in RESHAPES:
            reads_each = _dies(group, user.results[0], last, pending)
        elif reads_each is None:
            reads_each = user.block == last.block and _is_before(user, [last], pending)
        if not reads_each:
            return False
    return True


def _reads_each(group: Group, use: OpOperand) -> bool | None:
    """Return whether ``use`` is by elements, in the order of the loops; None for one outside of ``group``."""
    user, operand = use.owner.operation, use.operand_number
    view = group.produced.get(user.results[0]) if len(user.results) else None
    if view is None:
        return None
    return operand < len(view.inputs) and is_identity(view.accesses[operand], len(view.extents))


def _next_in_loop(group: Group, result: Value, pending: Container[Value]) -> Value | None:
    """Return the value of a loop whose next one ``result`` is and that it may be written over, or None."""
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
    carried = _carried(terminator, position)
    if carried is None or carried.type != result.type:
        return None
    carried = _with_parts_replaced(carried)
    return carried if _is_last_user(group, carried, chain, pending) else None


def _yielded(value: Value, block: Block) -> tuple[Operation | None, int]:
    """Return the terminator with which ``block`` hands ``value`` on, and its place there, or None.

    Parts of it may be replaced before.
    """
    for use in value.uses:
        user = use.owner.operation
        if user.name in ("scf.yield", "scf.condition") and user.block == block:
            return user, use.operand_number
        if user.name == "tensor.insert_slice" and use.operand_number == 1 and user.block == block:
            return _yielded(user.results[0], block)
    return None, 0


def _with_parts_replaced(value: Value) -> Value:
    """Return what ``value`` has become in its block, where parts of it are replaced one after the other."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "tensor.insert_slice" and use.operand_number == 1:
            return _with_parts_replaced(user.results[0])
    return value


def _carried(terminator: Operation, position: int) -> Value | None:
    """Return the value that operand ``position`` of ``terminator`` takes the place of in the next iteration.

    Where the condition of an `scf.while` computes the next value, and its body hands that on as it is, the
    condition is the whole iteration.
    """
    loop = terminator.parent.operation
    if loop.name == "scf.for":
        return loop.regions[0].blocks[0].arguments[position + 1]
    if loop.name != "scf.while":
        return None
    before, after = (region.blocks[0] for region in loop.regions)
    if terminator.name == "scf.condition":
        handed_on = after.arguments[position - 1]
        numbers = [number for number, value in enumerate(terminator_of(after).operands) if value == handed_on]
        alone = len(numbers) == 1 and len(list(islice(handed_on.uses, 2))) == 1
        return before.arguments[numbers[0]] if alone else None
    forwarded = list(terminator_of(before).operands)[1:]
    numbers = [number for number, value in enumerate(forwarded) if value == before.arguments[position]]
    return after.arguments[numbers[0]] if len(numbers) == 1 else None


def _is_last_user(group: Group, carried: Value, chain: list[Operation], pending: Container[Value]) -> bool:
    known = [(_reads_each(group, use), use.owner.operation) for use in carried.uses]
    return all(_is_before(user, chain, pending) if each is None else each for each, user in known)


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
