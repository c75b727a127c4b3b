"""Loop invariants: values that each iteration hands on unchanged are read from outside of the loop instead.

A Scan or While whose body reads weights has to carry them. A value that is carried has a buffer of its own,
into which it would be copied first, and nothing that is computed from it could be done before the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Operation, Value


def without_invariants(loop: Operation) -> tuple[Operation, dict[int, Value]]:
    """Replace the `scf.while` operation ``loop`` by one that carries only what changes.

    Args:
        loop: The loop; what its condition hands on as it is has the same place among results and operands.

    Returns:
        The loop that takes its place, which may be itself, and what the results are that it does not have,
        by their numbers.
    """
    blocks = [region.blocks[0] for region in loop.regions]
    condition, end = (block.operations[len(block.operations) - 1].operation for block in blocks)
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
    for terminator, numbers in ((condition, [0, *(n + 1 for n in kept)]), (end, started)):
        operands = [terminator.operands[number] for number in numbers]
        with ir.InsertionPoint(terminator), terminator.location:
            ir.Operation.create(terminator.name, [], operands)
        terminator.erase()
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
