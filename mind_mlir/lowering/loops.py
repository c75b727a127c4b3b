"""Loops in linalg form: what they count, carry and compute, and how deep they nest.

**Loops that count** are `scf.for` rather than `scf.while`, where both run equally often whatever the numbers
are.

A loop counts when its condition does nothing but compare one carried integer with a bound from outside, and
its body adds a constant to it. The counter must come to the bound without overflow: it does when it is
counted up by one to anything, or in larger steps, or up to and with the bound, where that is a constant far
enough from the greatest number.

**Loop invariants**, values that each iteration hands on unchanged, are read from outside of the loop. A Scan
or While whose body reads weights has to carry them. A value that is carried has a buffer of its own, into
which it would be copied first, and nothing that is computed from it could be done before the loop.

**Hoisting** computes once, before a loop, what its region would compute the same each time. What is cheap to
compute stays in the loop, where it is fused into what uses it and lives in registers; what takes its time, or
moves data, is computed before the loop, and with it all that it needs.

**Loops in many loops** become functions of their own. The time of one-shot bufferization doubles with each
loop around a tensor that loops carry. Nobody writes so many, but a program may have them: a loop deep inside
becomes a private function, and the count starts anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.analysis.effects import FINISH, PRINT, START
from mind_mlir.lowering.dialect import PREFIX
from mind_mlir.lowering.functions.captures import Closure
from mind_mlir.lowering.functions.outlining import PROGRAM_LOOP_ATTRIBUTE
from mind_mlir.mlir.bindings import arith, func, ir
from mind_mlir.mlir.values import constant_of, end_with, terminator_of
from mind_mlir.ops.opdef import Movement, Rounding
from mind_mlir.ops.registry import by_mnemonic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        end = _end_of(start, bound, step, count.step)
    body = loop.regions[1].blocks[0]
    _rearrange(body, [number, *others])
    following = list(terminator_of(body).operands)
    end_with(body, [following[index] for index in others])
    advanced = following[number].owner
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
    step = _step_of(after, number)
    if step is None or not _arrives(right, step, with_bound=predicate == _LESS_EQUAL):
        return None
    return _Count(number, right, step, predicate == _LESS_EQUAL)


def _step_of(body: Block, number: int) -> int | None:
    """Return the positive constant that ``body`` adds to argument ``number``, or None."""
    new = terminator_of(body).operands[number]
    if isinstance(new, ir.BlockArgument) or new.owner.operation.name != "arith.addi":
        return None
    operands = list(new.owner.operands)
    if body.arguments[number] not in operands:
        return None
    operands.remove(body.arguments[number])
    step = constant_of(operands[0])
    return step if step is not None and step > 0 else None


def _arrives(bound: Value, step: int, *, with_bound: bool) -> bool:
    """Return whether a counter that goes up by ``step`` never gets past the greatest number."""
    if step == 1 and not with_bound:
        return True
    last = constant_of(bound)
    greatest = 2 ** (bound.type.width - 1) - 1
    return last is not None and last + with_bound + step - 1 <= greatest


def _end_of(start: Value, bound: Value, step: Value, by: int) -> Value:
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
    constant = constant_of(value)
    return value if constant is None else _constant_of(value.type, constant)


def _constant_of(type_: object, number: int) -> Value:
    return arith.ConstantOp(type_, number).result


def _rearrange(block: Block, numbers: list[int]) -> None:
    """Give ``block`` its arguments in the order of ``numbers``."""
    old = list(block.arguments)
    for number in numbers:
        old[number].replace_all_uses_with(block.add_argument(old[number].type, old[number].location))
    for number in reversed(range(len(old))):
        block.erase_argument(number)


def without_invariants(loop: Operation) -> tuple[Operation, dict[int, Value]]:
    """Replace the `scf.while` operation ``loop`` by one that carries only what changes.

    Args:
        loop: The loop; what its condition hands on as it is has the same place among results and operands.

    Returns:
        The loop that takes its place, which may be itself, and what the results are that it does not have,
        by their numbers.
    """
    blocks = [region.blocks[0] for region in loop.regions]
    condition, end = map(terminator_of, blocks)
    before, after = (list(block.arguments) for block in blocks)
    same = {
        number: loop.operands[number]
        for number in range(min(len(before), len(after)))
        if condition.operands[number + 1] == before[number] and end.operands[number] == after[number]
    }
    if not same:
        return loop, same
    started, kept = ([n for n in range(len(values)) if n not in same] for values in (before, after))
    for number, value in same.items():
        before[number].replace_all_uses_with(value)
        after[number].replace_all_uses_with(value)
    end_with(blocks[0], [condition.operands[0], *(condition.operands[number + 1] for number in kept)])
    end_with(blocks[1], [end.operands[number] for number in started])
    for block in blocks:
        for number in reversed(same):
            block.erase_argument(number)
    with ir.InsertionPoint(loop), loop.location:
        types = [loop.results[number].type for number in kept]
        starts = [loop.operands[number] for number in started]
        new = ir.Operation.create("scf.while", types, starts, regions=2)
    for block, region in zip(blocks, new.regions, strict=True):
        block.append_to(region)
    loop.erase()
    return new, same


def hoisted(
    operations: Sequence[Operation], levels: Mapping[Value, int], inside: int, outermost: int
) -> dict[int, int]:
    """Return the levels of the regions in which to compute ``operations`` instead, by their numbers.

    Args:
        operations: Those of a loop's region, in order.
        levels: The level of the region in which each value from outside is known.
        inside: The level of the loop's region.
        outermost: The level of the outermost region that has only loops between it and this one.
    """
    earliest: dict[Value, int] = {}
    places: list[int] = []
    for op in operations:
        level = inside
        if op.name.startswith(PREFIX) and not _stays(op):
            sources = [earliest.get(value, levels.get(value, inside)) for value in op.operands]
            level = max([outermost, *sources])
        places.append(level)
        earliest.update(dict.fromkeys(op.results, level))
    chosen: dict[int, int] = {}
    wanted: set[Value] = set()
    for number in reversed(range(len(operations))):
        op = operations[number]
        if places[number] < inside and (_is_work(op) or any(result in wanted for result in op.results)):
            chosen[number] = places[number]
            wanted.update(op.operands)
    return chosen


def _stays(op: Operation) -> bool:
    """Return whether an operation stays in its loop: it prints, or begins or ends a collective."""
    return "target" in op.attributes and op.attributes["target"].value in (PRINT, START, FINISH)


def _is_work(op: Operation) -> bool:
    """Return whether an operation takes time: it rounds, or copies elements to where no view shows them."""
    record = by_mnemonic().get(op.name.removeprefix(PREFIX))
    if record is None:
        return False
    is_copy = record.copies or record.movement in (Movement.PERMUTATION, Movement.REPETITION)
    return is_copy or record.rounding is not Rounding.EXACT


#: A loop in so many loops becomes a function.
DEEP = 8


def as_function(loop: Operation, name: str, before: Operation) -> list[Value]:
    """Move ``loop`` to a private function before another; return the results of a call of it in its place."""
    closure = Closure([loop], repeated=())
    types = [result.type for result in loop.results]
    with loop.location:
        with ir.InsertionPoint(before):
            function = func.FuncOp(name, (closure.types, types), visibility="private")
        with ir.InsertionPoint(loop):
            call = func.CallOp(types, ir.FlatSymbolRefAttr.get(name), closure.arguments)
        for old, new in zip(loop.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        closure.move(function, loop.results)
    return list(call.results)
