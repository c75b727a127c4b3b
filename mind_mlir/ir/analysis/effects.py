"""Operations that do more than give results: those that print (`mind_mlir.debug_print`).

They are needed though nothing reads them, each happens as often as the program says, and they stay in order.
So what drops, merges or repeats operations asks here; what moves them asks `OpDef.runs_others` already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, CallGraph, callee_of, operations_of
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import CoreOperation
from mind_mlir.ir.regions import blocks_within
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from mind_mlir.ir.module import Block, Function

#: The custom call that prints; no other has an effect.
PRINT = "mind.debug_print.v1"
_ZERO = TensorLiteral.of(0, DType.SI64)
#: The custom call that copies an array, of which nobody knows that it does.
COPY = "mind.debug_copy.v1"
#: The custom calls that begin a collective and wait for it, each as often as the other (`passes/overlap`).
START, FINISH = "mind.collective_start.v1", "mind.collective_finish.v1"


def is_effect(operation: CoreOperation) -> bool:
    """Return whether an operation without regions has an effect."""
    return operation.opcode == CUSTOM_CALL and operation.attributes.get("target") == PRINT


def has_effect(operation: CoreOperation) -> bool:
    """Return whether an operation, or one in its regions, has an effect."""
    return is_effect(operation) or any(
        is_effect(inner) for block in blocks_within(operation) for inner in block.operations
    )


def printing_functions(functions: Sequence[Function]) -> set[str]:
    """Return the names of the functions that have effects, by themselves or through what they call.

    They are without recursion.
    """
    found = {each.name for each in functions if any(map(is_effect, operations_of(each.blocks)))}
    if found:
        for function in CallGraph.of(functions).callees_first():
            if not found.isdisjoint(callees_of(function)):
                found.add(function.name)
    return found


def callees_of(function: Function) -> set[str]:
    """Return the names of the functions that a function calls."""
    return {name for operation in operations_of(function.blocks) if (name := callee_of(operation))}


def effects_in(operations: Iterable[CoreOperation]) -> list[int]:
    """Return values that are needed for effects to happen: a result of each operation that has one."""
    return [operation.value_id for operation in operations if has_effect(operation)]


def silent(operation: CoreOperation) -> CoreOperation:
    """Return an operation without effects, where it is computed again; itself where it has none."""
    if not operation.regions:
        return _constant(operation) if is_effect(operation) else operation
    if not has_effect(operation):
        return operation
    return replace(operation, regions=tuple([_silent_block(each) for each in operation.regions]))


def silent_function(function: Function) -> Function:
    """Return a function without effects."""
    return replace(function, blocks=tuple(map(_silent_block, function.blocks)))


def _silent_block(block: Block) -> Block:
    return replace(block, operations=tuple(map(silent, block.operations)))


def _constant(operation: CoreOperation) -> CoreOperation:
    """Return what a print gives, which somebody may read."""
    return CoreOperation.create(
        operation.value_id, "ConstI64", (), {"value": _ZERO}, operation.result_type, operation.source
    )
