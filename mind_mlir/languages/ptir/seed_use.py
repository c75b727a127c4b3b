"""Find the parameter of a function that is the seed of its random operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.languages.ptir.seeding import SEED
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.terminators import ValueId


def seed_of(function: Function) -> ValueId | None:
    """Return the last parameter, where it is a seed and nothing but random operations reads it, else None."""
    if not function.parameters or function.parameters[-1].type != SEED:
        return None
    seed = function.parameters[-1].value_id
    drawn = False
    ends = [block.terminator.operands for block in function.blocks]
    for operation in operations_of(function.blocks):
        ends += [region.terminator.operands for region in operation.regions]
        contract = by_opcode()[operation.opcode].contract
        if seed in operation.operands:
            if contract is None or not contract.seeded or seed in operation.operands[:-1]:
                return None
            drawn = True
    return seed if drawn and not any(seed in operands for operands in ends) else None
