"""Named operations of linalg."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir, linalg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Attribute, Operation, Value


def structured(name: str, inputs: Sequence[Value], init: Value, **attributes: Attribute) -> Operation:
    """Append ``linalg.<name>`` of ``inputs`` into ``init``, a tensor or a buffer, and return it."""
    op = ir.Operation.create(
        f"linalg.{name}",
        results=[init.type] if isinstance(init.type, ir.RankedTensorType) else [],
        operands=[*inputs, init],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]), **attributes},
        regions=1,
    )
    linalg.fill_builtin_region(op)
    return op


def transposed_into(value: Value, init: Value, order: Sequence[int]) -> Value:
    """Append `linalg.transpose`, whose ``order`` says which dimension of ``value`` each of ``init`` is."""
    op = linalg.TransposeOp([init.type], value, init, list(order))
    linalg.fill_builtin_region(op.operation)
    return op.results[0]
