"""Elementwise functions of one operand: rectifier, exponential, logarithm and reciprocal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.contract import unary
from mind_mlir.ops.contract_forms import relu_form
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_REAL,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    Alias,
    Domain,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.pointwise import (
    COMPLEX_ACCURACY,
    UNARY_EXAMPLES,
    lower_function,
    lower_named,
    same_type,
    zeros_like,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _relu(context: EvalContext) -> Array:
    (x,) = context.operands
    return np.where(numbers.widened(x) > 0, x, np.zeros((), x.dtype))


def _relu_vjp(context: VjpContext) -> Sequence[Value | None]:
    # The result is positive exactly where the operand is. Testing the result lets the operand's memory go:
    # a following contraction keeps the result alive anyway.
    zeros = zeros_like(context, context.result)
    positive = context.emit("Compare", context.result, zeros, op="Greater")
    return (context.emit("Select", positive, context.cotangent, zeros),)


def _lower_relu(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    zero = arithmetic.constant(0)

    def body(x: Any) -> Any:
        # Not arith.maximumf, which hands a NaN through and may return either zero.
        return context.mlir.arith.select(arithmetic.compare("Greater", x, zero), x, zero)

    return context.elementwise(body)


def _exp(context: EvalContext) -> Array:
    return numbers.precisely(np.exp, context.operands[0])


def _exp_vjp(context: VjpContext) -> Sequence[Value | None]:
    return (context.emit("Mul", context.cotangent, context.result),)


def _lower_exp(context: LoweringContext) -> Any:
    return lower_function(context, "exp")


def _log(context: EvalContext) -> Array:
    return numbers.precisely(np.log, context.operands[0])


def _log_vjp(context: VjpContext) -> Sequence[Value | None]:
    return (context.emit("Mul", context.cotangent, context.emit("Reciprocal", context.operands[0])),)


def _lower_log(context: LoweringContext) -> Any:
    return lower_function(context, "log")


def _reciprocal(context: EvalContext) -> Array:
    return numbers.apply(numbers.reciprocal, context.operands[0])


def _reciprocal_vjp(context: VjpContext) -> Sequence[Value | None]:
    # g * r * r rather than g * (r * r): the square may overflow where the product does not.
    scaled = context.emit("Mul", context.cotangent, context.result)
    return (context.emit("Neg", context.emit("Mul", scaled, context.result)),)


def _lower_reciprocal(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    if arithmetic.is_native:
        return lower_named(context, "reciprocal")
    return context.elementwise(arithmetic.reciprocal)


_SPEC = "core-ir.md, Activation and elementwise unary operations"
_ACCURACY = (
    "The result is within one unit in the last place of the exact value, not correctly rounded. Compiled, it "
    "is the same at every place, shape and optimisation level, but may differ between processors with and "
    "without fused multiply-add, and where a constant operand lets MLIR compute it. Floats narrower than f32 "
    "are computed in f32 and rounded: within half a unit in the last place and the error of the f32, which "
    "is another 1/4096 of a unit for f16 and less for the others."
)

OPERATIONS = (
    OpDef(
        opcode="Relu",
        mnemonic="relu",
        summary="Computes the rectified linear unit elementwise.",
        description="`result[i] = input[i] if input[i] > 0 else 0`. Since NaN is not greater than 0, it "
        "gives 0, and so does `-0.0` (the result is `+0.0`). The gradient at 0 is 0.",
        spec=_SPEC,
        operands=(OperandDef("input", ALL_REAL),),
        type_rule=same_type,
        evaluate=_relu,
        derivative=_relu_vjp,
        lower=_lower_relu,
        stablehlo=hlo.relu,
        vector_operations=2,
        in_contract=relu_form,
        choices=("Integer dtypes are taken as well.", "NaN and -0.0 give +0.0, as the formula says."),
        aliases=(Alias("core-functions", "tensor.relu"),),
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Exp",
        mnemonic="exp",
        summary="Computes the exponential elementwise.",
        description="`result[i] = e ** input[i]`. Overflow gives inf, `exp(-inf)` is 0, NaN stays NaN.",
        spec=_SPEC,
        operands=(OperandDef("input", ALL_FLOATS + COMPLEX),),
        type_rule=same_type,
        evaluate=_exp,
        derivative=_exp_vjp,
        lower=_lower_exp,
        stablehlo=hlo.unary("exponential"),
        vector_operations=16,
        rounding=Rounding.APPROXIMATE,
        choices=(
            _ACCURACY,
            f"Of complex numbers it is `e ** x * (cos(y) + i * sin(y))`. {COMPLEX_ACCURACY}",
        ),
        aliases=(Alias("core-functions", "tensor.exp"),),
        never=(
            NO_NUMBERS,
            NO_FLOATS,
        ),
        contract=unary("Exp"),
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Log",
        mnemonic="log",
        summary="Computes the natural logarithm elementwise.",
        description="`result[i] = ln(input[i])`. `log(inf)` is inf, NaN stays NaN.",
        spec=_SPEC,
        operands=(OperandDef("input", ALL_FLOATS + COMPLEX, domain=Domain.POSITIVE),),
        type_rule=same_type,
        evaluate=_log,
        derivative=_log_vjp,
        lower=_lower_log,
        stablehlo=hlo.unary("log"),
        vector_operations=16,
        rounding=Rounding.APPROXIMATE,
        choices=(
            "Either zero gives -inf and a negative number gives NaN; neither is an error.",
            _ACCURACY,
            "Of complex numbers it is `ln(abs(z)) + i * atan2(y, x)`, cut along the negative numbers. "
            + COMPLEX_ACCURACY,
        ),
        aliases=(Alias("core-functions", "tensor.log"),),
        never=(
            NO_NUMBERS,
            NO_FLOATS,
        ),
        contract=unary("Log"),
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Reciprocal",
        mnemonic="reciprocal",
        summary="Computes the reciprocal elementwise.",
        description="`result[i] = 1 / input[i]`, correctly rounded. `1 / +-0` is +-inf, `1 / +-inf` is +-0. "
        "Gradients of `Log` need it.",
        spec="ptir-v0.4.md, ElementwiseUnary",
        operands=(OperandDef("input", ALL_FLOATS + COMPLEX, domain=Domain.POSITIVE),),
        type_rule=same_type,
        evaluate=_reciprocal,
        derivative=_reciprocal_vjp,
        lower=_lower_reciprocal,
        stablehlo=hlo.reciprocal,
        vector_operations=8,
        choices=(
            "Integers are not taken (E2005): the reciprocal of an integer is none.",
            "Of complex numbers it is Smith's: the greater part of the number divides the lesser one. That "
            "of zero is NaN in both parts.",
        ),
        extension=True,
        aliases=(Alias("core-functions", "tensor.reciprocal"),),
        never=(
            NO_NUMBERS,
            NO_FLOATS,
        ),
        contract=unary("Reciprocal"),
        examples=UNARY_EXAMPLES,
    ),
)
