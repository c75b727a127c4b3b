"""Hoisting out of loops: operations of a region that compute the same each time, worth doing once before it.

What is cheap to compute stays in the loop, where it is fused into what uses it and lives in registers; what
takes its time, or moves data, is computed before the loop, and with it all that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.dialect import PREFIX
from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import by_mnemonic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.mlir.bindings import Operation, Value

#: Operations that are exact, and nevertheless work.
_WORK = ("Transpose", "Concat", "Tile", "Gather", "Take", "GatherElements", "ScatterAdd", "Pad")


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
        if op.name.startswith(PREFIX):
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


def _is_work(op: Operation) -> bool:
    record = by_mnemonic().get(op.name.removeprefix(PREFIX))
    return record is not None and (record.rounding is not Rounding.EXACT or record.opcode in _WORK)
