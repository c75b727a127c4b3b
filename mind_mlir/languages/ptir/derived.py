"""Symbolic dimensions that follow from others: those of results, such as ?C for ?A and ?B elements joined.

Arguments bind the symbols of parameters. A symbol that stands in the type of an instruction first is what the
operation makes of its operands' extents.
"""

from __future__ import annotations

from mind_mlir.diagnostics import VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import SymbolicDim, TensorType, TupleType, ValueType
from mind_mlir.languages.ptir.fields import FieldError, attributes_of, record_of
from mind_mlir.languages.ptir.program import Function, Instruction, Operand, TupleElement
from mind_mlir.languages.ptir.symbols import bind_instruction, bound_type, type_symbols
from mind_mlir.languages.ptir.values import leaves
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_types


def derived_extents(function: Function) -> dict[str, int]:
    """Return what symbols of the instructions of ``function`` are, as far as that follows.

    What depends on symbols of its parameters does not. What is wrong with an instruction is left to the
    verifier; results of operations with regions do not say what symbols are.
    """
    known: dict[str, int] = {}
    types: dict[int, ValueType] = dict(zip(function.parameter_ids, function.parameters, strict=False))
    for instruction in function.body:
        if any(name not in known for name in type_symbols(instruction.output)):
            _derive(bind_instruction(instruction, known), types, known)
        types[instruction.id] = bound_type(instruction.output, known)
    return known


def _derive(instruction: Instruction, types: dict[int, ValueType], known: dict[str, int]) -> None:
    operation = instruction.operation
    record = record_of(operation)
    operands = [_type_of(operand, types) for operand in instruction.operands]
    static = [each for each in operands if isinstance(each, TensorType) and not any(type_symbols(each))]
    fields = (each for value in operation.fields.values() if isinstance(value, tuple) for each in value)
    if (
        record is None
        or record.contract is None
        or record.regions
        or len(static) < max(len(operands), len(record.operands) - record.is_variadic)
        or any(isinstance(each, SymbolicDim) for each in fields)
    ):
        return
    try:
        attributes = attributes_of(record.contract, operation, static)
    except (FieldError, VerificationError):
        return
    context = TypeContext(record.opcode, instruction.id, tuple(static), attributes, profile=PTIR)
    declared = leaves(instruction.output)
    for wanted, found in zip(declared, infer_types(record, context) or (), strict=False):
        if wanted.rank == found.rank:
            for dim, extent in zip(wanted.shape, found.extents, strict=True):
                if isinstance(dim, SymbolicDim):
                    known.setdefault(dim.name, extent)


def _type_of(operand: Operand, types: dict[int, ValueType]) -> ValueType | None:
    if isinstance(operand, TensorLiteral):
        return operand.type
    if not isinstance(operand, TupleElement):
        return types.get(operand.value)
    whole = types.get(operand.tuple)
    if isinstance(whole, TupleType) and 0 <= operand.index < len(whole.elements):
        return whole.elements[operand.index]
    return None
