"""Runs a module with the numpy rules of its operations: the oracle, and what ``--interpret`` runs.

Slow and simple on purpose. It shares nothing with the lowering but the operation records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from mind_mlir import border
from mind_mlir.arguments import bind, parameters_of
from mind_mlir.ops.contexts import EvalContext, allocation_failed
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.diagnostics import ExecutionError
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, Module, ValueId


def interpret(module: Module, arguments: Mapping[str, Array]) -> tuple[Array, ...]:
    """Run a flat module and return its outputs.

    Args:
        module: A flat module; it is verified first.
        arguments: One array for each input, by name, of exactly the input's dtype and shape.

    Raises:
        VerificationError: The module breaks a rule of its profile; all findings are in it.
        ArgumentError: The arguments do not fit the inputs (E61xx).
        ExecutionError: E6001, an index is out of bounds; E6004, the memory for a value could not be had.
        TypeError: ``module`` is no `Module`, or ``arguments`` no mapping.
    """
    expected = "a mapping from the names of the inputs to arrays"
    border.mapping(arguments, "arguments", expected)
    return run(verify(module), arguments)


def run(module: Module, arguments: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return the outputs of a flat module without verifying it: it may be one that only the profile refuses.

    Raises:
        ArgumentError: As `interpret`.
        ExecutionError: As `interpret`.
    """
    parameters = parameters_of(module)
    arrays = bind(parameters, (), arguments)
    given = {parameter.name: array for parameter, array in zip(parameters, arrays, strict=True)}
    last_use = _last_uses(module)
    values: dict[ValueId, Array] = {}
    for position, (operation, array) in enumerate(trace(module, given, values)):
        values[operation.value_id] = array
        for operand in operation.operands:
            if last_use.get(operand) == position:
                values.pop(operand, None)
    # Copies, so that no output is an input, a constant's data or another output's memory.
    try:
        return tuple(np.array(values[value], order="C") for value in module.outputs)
    except MemoryError as error:
        operations = {op.value_id: op for op in module.operations}
        raise _too_large([operations[value] for value in module.outputs]) from error


def trace(
    module: Module, arguments: Mapping[str, Array], values: Mapping[ValueId, Array]
) -> Iterator[tuple[CoreOperation, Array]]:
    """Yield each operation with its value; ``values`` must hold those yielded before that it still needs.

    Args:
        module: A module that passes verification.
        arguments: Arrays that fit the inputs, by name.
        values: The caller's environment.
    """
    for operation in module.operations:
        if operation.opcode == "Input":
            yield operation, arguments[str(operation.attributes["name"])]
        else:
            yield operation, evaluate(operation, [values[operand] for operand in operation.operands])


def evaluate(operation: CoreOperation, operands: Sequence[Array]) -> Array:
    """Return the value of one verified operation by its numpy rule.

    Raises:
        ExecutionError: E6001, an index is out of bounds; E6004, the memory for the value could not be had.
    """
    record = by_opcode()[operation.opcode]
    context = EvalContext(
        operation.opcode,
        operation.label,
        tuple(operands),
        complete_attributes(record, operation.attributes),
        operation.tensor_type,
        operation.source,
    )
    try:
        with np.errstate(all="ignore"):
            result = record.evaluate(context)
    except MemoryError as error:
        raise _too_large([operation]) from error
    return cast("Array", result)


def _too_large(operations: Sequence[CoreOperation]) -> ExecutionError:
    values = ", ".join(f"{op.opcode} {op.label}: {op.result_type}" for op in operations)
    return allocation_failed(
        f"the memory for {values}", [op.tensor_type for op in operations], operations[0].location
    )


def _last_uses(module: Module) -> dict[ValueId, int]:
    last = {
        operand: position
        for position, operation in enumerate(module.operations)
        for operand in operation.operands
    }
    for output in module.outputs:
        last.pop(output, None)
    return last
