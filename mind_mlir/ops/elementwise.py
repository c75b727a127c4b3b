"""Elementwise operations: binary arithmetic with broadcasting, unary functions, comparison and selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops.opdef import FLOATS, Example, OpDef, OperandDef
from mind_mlir.ops.shapes import broadcast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.builder import Value
    from mind_mlir.ir.types import TensorType
    from mind_mlir.lowering.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.passes.vjp import VjpContext


def _broadcast_type(context: TypeContext) -> TensorType:
    left, right = context.operands
    return left.with_shape(broadcast(context, left.shape, right.shape))


def _same_type(context: TypeContext) -> TensorType:
    return context.operands[0]


def _add(context: EvalContext) -> Array:
    left, right = context.operands
    return np.asarray(left + right)


def _add_vjp(context: VjpContext) -> Sequence[Value | None]:
    return context.cotangent, context.cotangent


def _lower_add(context: LoweringContext) -> Any:
    return _lower_binary(context, "add", "addf", "addi")


def _lower_binary(context: LoweringContext, named: str, float_op: str, integer_op: str) -> Any:
    """Append ``linalg.<named>`` where the shapes agree, else a broadcasting `linalg.generic`."""
    result = context.result_type
    if all(type_.shape == result.shape for type_ in context.operand_types):
        return context.named(named, context.operands, context.empty(result), result)
    body = getattr(context.mlir.arith, float_op if result.dtype.is_float else integer_op)
    return context.elementwise(body)


def _exp(context: EvalContext) -> Array:
    return np.asarray(np.exp(context.operands[0]))


def _exp_vjp(context: VjpContext) -> Sequence[Value | None]:
    return (context.emit("Mul", context.cotangent, context.result),)


def _lower_exp(context: LoweringContext) -> Any:
    return context.named("exp", context.operands, context.empty(context.result_type), context.result_type)


_BROADCAST_EXAMPLES = (
    Example(("T[7, 3]", "T[7, 3]")),
    Example(("T[2, 1, 5]", "T[3, 1]"), note="both operands stretch"),
    Example(("T[]", "T[13]"), note="a scalar stretches to any shape"),
    Example(("T[]", "T[]")),
)
_UNARY_EXAMPLES = (Example(("T[7, 3]",)), Example(("T[1]",)), Example(("T[]",)))

OPERATIONS = (
    OpDef(
        opcode="Add",
        mnemonic="add",
        summary="Adds two tensors elementwise, with broadcasting.",
        description="`result[i] = lhs[i] + rhs[i]` on the right-aligned broadcast of the two shapes.",
        spec="core-ir.md, Binary operations; shapes.md, Broadcasting",
        operands=(OperandDef("lhs"), OperandDef("rhs")),
        type_rule=_broadcast_type,
        evaluate=_add,
        derivative=_add_vjp,
        lower=_lower_add,
        commutative=True,
        choices=("Integers wrap around on overflow (two's complement).",),
        examples=_BROADCAST_EXAMPLES,
    ),
    OpDef(
        opcode="Exp",
        mnemonic="exp",
        summary="Computes the exponential elementwise.",
        description="`result[i] = e ** input[i]`. Overflow gives inf, `exp(-inf)` is 0, NaN stays NaN.",
        spec="core-ir.md, Activation and elementwise unary operations",
        operands=(OperandDef("input", FLOATS),),
        type_rule=_same_type,
        evaluate=_exp,
        derivative=_exp_vjp,
        lower=_lower_exp,
        examples=_UNARY_EXAMPLES,
    ),
)
