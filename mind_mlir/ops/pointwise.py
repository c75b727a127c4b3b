"""Type rules, lowering rules and examples that the elementwise families share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ops.opdef import Example
from mind_mlir.ops.shapes import broadcast

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext

UNARY_EXAMPLES = (
    Example(("T[7, 3]",)),
    Example(("T[2, 3, 37]",), note="the last extent is no multiple of a vector"),
    Example(("T[1]",)),
    Example(("T[]",)),
)

BROADCAST_EXAMPLES = (
    Example(("T[7, 3]", "T[7, 3]")),
    Example(("T[5, 37]", "T[37]"), note="a row is repeated"),
    Example(("T[5, 37]", "T[5, 1]"), note="a column is repeated"),
    Example(("T[2, 1, 5]", "T[3, 1]"), note="both operands stretch"),
    Example(("T[]", "T[13]"), note="a scalar stretches to any shape"),
    Example(("T[1, 1]", "T[1]"), note="extents of 1 on both sides"),
    Example(("T[]", "T[]")),
)


def broadcast_type(context: TypeContext) -> TensorType:
    """Type rule: the result has the broadcast of the two operands' shapes."""
    left, right = context.operands
    return left.with_shape(broadcast(context, left.shape, right.shape))


def same_type(context: TypeContext) -> TensorType:
    """Type rule: the result has the type of the first operand."""
    return context.operands[0]


def lower_named(context: LoweringContext, name: str) -> Any:
    """Append ``linalg.<name>`` of the operands, whose shapes are the result's."""
    result = context.result_type
    return context.named(name, context.operands, context.empty(result), result)


def lower_binary(context: LoweringContext, named: str, float_op: str, integer_op: str) -> Any:
    """Append ``linalg.<named>`` where the shapes agree, else a broadcasting `linalg.generic`."""
    result = context.result_type
    if all(type_.shape == result.shape for type_ in context.operand_types):
        return lower_named(context, named)
    return context.elementwise(getattr(context.mlir.arith, float_op if result.dtype.is_float else integer_op))


def full_like(context: VjpContext, number: float, value: Value) -> Value:
    """Append a tensor of the result's dtype and of ``value``'s shape, each element of it ``number``."""
    scalar = context.scalar(number)
    return context.emit("BroadcastTo", scalar, result_shape=value.shape) if value.shape else scalar


def zeros_like(context: VjpContext, value: Value) -> Value:
    """Append zeros of the result's dtype and of ``value``'s shape."""
    return full_like(context, 0, value)


def stretched(context: VjpContext, value: Value) -> Value:
    """Append ``value`` in the shape of the result, which it broadcasts to."""
    shape = context.result.shape
    return value if value.shape == shape else context.emit("BroadcastTo", value, result_shape=shape)
