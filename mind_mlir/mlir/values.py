"""The definitions of MLIR's values, where operations stand, and what tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Attribute, Block, Operation, Value


def definition(value: Value) -> Operation | None:
    """Return the operation that defines ``value``; None for a block argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def is_result_of(value: Value, *names: str) -> bool:
    """Return whether ``value`` is computed by an operation called one of ``names``."""
    op = definition(value)
    return op is not None and op.name in names


def constant_of(value: Value) -> int | None:
    """Return the integer that ``value`` is by an `arith.constant`; None where it is another value."""
    if not is_result_of(value, "arith.constant"):
        return None
    return integer_of(value.owner, "value")


def integer_of(op: Operation, name: str) -> int:
    """Return the integer that attribute ``name`` of ``op`` is."""
    return int(ir.IntegerAttr(op.attributes[name]).value)


def define(declaration: Operation, text: str, known: str = "") -> None:
    """Put the operations of a module, given as text, in the place of a declaration; not what is ``known``."""
    made = ir.Module.parse(text)
    for part in list(made.body.operations):
        if known and name_of(part.operation) == known:
            continue
        ir.InsertionPoint(declaration).insert(part.operation.detach_from_parent())
    declaration.operation.erase()


def terminator_of(block: Block) -> Operation:
    """Return the last operation of ``block``."""
    return block.operations[len(block.operations) - 1].operation


def end_with(block: Block, operands: Sequence[Value]) -> None:
    """Let the terminator of ``block`` have other operands."""
    old = terminator_of(block)
    with ir.InsertionPoint(old), old.location:
        ir.Operation.create(old.name, [], list(operands))
    old.erase()


def name_of(op: Operation) -> str:
    """Return what the module calls ``op``, a function or another symbol."""
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def callee_of(call: Operation) -> str:
    """Return the name of the function that a `func.call` calls."""
    return str(ir.FlatSymbolRefAttr(call.operation.attributes["callee"]).value)


def function_around(op: Operation) -> Operation:
    """Return the `func.func` that ``op`` stands in, or is."""
    while op.name != "func.func":
        op = op.parent.operation
    return op


def attributes_of(op: Operation) -> tuple[tuple[str, Attribute], ...]:
    """Return the attributes of an operation by their names, equal for equal ones; their map is not."""
    return tuple((name, op.attributes[name]) for name in op.attributes)


def is_defined_inside(value: Value, ancestor: Operation) -> bool:
    """Return whether ``value`` is defined in a region of ``ancestor``, at any depth."""
    block = value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
    return is_within(block.owner.operation, ancestor)


def is_within(op: Operation, ancestor: Operation) -> bool:
    """Return whether ``op`` is ``ancestor``, or stands in a region of it, at any depth."""
    around: Operation | None = op
    while around is not None:
        if around == ancestor:
            return True
        parent = around.parent
        around = None if parent is None else parent.operation
    return False
