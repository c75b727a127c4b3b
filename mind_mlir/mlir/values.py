"""The definitions of MLIR's values, and what tells operations apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Attribute, Operation, Value


def definition(value: Value) -> Operation | None:
    """Return the operation that defines ``value``; None for a block argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


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
