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

#: What records say of functions of complex numbers.
COMPLEX_ACCURACY = (
    "The error is within four units in the last place of the magnitude; infinities and NaN give what ISO C's "
    "annex G says."
)

#: Functions of the `math` dialect that linalg has an operation for.
_NAMED = frozenset({"exp", "log", "tanh", "erf", "rsqrt", "sqrt", "floor", "ceil", "round"})

BROADCAST_EXAMPLES = (
    Example(("T[7, 3]", "T[7, 3]")),
    Example(("T[2, 3, 37]", "T[2, 3, 37]"), note="the last extent is no multiple of a vector"),
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


def lower_binary(context: LoweringContext, named: str, method: str) -> Any:
    """Append ``linalg.<named>``, or a `linalg.generic` where shapes broadcast or it is of other numbers.

    Args:
        context: The operation.
        named: The linalg operation on signed integers and on floats that need not be converted.
        method: What `Arithmetic` calls the same on elements.
    """
    result = context.result_type
    arithmetic = context.arithmetic(result.dtype)
    equal = all(type_.shape == result.shape for type_ in context.operand_types)
    if equal and arithmetic.is_native and not arithmetic.is_unsigned:
        return lower_named(context, named)
    return context.elementwise(getattr(arithmetic, method))


def lower_function(context: LoweringContext, name: str) -> Any:
    """Append ``linalg.<name>`` where linalg has that, and a `linalg.generic` else and for what is not native.

    Args:
        context: An operation of one operand.
        name: What the `math` dialect calls it.
    """
    arithmetic = context.arithmetic(context.result_type.dtype)
    if arithmetic.is_native and name in _NAMED:
        return lower_named(context, name)
    return context.elementwise(lambda x: arithmetic.function(name, x))


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
