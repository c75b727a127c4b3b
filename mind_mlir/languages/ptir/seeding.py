"""Seeds of programs: what the random operations of a function draw from (docs/random.md).

The contract's random operations have no operands; ours are functions of a seed and of a stream. So a function
that draws, itself or in a region that it runs, has one value more: the seed, ui64 of rank 0. It is a last
parameter, called ``seed`` (with underscores behind it where that is taken), or a constant where the seed is
fixed. The streams are the places of the operations among those of the function, which the conversion of its
body counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.ptir.fields import record_of
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, Region
from mind_mlir.languages.ptir.regions import regions_named
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function as CoreFunction
    from mind_mlir.ir.terminators import ValueId

SEED = TensorType(DType.UI64)
_NAME = "seed"


def seeded(program: Program, seed: int | None = None) -> Program:
    """Return ``program`` with a seed in each function that draws random numbers and has none yet.

    Args:
        program: A program.
        seed: The seed of all of them; None for a parameter of each.

    Raises:
        TypeError: ``seed`` is no integer.
        ValueError: ``seed`` does not fit in 64 bits, without a sign.
    """
    fixed = None if seed is None else checked_seed(seed)
    regions = {region.id: region for region in reversed(program.regions)}
    functions = tuple(
        _seeded(function, fixed) if function.seed is None and draws(function, regions) else function
        for function in program.functions
    )
    same = all(new is old for new, old in zip(functions, program.functions, strict=True))
    return program if same else replace(program, functions=functions)


def checked_seed(seed: object) -> int:
    """Return a seed, which must be an integer of 64 bits, not negative.

    Raises:
        TypeError: It is no integer.
        ValueError: It is negative, or too large.
    """
    found = argument_checks.integer(seed, "seed")
    if not 0 <= found < 2**64:
        raise ValueError(f"seed must be between 0 and 2^64 - 1, not {found}")
    return found


def draws(function: Function, regions: Mapping[int, Region]) -> bool:
    """Return whether a function draws random numbers, in a region that it runs, too."""
    pending, met = [function.body], set[int]()
    while pending:
        body = pending.pop()
        if any(is_random(instruction.operation) for instruction in body):
            return True
        for number in regions_named(body):
            if number not in met and number in regions:
                met.add(number)
                pending.append(regions[number].body)
    return False


def is_random(operation: Operation) -> bool:
    """Return whether an operation takes the seed of its function."""
    record = record_of(operation)
    return record is not None and record.contract is not None and record.contract.seeded


def is_seed(name: str, type_: TensorType) -> bool:
    """Return whether a parameter is one that `seeded` adds, by what callers see of it."""
    return type_ == SEED and name.rstrip("_") == _NAME


def _seeded(function: Function, seed: int | None) -> Function:
    taken = [*function.parameter_ids, *(instruction.id for instruction in function.body)]
    value = max(taken, default=-1) + 1
    if seed is not None:
        literal = TensorLiteral.of(np.array(seed, np.uint64), DType.UI64)
        constant = Instruction(value, Operation("Constant", None, FrozenDict(value=literal)), (), SEED)
        return replace(function, body=(constant, *function.body), seed=value)
    name = _NAME
    while name in function.names.values():
        name += "_"
    return replace(
        function,
        parameters=(*function.parameters, SEED),
        parameter_ids=(*function.parameter_ids, value),
        names=FrozenDict({**function.names, value: name}),
        seed=value,
    )


def seed_of(function: CoreFunction) -> ValueId | None:
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
