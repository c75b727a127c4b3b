"""Margins of tensors that a loop pads in each iteration, written once before it.

A padded tensor is a fill, and an insertion into it. The insertion covers the same elements every time, so
what is around them is the same in each iteration: the loop carries the padded tensor, and the next iteration
inserts into that.
"""

from __future__ import annotations

from typing import NamedTuple

from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES, end_of
from mind_mlir.mlir.bindings import Block, Operation, Value, ir, scf
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition


class _Padded(NamedTuple):
    """A tensor that is padded with a constant."""

    fill: Operation
    insertion: Operation


def carry_margins(function: Operation) -> None:
    """Let the loops of ``function`` fill what they pad once, before they run.

    Args:
        function: A function of linalg operations on tensors of static shape; it is changed in place.
    """
    for loop in find_all(function, scf.ForOp, scf.WhileOp):
        found = [(number, _padded(region.blocks[0])) for number, region in enumerate(loop.regions)]
        for number, padded in found:
            if padded:
                _carry(loop, number, padded)
                break  # the loop is another one now; who pads in both regions does so in the longer one


def _padded(block: Block) -> list[_Padded]:
    found = []
    for operation in block.operations:
        op = operation.operation
        insertion = _insertion(op) if op.name == "linalg.fill" else None
        if insertion is not None:
            found.append(_Padded(op, insertion))
    return found


def _insertion(fill: Operation) -> Operation | None:
    """Return the operation that inserts into ``fill``, if nothing else is done with it; or None."""
    empty, number = definition(fill.operands[1]), definition(fill.operands[0])
    if empty is None or empty.name != "tensor.empty" or number is None or number.name != "arith.constant":
        return None
    found = None
    for use in fill.results[0].uses:
        user = use.owner.operation
        if user.name == "tensor.insert_slice" and use.operand_number == 1 and found is None:
            found = user
        elif user.name != "tensor.extract_slice" or not _is_overwritten(user):
            return None
    if found is None or found.block != fill.block or len(found.operands) > 2:
        return None
    return found if _is_read(found.results[0]) else None


def _is_overwritten(window: Operation) -> bool:
    """Return whether ``window`` is where an operation puts what it moves, so that nothing reads it before."""
    uses = list(window.results[0].uses)
    return all(use.owner.operation.name == "linalg.copy" and use.operand_number == 1 for use in uses)


def _is_read(padded: Value) -> bool:
    """Return whether ``padded`` is read, and nothing else is done with it: nobody else wants to write it."""
    for use in padded.uses:
        user = use.owner.operation
        if user.name in RESHAPES:
            if not _is_read(user.results[0]):
                return False
        elif user.name.startswith("linalg."):
            if use.operand_number >= len(user.operands) - len(user.results):
                return False
        elif user.name != "tensor.extract_slice":
            return False
    return True


def _carry(loop: Operation, number: int, padded: list[_Padded]) -> None:
    """Replace ``loop`` by one that carries what region ``number`` of it has ``padded``."""
    types = [each.fill.results[0].type for each in padded]
    kept = len(loop.results)
    with ir.InsertionPoint(loop):
        filled = [_before(each.fill) for each in padded]
        new = ir.Operation.create(
            loop.name,
            [*(result.type for result in loop.results), *types],
            [*loop.operands, *filled],
            regions=len(loop.regions),
            loc=loop.location,
        )
    blocks = [region.blocks[0] for region in loop.regions]
    arguments = [[block.add_argument(type_, loop.location) for type_ in types] for block in blocks]
    for position, block in enumerate(blocks):
        handed_on = arguments[position]
        if position == number:
            for each, argument in zip(padded, handed_on, strict=True):
                each.fill.results[0].replace_all_uses_with(argument)
                each.fill.erase()
            handed_on = [each.insertion.results[0] for each in padded]
        _hand_on(block, handed_on)
    for block, region in zip(blocks, new.regions, strict=True):
        block.append_to(region)
    for result, other in zip(loop.results, list(new.results)[:kept], strict=True):
        result.replace_all_uses_with(other)
    loop.erase()


def _before(fill: Operation) -> Value:
    """Emit what ``fill`` is, here."""
    with fill.location:
        number, empty = (definition(operand).clone() for operand in fill.operands)  # type: ignore[union-attr]  # both are results
        new = fill.clone()
        new.operands[0], new.operands[1] = number.operation.result, empty.operation.result
    return new.operation.result


def _hand_on(block: Block, values: list[Value]) -> None:
    """Let the terminator of ``block`` hand on ``values``, too."""
    old = end_of(block)
    with ir.InsertionPoint(old), old.location:
        ir.Operation.create(old.name, [], [*old.operands, *values])
    old.erase()
