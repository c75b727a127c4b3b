"""Runs a module with the numpy rules of its operations: the oracle, and what ``--interpret`` runs.

Slow and simple on purpose. It shares nothing with the lowering but the operation records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import TensorType
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, Module, ValueId


def interpret(module: Module, arguments: Mapping[str, Array]) -> tuple[Array, ...]:
    """Run a verified flat module and return its outputs.

    Args:
        module: A module that passes verification.
        arguments: One array for each input, by name, of exactly the input's dtype and shape.

    Raises:
        ExecutionError: E6001, an index is out of bounds.
    """
    last_use = _last_uses(module)
    values: dict[ValueId, Array] = {}
    for position, (operation, array) in enumerate(trace(module, arguments, values)):
        values[operation.value_id] = array
        for operand in operation.operands:
            if last_use.get(operand) == position:
                values.pop(operand, None)
    # Copies, so that no output is an input, a constant's data or another output's memory.
    return tuple(np.array(values[value], order="C") for value in module.outputs)


def trace(
    module: Module, arguments: Mapping[str, Array], values: Mapping[ValueId, Array]
) -> Iterator[tuple[CoreOperation, Array]]:
    """Yield each operation with its value; ``values`` must hold those yielded before that it still needs."""
    records = by_opcode()
    for operation in module.operations:
        if operation.opcode == "Input":
            yield operation, arguments[str(operation.attributes["name"])]
            continue
        record = records[operation.opcode]
        assert isinstance(operation.result_type, TensorType)
        context = EvalContext(
            operation.opcode,
            operation.value_id,
            tuple(values[operand] for operand in operation.operands),
            complete_attributes(record, operation.attributes),
            operation.result_type,
            operation.source,
        )
        with np.errstate(all="ignore"):
            array = record.evaluate(context)
        yield operation, array


def _last_uses(module: Module) -> dict[ValueId, int]:
    last = {
        operand: position
        for position, operation in enumerate(module.operations)
        for operand in operation.operands
    }
    for output in module.outputs:
        last.pop(output, None)
    return last
