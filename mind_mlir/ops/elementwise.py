"""Elementwise arithmetic: addition, subtraction and multiplication with broadcasting, and negation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops.contract import binary, unary
from mind_mlir.ops.dims import adding
from mind_mlir.ops.opdef import ALL_NUMERIC, OperandDef
from mind_mlir.ops.pointwise import ON_BROADCAST, elementwise, lower_named

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.vjp import VjpContext


def _sub_vjp(context: VjpContext) -> Sequence[Value | None]:
    right = context.emit("Neg", context.cotangent) if context.needs[1] else None
    return context.cotangent, right


def _mul_vjp(context: VjpContext) -> Sequence[Value | None]:
    left, right = context.operands
    return (
        context.emit("Mul", context.cotangent, right) if context.needs[0] else None,
        context.emit("Mul", context.cotangent, left) if context.needs[1] else None,
    )


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
_SIDES = (OperandDef("lhs", ALL_NUMERIC), OperandDef("rhs", ALL_NUMERIC))
_WRAPS = "Integers wrap around on overflow (two's complement)."
_IEEE = (
    "Floats round to nearest even, once, those narrower than f32 as well; overflow gives an infinity, or NaN "
    "for fp8_e4m3, which has none, and no flag or trap is raised."
)

OPERATIONS = (
    elementwise(
        "Add",
        _SIDES,
        summary="Adds two tensors elementwise, with broadcasting.",
        description=f"`result[i] = lhs[i] + rhs[i]` {ON_BROADCAST}",
        spec=_SPEC,
        function=np.add,
        derivative=lambda context: (context.cotangent, context.cotangent),
        dims=adding,
        lower=("add", "add"),
        stablehlo="add",
        on_truths="Or",
        vector_operations=1,
        commutative=True,
        choices=(_WRAPS, _IEEE),
        extension=False,
        contract=binary("Add"),
    ),
    elementwise(
        "Sub",
        _SIDES,
        summary="Subtracts two tensors elementwise, with broadcasting.",
        description=f"`result[i] = lhs[i] - rhs[i]` {ON_BROADCAST}",
        spec=_SPEC,
        function=np.subtract,
        derivative=_sub_vjp,
        dims=adding,
        lower=("sub", "subtract"),
        stablehlo="subtract",
        in_numpy=("sub", "subtract"),
        vector_operations=1,
        choices=(_WRAPS, _IEEE),
        extension=False,
        contract=binary("Sub"),
    ),
    elementwise(
        "Mul",
        _SIDES,
        summary="Multiplies two tensors elementwise, with broadcasting.",
        description=f"`result[i] = lhs[i] * rhs[i]` {ON_BROADCAST}",
        spec=_SPEC,
        function=numbers.multiply,
        derivative=_mul_vjp,
        lower=("mul", "multiply"),
        stablehlo="multiply",
        on_truths="And",
        keeps_zeros="scaled",
        in_numpy=("mul", "multiply"),
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
        extension=False,
        contract=binary("Mul"),
    ),
    elementwise(
        "Neg",
        (OperandDef("input", ALL_NUMERIC),),
        summary="Negates a tensor elementwise.",
        description="`result[i] = -input[i]`. For floats the sign bit flips, so `-0.0` and `0.0` change "
        "places.",
        spec="core-ir.md, Activation and elementwise unary operations",
        function=np.negative,
        derivative=lambda context: (context.emit("Neg", context.cotangent),),
        dims=adding,
        lower=_lower_neg,
        stablehlo="negate",
        in_numpy=("neg", "negative"),
        keeps_zeros="always",
        vector_operations=1,
        choices=(
            "The least signed integer is its own negation; unsigned ones wrap around (two's complement).",
        ),
        extension=False,
        contract=unary("Neg"),
    ),
)
