"""Vectors of truth values in memory, where each is a byte: MLIR would load and store them as bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import arith, ir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Operation, Type, Value


def move_as_bytes(transfers: Iterable[Operation]) -> None:
    """Let those ``transfers`` of vectors that are of truth values move bytes, in a bufferized module."""
    boolean, byte = (ir.IntegerType.get_signless(width) for width in (1, 8))
    for op in transfers:
        is_read = op.name == "vector.transfer_read"
        type_ = ir.VectorType((op.results[0] if is_read else op.operands[0]).type)
        if type_.element_type == boolean:
            with ir.InsertionPoint(op), op.location:
                (_read if is_read else _write)(op, ir.VectorType.get(type_.shape, byte))
            op.operation.erase()


def _read(op: Operation, type_: Type) -> None:
    operands = list(op.operands)
    padding = 1 + len(operands[0].type.shape)
    operands[0] = as_bytes(operands[0])
    operands[padding] = arith.extui(type_.element_type, operands[padding])
    found = ir.Operation.create(op.name, [type_], operands, _attributes(op)).result
    op.results[0].replace_all_uses_with(arith.trunci(op.results[0].type, found))


def _write(op: Operation, type_: Type) -> None:
    value, buffer, *rest = op.operands
    operands = [arith.extui(type_, value), as_bytes(buffer), *rest]
    ir.Operation.create(op.name, [], operands, _attributes(op))


def as_bytes(buffer: Value) -> Value:
    """Return ``buffer`` as bytes if it is of truth values: in the LLVM dialect it is that anyway."""
    type_ = ir.MemRefType(buffer.type)
    if type_.element_type != ir.IntegerType.get_signless(1):
        return buffer
    seen = ir.MemRefType.get(type_.shape, ir.IntegerType.get_signless(8), type_.layout, type_.memory_space)
    return ir.Operation.create("builtin.unrealized_conversion_cast", [seen], [buffer]).result


def _attributes(op: Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}
