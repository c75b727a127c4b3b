"""Margins of tensors that a loop pads in each iteration, written once before it.

A padded tensor is a fill, and an insertion into it. The insertion covers the same elements every time, so
what is around them is the same in each iteration: the loop carries the padded tensor, and the next iteration
inserts into that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES
from mind_mlir.mlir.bindings import Operation, Value, ir, scf
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition, end_with, is_result_of, terminator_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def carry_margins(function: Operation) -> None:
    """Let the loops of ``function`` fill what they pad once, before they run.

    Args:
        function: A function of linalg operations on tensors of static shape; it is changed in place.
    """
    for loop in find_all(function, scf.ForOp, scf.WhileOp):
        for number, region in enumerate(loop.regions):
            ops = [operation.operation for operation in region.blocks[0].operations]
            pairs = [(op, _insertion(op)) for op in ops if op.name == "linalg.fill"]
            padded = [(fill, insertion) for fill, insertion in pairs if insertion is not None]
            if padded:
                _carry(loop, number, padded)
                break  # the loop is another one now; who pads in both regions does so in the longer one


def _insertion(fill: Operation) -> Operation | None:
    """Return the operation that inserts into ``fill``, if nothing else is done with it; or None."""
    number, empty = fill.operands
    if not is_result_of(empty, "tensor.empty") or not is_result_of(number, "arith.constant"):
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


def _carry(loop: Operation, number: int, padded: Sequence[tuple[Operation, Operation]]) -> None:
    """Replace ``loop`` by one that carries what region ``number`` has ``padded``: fills, and what inserts."""
    types = [fill.results[0].type for fill, _ in padded]
    with ir.InsertionPoint(loop):
        filled = [_before(fill) for fill, _ in padded]
        new = ir.Operation.create(
            loop.name,
            [*(result.type for result in loop.results), *types],
            [*loop.operands, *filled],
            regions=len(loop.regions),
            loc=loop.location,
        )
    blocks = [region.blocks[0] for region in loop.regions]
    arguments = [[block.add_argument(type_, loop.location) for type_ in types] for block in blocks]
    for (fill, _), argument in zip(padded, arguments[number], strict=True):
        fill.results[0].replace_all_uses_with(argument)
        fill.erase()
    handed_on = {number: [insertion.results[0] for _, insertion in padded]}
    for position, block in enumerate(blocks):
        end_with(block, [*terminator_of(block).operands, *handed_on.get(position, arguments[position])])
    for block, region in zip(blocks, new.regions, strict=True):
        block.append_to(region)
    for result, other in zip(loop.results, new.results, strict=False):  # those that it had before
        result.replace_all_uses_with(other)
    loop.erase()


def _before(fill: Operation) -> Value:
    """Emit what ``fill`` is, here."""
    with fill.location:
        number, empty = (definition(operand).clone() for operand in fill.operands)  # type: ignore[union-attr]  # both are results
        new = fill.clone()
        new.operands[0], new.operands[1] = number.operation.result, empty.operation.result
    return new.operation.result
