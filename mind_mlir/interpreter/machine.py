"""Runs plans: one loop, which keeps what waits for regions and called functions on a stack of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.allocation import allocation_failed
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.diagnostics import ExecutionError
    from mind_mlir.interpreter.plan import Plan, Step
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ops.contexts import Running


@dataclass(slots=True)
class _Frame:
    """A block that waits until its operation in progress has run a region or a function."""

    plan: Plan
    values: dict[ValueId, Array]
    steps: Iterator[Step]
    step: Step
    rule: Running


def execute(functions: Mapping[str, Plan], name: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
    """Return what function ``name`` returns; the arrays may share memory with arguments and one another.

    Args:
        functions: The functions of a verified module without recursion, in structured form.
        name: One of them.
        arguments: Arrays that fit its parameters.

    Raises:
        ExecutionError: As `mind_mlir.interpret`.
    """
    plan, values = functions[name], _entered(functions[name], {}, arguments)
    steps, frames = iter(plan.steps), list[_Frame]()
    step: Step | None = None
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
                        rule = result
                        break
                    context.operands = ()  # so that they can go
                    _store(step, values, result)
                else:
                    outputs = tuple([values[value] for value in plan.outputs])
                    for value in plan.left:
                        del values[value]
                    if not frames:
                        return outputs
                    frame = frames.pop()
                    plan, values, steps, step, rule = (
                        frame.plan,
                        frame.values,
                        frame.steps,
                        frame.step,
                        frame.rule,
                    )
                assert step is not None, "a rule waits"
                try:
                    target, given = rule.send(outputs)
                except StopIteration as stop:
                    _store(step, values, stop.value)
                    continue
                step.context.operands = ()
                frames.append(_Frame(plan, values, steps, step, rule))
                if isinstance(target, str):
                    plan, values = functions[target], {}
                else:
                    plan = step.regions[target]
                values, steps = _entered(plan, values, given), iter(plan.steps)
    except MemoryError as error:
        if step is None:
            raise
        raise too_large([step.operation]) from error


def _entered(plan: Plan, values: dict[ValueId, Array], given: Sequence[Array]) -> dict[ValueId, Array]:
    """Return the environment of a block that begins, with its parameters."""
    values.update(zip(plan.parameters, given, strict=True))
    for value in plan.unread:
        del values[value]
    return values


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
