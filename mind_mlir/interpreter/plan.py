"""Plan how to run a block, once for all runs: records, attributes, and when values die."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.ir.module import Block, CoreOperation, ValueId
    from mind_mlir.ops.opdef import EvalRule


@dataclass(slots=True)
class Step:
    """One operation.

    Attributes:
        operation: The operation itself, for messages.
        evaluate: The numpy rule.
        context: What the rule is given, once the operands are filled in.
        operands: The values it reads.
        results: The values it defines.
        dead: The values of its block that nothing reads after it.
        runs_others: Whether the rule runs regions or functions, and so is a generator.
        regions: Its regions.
    """

    operation: CoreOperation
    evaluate: EvalRule
    context: EvalContext
    operands: tuple[ValueId, ...]
    results: tuple[ValueId, ...]
    dead: tuple[ValueId, ...]
    runs_others: bool
    regions: tuple[Plan, ...]


@dataclass(slots=True)
class Plan:
    """One block.

    Attributes:
        parameters: The values it is given.
        steps: Its operations.
        outputs: What it returns or yields.
        unread: The parameters that nothing reads.
        left: The values defined in it that still live at its end.
    """

    parameters: tuple[ValueId, ...]
    steps: tuple[Step, ...]
    outputs: tuple[ValueId, ...]
    unread: tuple[ValueId, ...]
    left: tuple[ValueId, ...]


def plan(block: Block) -> Plan:
    """Return the plan of a block in structured form; regions are planned before what holds them."""
    plans: dict[int, Plan] = {}
    reads: dict[int, tuple[ValueId, ...]] = {}
    for inner in reversed(list(_with_regions(block))):
        plans[id(inner)], reads[id(inner)] = _plan(inner, plans, reads)
    return plans[id(block)]


def _with_regions(block: Block) -> Iterator[Block]:
    """Yield a block and all blocks in it, each before those in it."""
    waiting = [block]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += [region for operation in current.operations for region in operation.regions]


def _plan(
    block: Block, plans: dict[int, Plan], reads: dict[int, tuple[ValueId, ...]]
) -> tuple[Plan, tuple[ValueId, ...]]:
    """Return the plan of a block, and what it and its regions read from around it."""
    parameters = tuple(parameter.value_id for parameter in block.parameters)
    last_use: dict[ValueId, int] = dict.fromkeys(parameters, -1)
    outer: dict[ValueId, None] = {}

    def use(values: Iterable[ValueId], position: int) -> None:
        for value in values:
            if value in last_use:
                last_use[value] = position
            else:
                outer[value] = None

    end = len(block.operations)
    for position, operation in enumerate(block.operations):
        deliver()
        use(operation.operands, position)
        for region in operation.regions:
            use(reads[id(region)], position)
        last_use.update(dict.fromkeys(operation.result_ids, position))
    outputs = block.terminator.operands
    use(outputs, end)
    dying: dict[int, list[ValueId]] = {}
    for value, position in last_use.items():
        dying.setdefault(position, []).append(value)
    steps = tuple(
        _step(operation, tuple(dying.get(position, ())), tuple(plans[id(r)] for r in operation.regions))
        for position, operation in enumerate(block.operations)
    )
    planned = Plan(parameters, steps, outputs, tuple(dying.get(-1, ())), tuple(dying.get(end, ())))
    return planned, tuple(outer)


def _step(operation: CoreOperation, dead: tuple[ValueId, ...], regions: tuple[Plan, ...]) -> Step:
    record = by_opcode()[operation.opcode]
    return Step(
        operation,
        record.evaluate,
        context_of(operation),
        operation.operands,
        operation.result_ids,
        dead,
        inspect.isgeneratorfunction(record.evaluate),
        regions,
    )


def context_of(operation: CoreOperation) -> EvalContext:
    """Return what the numpy rule of a verified operation is given, but for the operands."""
    types = operation.result_types
    return EvalContext(
        operation.opcode,
        operation.label,
        (),
        complete_attributes(by_opcode()[operation.opcode], operation.attributes),
        types[0],
        operation.source,
        types,
    )
