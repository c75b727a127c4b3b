"""Where MLIR's values come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.bindings import Operation, Value


def definition(value: Value) -> Operation | None:
    """Return the operation that defines ``value``; None for a block argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation
