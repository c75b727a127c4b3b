"""Programs as modules of Core IR, profile `core-functions`: what Core IR can say of them.

A program becomes a module first (`to_module`). Core IR has the same operations and forms, but
fewer dtypes, no empty arguments and no empty new shapes. Each operation that it cannot say is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.builders import type_rules
from mind_mlir.diagnostics import Diagnostic, Location, UnsupportedError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, operations_of
from mind_mlir.ir.module import Block, CoreOperation, Function, Functions, Module
from mind_mlir.ir.profiles import CORE_FUNCTIONS
from mind_mlir.ir.regions import value_types
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.ops.custom_call import known
from mind_mlir.ops.custom_library import attributes_of, called_record
from mind_mlir.passes.operation_check import OperationCheck
from mind_mlir.passes.verify import verify
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from mind_mlir.ir.terminators import ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.ptir.program import Program


def to_core(program: Program) -> Module:
    """Return ``program`` as a verified module of profile `core-functions`.

    Raises:
        VerificationError: It breaks a rule; all findings are in it. E4303: symbolic dimensions are not bound.
        UnsupportedError: E7001, Core IR cannot say an operation, a parameter or a result; there is a finding
            for each.
        TypeError: ``program`` is no `Program`.
    """
    module = _with_operations(to_module(program))
    findings = Findings()
    for function in module.functions:
        findings.extend(_of_signature(function))
        types = value_types(function.blocks)
        for operation in operations_of(function.blocks):
            deliver()
            why = _why_not(operation, types)
            if why is not None:
                facts = {"operation": operation.opcode, "value": operation.value_id}
                message = f"Core IR cannot say {operation.opcode} {operation.label}"
                findings.add(_finding(message, operation.opcode_location, why, **facts))
    if findings.total:
        raise UnsupportedError(findings.in_source_order())
    return verify(replace(module, profile=CORE_FUNCTIONS.name))


def _with_operations(module: Module) -> Module:
    """Return a module with operations in the place of custom calls of them."""
    functions = (
        replace(function, blocks=tuple(map(_block, function.blocks))) for function in module.functions
    )
    return replace(module, functions=Functions(functions))


def _block(block: Block) -> Block:
    return replace(block, operations=tuple(map(_operation, block.operations)))


def _operation(operation: CoreOperation) -> CoreOperation:
    name = operation.attributes.get("target")
    record = called_record(name) if isinstance(name, str) and operation.opcode == CUSTOM_CALL else None
    if record is not None:
        _, given = known(operation.attributes)
        return replace(operation, opcode=record.opcode, attributes=attributes_of(record, given))
    if not operation.regions:
        return operation
    return replace(operation, regions=tuple(map(_block, operation.regions)))


def _of_signature(function: Function) -> Iterator[Diagnostic]:
    """Yield what Core IR cannot say of what a function takes and returns."""
    for parameter in function.parameters:
        what = f"parameter {parameter.label} of @{function.name}"
        wrong = type_rules.declared_type(what, parameter.type, CORE_FUNCTIONS, parameter.location, "E4004")
        if wrong is not None:
            yield _finding(f"Core IR cannot say {what}", parameter.location, wrong.message)
    for index, type_ in enumerate(function.result_types or ()):
        what = f"result {index} of @{function.name}"
        wrong = type_rules.declared_type(what, type_, CORE_FUNCTIONS, function.location)
        if wrong is not None:
            yield _finding(f"Core IR cannot say {what}", function.location, wrong.message)


def _why_not(operation: CoreOperation, types: Mapping[ValueId, TensorType]) -> str | None:
    """Return why Core IR cannot say an operation, or None where it can."""
    operands = tuple(types[value] for value in operation.operands)
    foreign = _foreign((*operands, *operation.result_types))
    if foreign is not None:
        names = ", ".join(dtype.core_name for dtype in CORE_FUNCTIONS.dtypes)
        return f"it computes with {foreign.dtype.core_name}, and the dtypes of Core IR are {names}"
    if operation.regions:
        return None  # what is in them is looked at by itself
    check = OperationCheck(CORE_FUNCTIONS)
    check.check(operation, operands)
    found = check.findings.kept
    return f"{found[0].message} [{found[0].code}]" if found else None


def _foreign(types: Sequence[TensorType]) -> TensorType | None:
    return next((type_ for type_ in types if type_.dtype not in CORE_FUNCTIONS.dtypes), None)


def _finding(message: str, location: Location | None, why: str, **facts: Any) -> Diagnostic:
    return Diagnostic("E7001", message, location, (), why, context=FrozenDict(facts))
