"""Elementwise functions that Core IR does not have: tanh, erf and the reciprocal square root."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.contract import unary
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    Domain,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.pointwise import COMPLEX_ACCURACY, UNARY_EXAMPLES, full_like, lower_function, same_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext

# numpy has no erf. The C library's is within one unit in the last place of f64.
_ERF = np.frompyfunc(math.erf, 1, 1)


def _tanh(context: EvalContext) -> Array:
    return numbers.precisely(np.tanh, context.operands[0])


def _tanh_vjp(context: VjpContext) -> Sequence[Value | None]:
    # (1 - r) (1 + r) rather than 1 - r**2: where r is near 1, the difference is exact.
    one = full_like(context, 1, context.result)
    slope = context.emit(
        "Mul", context.emit("Sub", one, context.result), context.emit("Add", one, context.result)
    )
    return (context.emit("Mul", context.cotangent, slope),)


def _lower_tanh(context: LoweringContext) -> Any:
    return lower_function(context, "tanh")


def _erf(context: EvalContext) -> Array:
    return numbers.precisely(lambda x: np.asarray(_ERF(x), x.dtype), context.operands[0])


def _erf_vjp(context: VjpContext) -> Sequence[Value | None]:
    (x,) = context.operands
    bell = context.emit("Exp", context.emit("Neg", context.emit("Mul", x, x)))
    scale = full_like(context, 2 / math.sqrt(math.pi), context.result)
    return (context.emit("Mul", context.cotangent, context.emit("Mul", scale, bell)),)


def _lower_erf(context: LoweringContext) -> Any:
    return lower_function(context, "erf")


def _rsqrt(context: EvalContext) -> Array:
    return numbers.precisely(_reciprocal_root, context.operands[0])


def _reciprocal_root(x: Array) -> Array:
    inverse = numbers.divide(np.ones((), x.dtype), np.sqrt(x))
    return np.where(np.isinf(x), 0, inverse) if x.dtype.kind == "c" else inverse


def _rsqrt_vjp(context: VjpContext) -> Sequence[Value | None]:
    # One factor after the other: the cube may overflow where the product does not.
    product = context.emit("Mul", context.cotangent, full_like(context, -0.5, context.result))
    for _ in range(3):
        product = context.emit("Mul", product, context.result)
    return (product,)


def _lower_rsqrt(context: LoweringContext) -> Any:
    return lower_function(context, "rsqrt")


_SPEC = "ptir-v0.4.md, ElementwiseUnary"
_ACCURACY = (
    "The result is within two units in the last place of the exact value, not correctly rounded. Compiled, "
    "it is the same at every place, shape and optimisation level, but may differ between processors with and "
    "without fused multiply-add, and where a constant operand lets MLIR compute it."
)

OPERATIONS = (
    OpDef(
        opcode="Tanh",
        mnemonic="tanh",
        summary="Computes the hyperbolic tangent elementwise.",
        description="`result[i] = tanh(input[i])`. `tanh(+-inf)` is +-1, `tanh(-0.0)` is -0.0, NaN stays "
        "NaN. The gradient is `(1 - result) * (1 + result)` times the cotangent.",
        spec=_SPEC,
        operands=(OperandDef("input", ALL_FLOATS + COMPLEX),),
        type_rule=same_type,
        evaluate=_tanh,
        derivative=_tanh_vjp,
        lower=_lower_tanh,
        stablehlo=hlo.unary("tanh"),
        vector_operations=24,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY, f"Complex numbers are taken, too. {COMPLEX_ACCURACY}"),
        extension=True,
        never=(
            NO_NUMBERS,
            NO_FLOATS,
        ),
        contract=unary("Tanh"),
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Erf",
        mnemonic="erf",
        summary="Computes the error function elementwise.",
        description="`result[i] = 2 / sqrt(pi)` times the integral of `e ** -(t * t)` from 0 to `input[i]`. "
        "`erf(+-inf)` is +-1, `erf(-0.0)` is -0.0, NaN stays NaN. The gradient is "
        "`2 / sqrt(pi) * e ** -(input * input)` times the cotangent.",
        spec=_SPEC,
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=same_type,
        evaluate=_erf,
        derivative=_erf_vjp,
        lower=_lower_erf,
        stablehlo=hlo.erf,
        vector_operations=32,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY, "Complex numbers are not taken (E2005): it is a function of real ones here."),
        extension=True,
        never=(
            NO_NUMBERS,
            NO_FLOATS,
        ),
        refused=(
            (
                COMPLEX,
                "it is a function of real numbers here, as in C: off the real line it has no stated accuracy",
            ),
        ),
        contract=unary("Erf"),
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Rsqrt",
        mnemonic="rsqrt",
        summary="Computes the reciprocal square root elementwise.",
        description="`result[i] = 1 / sqrt(input[i])`. `rsqrt(inf)` is 0, `rsqrt(+-0.0)` is +-inf; a "
        "negative number and NaN give NaN. The gradient is `-result ** 3 / 2` times the cotangent.",
        spec=_SPEC,
        operands=(OperandDef("input", ALL_FLOATS + COMPLEX, domain=Domain.POSITIVE),),
        type_rule=same_type,
        evaluate=_rsqrt,
        derivative=_rsqrt_vjp,
        lower=_lower_rsqrt,
        stablehlo=hlo.unary("rsqrt"),
        vector_operations=16,
        rounding=Rounding.APPROXIMATE,
        choices=(
            "Either zero gives an infinity of its sign, a negative number NaN; neither is an error.",
            _ACCURACY,
            "Of complex numbers it is one divided by the square root whose real part is not negative, and 0 "
            f"of infinite ones. {COMPLEX_ACCURACY}",
        ),
        extension=True,
        never=(
            NO_NUMBERS,
            NO_FLOATS,
        ),
        contract=unary("Rsqrt"),
        examples=UNARY_EXAMPLES,
    ),
)
