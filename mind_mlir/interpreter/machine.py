"""Plans of blocks, and the loop that runs them.

A plan is made once for all runs: records, attributes, and when values die. The loop keeps what waits for
regions and called functions on a stack of its own.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.allocation import allocation_failed
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mind_mlir.diagnostics import ExecutionError
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Block, CoreOperation, ValueId
    from mind_mlir.ops.contexts import Running
    from mind_mlir.ops.rules import EvalRule


@dataclass(slots=True)
class WaitingBlock:
    """A block that waits until its operation in progress has run a region or a function.

    Attributes:
        plan: The block.
        values: What is known in it.
        steps: Its operations that are to come.
        step: The operation in progress.
        rule: What runs that.
        target: What runs for it now: a region by its number, or a function by its name.
        runs: How often each has begun to run for it.
    """

    plan: BlockPlan
    values: dict[ValueId, Array]
    steps: Iterator[Step]
    step: Step
    rule: Running
    target: int | str
    runs: dict[int | str, int]


if TYPE_CHECKING:
    #: Sees each operation without regions when it has run: with its operands, its results, and the blocks
    #: that wait around it, from the function's own on.
    Observer = Callable[[CoreOperation, Sequence[Array], Sequence[Array], Sequence[WaitingBlock]], object]


def execute(
    functions: Mapping[str, BlockPlan],
    name: str,
    arguments: Sequence[Array],
    observer: Observer | None = None,
) -> tuple[Array, ...]:
    """Return what function ``name`` returns; the arrays may share memory with arguments and one another.

    Args:
        functions: The functions of a verified module without recursion, in structured form.
        name: One of them.
        arguments: Arrays that fit its parameters.
        observer: Sees what operations make.

    Raises:
        ExecutionError: As `mind_mlir.interpret`.
    """
    plan, values = functions[name], _entered(functions[name], {}, arguments)
    steps, frames = iter(plan.steps), list[WaitingBlock]()
    step: Step | None = None
    runs: dict[int | str, int] = {}
    try:
        with np.errstate(all="ignore"):
            while True:
                outputs: tuple[Array, ...] | None = None
                rule: Any = None
                for step in steps:
                    deliver()
                    context = step.context
                    context.operands = tuple([values[value] for value in step.operands])
                    result = step.evaluate(context)
                    if step.runs_others:
                        rule, runs = result, {}
                        break
                    _show(step, result, observer, frames)
                    context.operands = ()  # so that they can go
                    _store(step, values, result)
                else:
                    outputs = tuple([values[value] for value in plan.outputs])
                    for value in plan.left:
                        del values[value]
                    if not frames:
                        return outputs
                    frame = frames.pop()
                    plan, values, steps, step = frame.plan, frame.values, frame.steps, frame.step
                    rule, runs = frame.rule, frame.runs
                assert step is not None, "a rule waits"
                try:
                    target, given = rule.send(outputs)
                except StopIteration as stop:
                    _store(step, values, stop.value)
                    continue
                step.context.operands = ()
                runs[target] = runs.get(target, 0) + 1
                frames.append(WaitingBlock(plan, values, steps, step, rule, target, runs))
                if isinstance(target, str):
                    plan, values = functions[target], {}
                else:
                    plan = step.regions[target]
                values, steps = _entered(plan, values, given), iter(plan.steps)
    except MemoryError as error:
        if step is None:
            raise
        raise too_large([step.operation]) from error


def _entered(plan: BlockPlan, values: dict[ValueId, Array], given: Sequence[Array]) -> dict[ValueId, Array]:
    """Return the environment of a block that begins, with its parameters."""
    values.update(zip(plan.parameters, given, strict=True))
    for value in plan.unread:
        del values[value]
    return values


def _show(step: Step, result: Any, observer: Observer | None, frames: Sequence[WaitingBlock]) -> None:
    if observer is not None:
        made = result if type(result) is tuple else (result,)
        observer(step.operation, step.context.operands, made, frames)


def _store(step: Step, values: dict[ValueId, Array], result: Any) -> None:
    if type(result) is tuple:
        values.update(zip(step.results, result, strict=True))
    else:
        values[step.results[0]] = result
    for value in step.dead:
        del values[value]


def too_large(operations: Sequence[CoreOperation]) -> ExecutionError:
    """Return the E6004 error for the values of ``operations``."""
    values = ", ".join(f"{op.opcode} {op.label}: {op.result_type}" for op in operations)
    types = [type_ for op in operations for type_ in op.result_types]
    return allocation_failed(f"the memory for {values}", types, operations[0].location)


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
    regions: tuple[BlockPlan, ...]


@dataclass(slots=True)
class BlockPlan:
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


def plan(block: Block) -> BlockPlan:
    """Return the plan of a block in structured form; regions are planned before what holds them."""
    plans: dict[int, BlockPlan] = {}
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
    block: Block, plans: dict[int, BlockPlan], reads: dict[int, tuple[ValueId, ...]]
) -> tuple[BlockPlan, tuple[ValueId, ...]]:
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
    planned = BlockPlan(parameters, steps, outputs, tuple(dying.get(-1, ())), tuple(dying.get(end, ())))
    return planned, tuple(outer)


def _step(operation: CoreOperation, dead: tuple[ValueId, ...], regions: tuple[BlockPlan, ...]) -> Step:
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
