"""Elementwise arithmetic: addition, subtraction and multiplication with broadcasting, and negation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.contract import binary, unary
from mind_mlir.ops.opdef import ALL_NUMERIC, NO_NUMBERS, Alias, OpDef, OperandDef
from mind_mlir.ops.pointwise import (
    BROADCAST_EXAMPLES,
    UNARY_EXAMPLES,
    broadcast_type,
    lower_binary,
    lower_named,
    same_type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _add(context: EvalContext) -> Array:
    left, right = context.operands
    return numbers.apply(np.add, left, right)


def _add_vjp(context: VjpContext) -> Sequence[Value | None]:
    return context.cotangent, context.cotangent


def _lower_add(context: LoweringContext) -> Any:
    return lower_binary(context, "add", "add")


def _sub(context: EvalContext) -> Array:
    left, right = context.operands
    return numbers.apply(np.subtract, left, right)


def _sub_vjp(context: VjpContext) -> Sequence[Value | None]:
    right = context.emit("Neg", context.cotangent) if context.needs[1] else None
    return context.cotangent, right


def _lower_sub(context: LoweringContext) -> Any:
    return lower_binary(context, "sub", "subtract")


def _mul(context: EvalContext) -> Array:
    left, right = context.operands
    return numbers.apply(numbers.multiply, left, right)


def _mul_vjp(context: VjpContext) -> Sequence[Value | None]:
    left, right = context.operands
    return (
        context.emit("Mul", context.cotangent, right) if context.needs[0] else None,
        context.emit("Mul", context.cotangent, left) if context.needs[1] else None,
    )


def _lower_mul(context: LoweringContext) -> Any:
    return lower_binary(context, "mul", "multiply")


def _neg(context: EvalContext) -> Array:
    return numbers.apply(np.negative, context.operands[0])


def _neg_vjp(context: VjpContext) -> Sequence[Value | None]:
    return (context.emit("Neg", context.cotangent),)


def _lower_neg(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    if arithmetic.dtype.is_float and arithmetic.is_native:
        return lower_named(context, "negf")
    # arith has no integer negation, so linalg has no named one.
    if not arithmetic.dtype.is_integer:
        return context.elementwise(arithmetic.negate)
    zero = arithmetic.constant(0)
    return context.elementwise(lambda x: arithmetic.subtract(zero, x))


_SPEC = "core-ir.md, Binary operations; shapes.md, Broadcasting"
_WRAPS = "Integers wrap around on overflow (two's complement)."
_IEEE = (
    "Floats round to nearest even, once, those narrower than f32 as well; overflow gives an infinity, or NaN "
    "for fp8_e4m3, which has none, and no flag or trap is raised."
)

OPERATIONS = (
    OpDef(
        opcode="Add",
        mnemonic="add",
        summary="Adds two tensors elementwise, with broadcasting.",
        description="`result[i] = lhs[i] + rhs[i]` on the right-aligned broadcast of the two shapes (E3001 "
        "where they do not fit). Both operands have one dtype (E2004), which is the result's.",
        spec=_SPEC,
        operands=(OperandDef("lhs", ALL_NUMERIC), OperandDef("rhs", ALL_NUMERIC)),
        type_rule=broadcast_type,
        evaluate=_add,
        derivative=_add_vjp,
        lower=_lower_add,
        stablehlo=hlo.binary("add"),
        vector_operations=1,
        commutative=True,
        choices=(_WRAPS, _IEEE),
        aliases=(Alias("core-functions", "tensor.add"),),
        never=(NO_NUMBERS,),
        contract=binary("Add"),
        examples=BROADCAST_EXAMPLES,
    ),
    OpDef(
        opcode="Sub",
        mnemonic="sub",
        summary="Subtracts two tensors elementwise, with broadcasting.",
        description="`result[i] = lhs[i] - rhs[i]` on the right-aligned broadcast of the two shapes (E3001 "
        "where they do not fit). Both operands have one dtype (E2004), which is the result's.",
        spec=_SPEC,
        operands=(OperandDef("lhs", ALL_NUMERIC), OperandDef("rhs", ALL_NUMERIC)),
        type_rule=broadcast_type,
        evaluate=_sub,
        derivative=_sub_vjp,
        lower=_lower_sub,
        stablehlo=hlo.binary("subtract"),
        vector_operations=1,
        choices=(_WRAPS, _IEEE),
        aliases=(Alias("core-functions", "tensor.sub"),),
        never=(NO_NUMBERS,),
        contract=binary("Sub"),
        examples=BROADCAST_EXAMPLES,
    ),
    OpDef(
        opcode="Mul",
        mnemonic="mul",
        summary="Multiplies two tensors elementwise, with broadcasting.",
        description="`result[i] = lhs[i] * rhs[i]` on the right-aligned broadcast of the two shapes (E3001 "
        "where they do not fit). Both operands have one dtype (E2004), which is the result's.",
        spec=_SPEC,
        operands=(OperandDef("lhs", ALL_NUMERIC), OperandDef("rhs", ALL_NUMERIC)),
        type_rule=broadcast_type,
        evaluate=_mul,
        derivative=_mul_vjp,
        lower=_lower_mul,
        stablehlo=hlo.binary("multiply"),
        vector_operations=1,
        commutative=True,
        choices=(
            _WRAPS,
            _IEEE,
            "A product and a following sum round separately: they are not contracted to a fused "
            "multiply-add, except inside reductions and contractions.",
            "`(a + b i) (c + d i)` is `(a c - b d) + (a d + b c) i`, each product and sum rounded by itself: "
            "what is infinite or out of range on the way may give NaN.",
        ),
        aliases=(Alias("core-functions", "tensor.mul"),),
        never=(NO_NUMBERS,),
        contract=binary("Mul"),
        examples=BROADCAST_EXAMPLES,
    ),
    OpDef(
        opcode="Neg",
        mnemonic="neg",
        summary="Negates a tensor elementwise.",
        description="`result[i] = -input[i]`. For floats the sign bit flips, so `-0.0` and `0.0` change "
        "places.",
        spec="core-ir.md, Activation and elementwise unary operations",
        operands=(OperandDef("input", ALL_NUMERIC),),
        type_rule=same_type,
        evaluate=_neg,
        derivative=_neg_vjp,
        lower=_lower_neg,
        stablehlo=hlo.unary("negate"),
        vector_operations=1,
        choices=(
            "The least signed integer is its own negation; unsigned ones wrap around (two's complement).",
        ),
        aliases=(Alias("core-functions", "tensor.neg"),),
        never=(NO_NUMBERS,),
        contract=unary("Neg"),
        examples=UNARY_EXAMPLES,
    ),
)
