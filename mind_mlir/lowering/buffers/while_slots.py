"""`scf.while` in the form that bufferizes in place: every carried tensor at one position everywhere.

The tensors that the condition region takes, and those that it hands on, become one list of slots. A slot has
the same number among the operands, the arguments of both regions and the results; its buffer lives as long as
the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.buffers.destination import is_tensor
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Block, Operation, Type, Value


class _Slot(NamedTuple):
    """A carried tensor: its number among the arguments of each region, or None where it is new."""

    before: int | None
    after: int | None


def align_slots(loop: Operation) -> tuple[Operation, int]:
    """Replace the `scf.while` operation ``loop`` by one that starts all its lists with its tensor slots.

    Returns:
        The new loop, and how many slots it has.
    """
    before, after = (region.blocks[0] for region in loop.regions)
    slots = _slots(before, after)
    types = [
        before.arguments[slot.before].type if slot.before is not None else after.arguments[slot.after].type
        for slot in slots
    ]
    first = [slot.before for slot in slots] + _scalars(before)
    second = [slot.after for slot in slots] + _scalars(after)
    with loop.location:
        with ir.InsertionPoint(loop):
            operands = [
                loop.operands[number] if number is not None else _empty(type_)
                for number, type_ in zip(first, [*types, *first], strict=False)
            ]
            results = [*types, *(after.arguments[number].type for number in _scalars(after))]
            new = ir.Operation.create("scf.while", results, operands, regions=2)
        first_arguments = _rearrange(before, first, types)
        second_arguments = _rearrange(after, second, types)
        condition, terminator = _terminator(before), _terminator(after)
        with ir.InsertionPoint(condition):
            flag, *forwarded = condition.operands
            ir.Operation.create("scf.condition", [], [flag, *_select(forwarded, second, first_arguments)])
        with ir.InsertionPoint(terminator):
            yielded = list(terminator.operands)
            ir.Operation.create("scf.yield", [], _select(yielded, first, second_arguments))
    condition.erase()
    terminator.erase()
    for block, region in ((before, new.regions[0]), (after, new.regions[1])):
        block.append_to(region)
    for position, number in enumerate(second):
        if number is not None:
            loop.results[number].replace_all_uses_with(new.results[position])
    loop.erase()
    return new, len(slots)


def _slots(before: Block, after: Block) -> list[_Slot]:
    """Pair each tensor argument of ``before`` with the argument of ``after`` that can share its buffer."""
    forwarded = list(_terminator(before).operands)[1:]
    yielded = list(_terminator(after).operands)
    free = [number for number, argument in enumerate(after.arguments) if is_tensor(argument.type)]
    slots = []
    for number, argument in enumerate(before.arguments):
        if not is_tensor(argument.type):
            continue
        handed_on = [k for k in free if forwarded[k] == argument]
        handed_back = [k for k in free if yielded[number] == after.arguments[k]]
        partner = next(iter(handed_on + handed_back), None)
        if partner is not None:
            free.remove(partner)
        slots.append(_Slot(number, partner))
    return slots + [_Slot(None, number) for number in free]


def _scalars(block: Block) -> list[int]:
    return [number for number, argument in enumerate(block.arguments) if not is_tensor(argument.type)]


def _terminator(block: Block) -> Operation:
    return block.operations[len(block.operations) - 1].operation


def _empty(type_: Type) -> Value:
    return ir.Operation.create("tensor.empty", [type_], []).result


def _rearrange(block: Block, numbers: Sequence[int | None], types: Sequence[Type]) -> list[Value]:
    """Give ``block`` its arguments ``numbers`` in this order; None is a new one, of the type there."""
    old = list(block.arguments)
    new = []
    for position, number in enumerate(numbers):
        type_ = types[position] if number is None else old[number].type
        new.append(block.add_argument(type_, ir.Location.unknown()))
        if number is not None:
            old[number].replace_all_uses_with(new[-1])
    for number in reversed(range(len(old))):
        block.erase_argument(number)
    return list(block.arguments)


def _select(values: Sequence[Value], numbers: Sequence[int | None], passed: Sequence[Value]) -> list[Value]:
    """Return the ``values`` with ``numbers``; for None, the slot's own argument is passed through."""
    return [passed[position] if number is None else values[number] for position, number in enumerate(numbers)]
