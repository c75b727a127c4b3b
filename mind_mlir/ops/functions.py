"""Elementwise functions of one operand: the rectifier, and those that PTIR has of floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    Domain,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.pointwise import (
    COMPLEX_ACCURACY,
    elementwise,
    float_function,
    full_like,
    lower_named,
    within,
    zeros_like,
)

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.vjp import VjpContext

# numpy has no erf. The C library's is within one unit in the last place of f64.
_ERF = np.frompyfunc(math.erf, 1, 1)


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


def _reciprocal_vjp(context: VjpContext) -> Sequence[Value | None]:
    # g * r * r rather than g * (r * r): the square may overflow where the product does not.
    scaled = context.emit("Mul", context.cotangent, context.result)
    return (context.emit("Neg", context.emit("Mul", scaled, context.result)),)


def _lower_reciprocal(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    if arithmetic.is_native:
        return lower_named(context, "reciprocal")
    return context.elementwise(arithmetic.reciprocal)


def _tanh_slope(context: VjpContext) -> Value:
    # (1 - r) (1 + r) rather than 1 - r**2: where r is near 1, the difference is exact.
    one = full_like(context, 1, context.result)
    below, above = context.emit("Sub", one, context.result), context.emit("Add", one, context.result)
    return context.emit("Mul", below, above)


def _erf_slope(context: VjpContext) -> Value:
    (x,) = context.operands
    bell = context.emit("Exp", context.emit("Neg", context.emit("Mul", x, x)))
    return context.emit("Mul", full_like(context, 2 / math.sqrt(math.pi), context.result), bell)


def _reciprocal_root(x: Array) -> Array:
    inverse = numbers.divide(np.ones((), x.dtype), np.sqrt(x))
    return np.where(np.isinf(x), 0, inverse) if x.dtype.kind == "c" else inverse


def _rsqrt_vjp(context: VjpContext) -> Sequence[Value | None]:
    # One factor after the other: the cube may overflow where the product does not.
    product = context.emit("Mul", context.cotangent, full_like(context, -0.5, context.result))
    for _ in range(3):
        product = context.emit("Mul", product, context.result)
    return (product,)


_CORE = "core-ir.md, Activation and elementwise unary operations"
_PTIR = "ptir-v0.4.md, ElementwiseUnary"
_ONE_UNIT = (
    f"{within('one unit')} Floats narrower than f32 are computed in f32 and rounded: within half a unit in "
    "the last place and the error of the f32, which is another 1/4096 of a unit for f16 and less for the "
    "others."
)

OPERATIONS = (
    elementwise(
        "Relu",
        (OperandDef("input", ALL_REAL),),
        summary="Computes the rectified linear unit elementwise.",
        description="`result[i] = input[i] if input[i] > 0 else 0`. Since NaN is not greater than 0, it "
        "gives 0, and so does `-0.0` (the result is `+0.0`). The gradient at 0 is 0.",
        spec=_CORE,
        function=lambda x: np.where(x > 0, x, np.zeros((), x.dtype)),
        derivative=_relu_vjp,
        lower=_lower_relu,
        stablehlo=hlo.relu,
        vector_operations=2,
        in_contract=relu_form,
        choices=("Integer dtypes are taken as well.", "NaN and -0.0 give +0.0, as the formula says."),
        extension=False,
        never=(),
    ),
    float_function(
        "Exp",
        np.exp,
        dtypes=ALL_FLOATS + COMPLEX,
        summary="Computes the exponential elementwise.",
        description="`result[i] = e ** input[i]`. Overflow gives inf, `exp(-inf)` is 0, NaN stays NaN.",
        spec=_CORE,
        computed=numbers.precisely,
        slope=lambda context: context.result,
        lower="exp",
        stablehlo="exponential",
        vector_operations=16,
        choices=(
            _ONE_UNIT,
            f"Of complex numbers it is `e ** x * (cos(y) + i * sin(y))`. {COMPLEX_ACCURACY}",
        ),
        extension=False,
        contract=unary("Exp"),
    ),
    float_function(
        "Log",
        np.log,
        dtypes=ALL_FLOATS + COMPLEX,
        domain=Domain.POSITIVE,
        summary="Computes the natural logarithm elementwise.",
        description="`result[i] = ln(input[i])`. `log(inf)` is inf, NaN stays NaN.",
        spec=_CORE,
        computed=numbers.precisely,
        slope=lambda context: context.emit("Reciprocal", *context.operands),
        lower="log",
        stablehlo="log",
        vector_operations=16,
        choices=(
            "Either zero gives -inf and a negative number gives NaN; neither is an error.",
            _ONE_UNIT,
            "Of complex numbers it is `ln(abs(z)) + i * atan2(y, x)`, cut along the negative numbers. "
            + COMPLEX_ACCURACY,
        ),
        extension=False,
        contract=unary("Log"),
    ),
    float_function(
        "Reciprocal",
        numbers.reciprocal,
        dtypes=ALL_FLOATS + COMPLEX,
        domain=Domain.POSITIVE,
        summary="Computes the reciprocal elementwise.",
        description="`result[i] = 1 / input[i]`, correctly rounded. `1 / +-0` is +-inf, `1 / +-inf` is +-0. "
        "Gradients of `Log` need it.",
        spec=_PTIR,
        computed=numbers.apply,
        derivative=_reciprocal_vjp,
        lower=_lower_reciprocal,
        stablehlo=hlo.reciprocal,
        vector_operations=8,
        rounding=Rounding.EXACT,
        choices=(
            "Integers are not taken (E2005): the reciprocal of an integer is none.",
            "Of complex numbers it is Smith's: the greater part of the number divides the lesser one. That "
            "of zero is NaN in both parts.",
        ),
        contract=unary("Reciprocal"),
    ),
    float_function(
        "Tanh",
        np.tanh,
        dtypes=ALL_FLOATS + COMPLEX,
        summary="Computes the hyperbolic tangent elementwise.",
        description="`result[i] = tanh(input[i])`. `tanh(+-inf)` is +-1, `tanh(-0.0)` is -0.0, NaN stays "
        "NaN. The gradient is `(1 - result) * (1 + result)` times the cotangent.",
        spec=_PTIR,
        computed=numbers.precisely,
        slope=_tanh_slope,
        lower="tanh",
        stablehlo="tanh",
        vector_operations=24,
        choices=(within("two units"), f"Complex numbers are taken, too. {COMPLEX_ACCURACY}"),
        aliases=(),
        contract=unary("Tanh"),
    ),
    float_function(
        "Erf",
        lambda x: np.asarray(_ERF(x), x.dtype),
        summary="Computes the error function elementwise.",
        description="`result[i] = 2 / sqrt(pi)` times the integral of `e ** -(t * t)` from 0 to `input[i]`. "
        "`erf(+-inf)` is +-1, `erf(-0.0)` is -0.0, NaN stays NaN. The gradient is "
        "`2 / sqrt(pi) * e ** -(input * input)` times the cotangent.",
        spec=_PTIR,
        computed=numbers.precisely,
        slope=_erf_slope,
        lower="erf",
        stablehlo=hlo.erf,
        stablehlo_name="chlo.erf",
        vector_operations=32,
        choices=(
            within("two units"),
            "Complex numbers are not taken (E2005): it is a function of real ones here.",
        ),
        aliases=(),
        refused=(
            (
                COMPLEX,
                "it is a function of real numbers here, as in C: off the real line it has no stated accuracy",
            ),
        ),
        contract=unary("Erf"),
    ),
    float_function(
        "Rsqrt",
        _reciprocal_root,
        dtypes=ALL_FLOATS + COMPLEX,
        domain=Domain.POSITIVE,
        summary="Computes the reciprocal square root elementwise.",
        description="`result[i] = 1 / sqrt(input[i])`. `rsqrt(inf)` is 0, `rsqrt(+-0.0)` is +-inf; a "
        "negative number and NaN give NaN. The gradient is `-result ** 3 / 2` times the cotangent.",
        spec=_PTIR,
        computed=numbers.precisely,
        derivative=_rsqrt_vjp,
        lower="rsqrt",
        stablehlo="rsqrt",
        vector_operations=16,
        choices=(
            "Either zero gives an infinity of its sign, a negative number NaN; neither is an error.",
            within("two units"),
            "Of complex numbers it is one divided by the square root whose real part is not negative, and 0 "
            f"of infinite ones. {COMPLEX_ACCURACY}",
        ),
        aliases=(),
        contract=unary("Rsqrt"),
    ),
)
