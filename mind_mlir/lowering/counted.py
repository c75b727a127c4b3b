"""Loops that count: `scf.while` as `scf.for`, where both run equally often whatever the numbers are.

A loop counts when its condition does nothing but compare one carried integer with a bound from outside, and
its body adds a constant to it. The counter must come to the bound without overflow: it does when it is
counted up by one to anything, or in larger steps, or up to and with the bound, where that is a constant far
enough from the greatest number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.functions.outlining import PROGRAM_LOOP_ATTRIBUTE
from mind_mlir.mlir.bindings import arith, ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Block, Operation, Value

_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL = (
    int(getattr(arith.CmpIPredicate, name)) for name in ("slt", "sle", "sgt", "sge")
)
#: What a comparison says with its operands exchanged.
_MIRRORED = {_GREATER: _LESS, _GREATER_EQUAL: _LESS_EQUAL}


class _Count(NamedTuple):
    """The counter of a loop.

    Attributes:
        number: Which of the values that it carries is the counter.
        bound: What the counter is compared with: a value from outside, or a constant.
        step: What is added in each iteration; positive.
        with_bound: Whether the body runs for the bound, too.
    """

    number: int
    bound: Value
    step: int
    with_bound: bool


def as_counted(loop: Operation) -> list[Value]:
    """Replace the `scf.while` operation ``loop`` by an `scf.for` if it counts; return its results."""
    count = _count(loop)
    if count is None:
        return list(loop.results)
    number = count.number
    others = [index for index in range(len(loop.results)) if index != number]
    start = loop.operands[number]
    with ir.InsertionPoint(loop), loop.location:
        bound = _outside(count.bound)
        step = _constant_of(start.type, count.step)
        if count.with_bound:
            bound = arith.AddIOp(bound, _constant_of(start.type, 1)).result
        new = ir.Operation.create(
            "scf.for",
            [loop.results[index].type for index in others],
            [start, bound, step, *(loop.operands[index] for index in others)],
            {PROGRAM_LOOP_ATTRIBUTE: ir.UnitAttr.get()},
            regions=1,
        )
        end = _end(start, bound, step, count.step)
    body = loop.regions[1].blocks[0]
    _rearrange(body, [number, *others])
    terminator = _last(body)
    with ir.InsertionPoint(terminator), terminator.location:
        ir.Operation.create("scf.yield", [], [terminator.operands[index] for index in others])
    advanced = terminator.operands[number].owner
    terminator.erase()
    if not any(True for _ in advanced.result.uses):
        advanced.erase()
    body.append_to(new.regions[0])
    results = dict(zip(others, new.results, strict=True)) | {number: end}
    loop.erase()
    return [results[index] for index in range(len(results))]


def _count(loop: Operation) -> _Count | None:
    before, after = (region.blocks[0] for region in loop.regions)
    *tests, condition = [op.operation for op in before.operations]
    compared = [op for op in tests if op.name != "arith.constant"]
    if len(compared) != 1 or compared[0].name != "arith.cmpi":
        return None
    flag, *forwarded = condition.operands
    if flag != compared[0].result or forwarded != list(before.arguments):
        return None
    left, right = compared[0].operands
    predicate = int(ir.IntegerAttr(compared[0].attributes["predicate"]).value)
    if predicate in _MIRRORED:
        left, right, predicate = right, left, _MIRRORED[predicate]
    arguments = list(before.arguments)
    if predicate not in (_LESS, _LESS_EQUAL) or left not in arguments or right in arguments:
        return None
    number = arguments.index(left)
    step = _step(after, number)
    if step is None or not _arrives(right, step, with_bound=predicate == _LESS_EQUAL):
        return None
    return _Count(number, right, step, predicate == _LESS_EQUAL)


def _step(body: Block, number: int) -> int | None:
    """Return the positive constant that ``body`` adds to argument ``number``, or None."""
    new = _last(body).operands[number]
    if isinstance(new, ir.BlockArgument) or new.owner.operation.name != "arith.addi":
        return None
    operands = list(new.owner.operands)
    if body.arguments[number] not in operands:
        return None
    operands.remove(body.arguments[number])
    step = _constant(operands[0])
    return step if step is not None and step > 0 else None


def _arrives(bound: Value, step: int, *, with_bound: bool) -> bool:
    """Return whether a counter that goes up by ``step`` never gets past the greatest number."""
    if step == 1 and not with_bound:
        return True
    last = _constant(bound)
    greatest = 2 ** (bound.type.width - 1) - 1
    return last is not None and last + with_bound + step - 1 <= greatest


def _end(start: Value, bound: Value, step: Value, by: int) -> Value:
    """Emit what the counter is after the loop."""
    if by == 1:
        return arith.MaxSIOp(start, bound).result
    one = _constant_of(start.type, 1)
    distance = arith.SubIOp(arith.SubIOp(bound, start).result, one).result
    trips = arith.AddIOp(arith.DivUIOp(distance, step).result, one).result
    end = arith.AddIOp(start, arith.MulIOp(trips, step).result).result
    runs = arith.CmpIOp(arith.CmpIPredicate.slt, start, bound).result
    return arith.SelectOp(runs, end, start).result


def _outside(value: Value) -> Value:
    """Return ``value``, which is a constant or comes from outside of the loop, for use before it."""
    constant = _constant(value)
    return value if constant is None else _constant_of(value.type, constant)


def _constant(value: Value) -> int | None:
    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)


def _constant_of(type_: object, number: int) -> Value:
    return arith.ConstantOp(type_, number).result


def _last(block: Block) -> Operation:
    return block.operations[len(block.operations) - 1].operation


def _rearrange(block: Block, numbers: list[int]) -> None:
    """Give ``block`` its arguments in the order of ``numbers``."""
    old = list(block.arguments)
    for number in numbers:
        old[number].replace_all_uses_with(block.add_argument(old[number].type, old[number].location))
    for number in reversed(range(len(old))):
        block.erase_argument(number)
