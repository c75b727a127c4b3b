"""Elementwise functions that Core IR does not have: tanh, erf and the reciprocal square root."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops.contract import Contract
from mind_mlir.ops.opdef import FLOATS, Domain, OpDef, OperandDef, Rounding
from mind_mlir.ops.pointwise import UNARY_EXAMPLES, full_like, lower_named, same_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext

# numpy has no erf. The C library's is within one unit in the last place of f64.
_ERF = np.frompyfunc(math.erf, 1, 1)


def _rounded(context: EvalContext, values: Any) -> Array:
    """Return ``values``, computed in f64, in the dtype of the operand."""
    return np.asarray(values, context.operands[0].dtype)


def _wide(context: EvalContext) -> Array:
    (x,) = context.operands
    return x if x.dtype.kind == "c" else np.asarray(x, np.float64)


def _tanh(context: EvalContext) -> Array:
    return _rounded(context, np.tanh(_wide(context)))


def _tanh_vjp(context: VjpContext) -> Sequence[Value | None]:
    # (1 - r) (1 + r) rather than 1 - r**2: where r is near 1, the difference is exact.
    one = full_like(context, 1, context.result)
    slope = context.emit(
        "Mul", context.emit("Sub", one, context.result), context.emit("Add", one, context.result)
    )
    return (context.emit("Mul", context.cotangent, slope),)


def _lower_tanh(context: LoweringContext) -> Any:
    return _lower(context, "tanh")


def _erf(context: EvalContext) -> Array:
    return _rounded(context, np.asarray(_ERF(_wide(context)), np.float64))


def _erf_vjp(context: VjpContext) -> Sequence[Value | None]:
    (x,) = context.operands
    bell = context.emit("Exp", context.emit("Neg", context.emit("Mul", x, x)))
    scale = full_like(context, 2 / math.sqrt(math.pi), context.result)
    return (context.emit("Mul", context.cotangent, context.emit("Mul", scale, bell)),)


def _lower_erf(context: LoweringContext) -> Any:
    return _lower(context, "erf")


def _rsqrt(context: EvalContext) -> Array:
    return _rounded(context, 1 / np.sqrt(_wide(context)))


def _rsqrt_vjp(context: VjpContext) -> Sequence[Value | None]:
    # One factor after the other: the cube may overflow where the product does not.
    product = context.emit("Mul", context.cotangent, full_like(context, -0.5, context.result))
    for _ in range(3):
        product = context.emit("Mul", product, context.result)
    return (product,)


def _lower_rsqrt(context: LoweringContext) -> Any:
    return _lower(context, "rsqrt")


def _lower(context: LoweringContext, name: str) -> Any:
    """Append operation ``name`` of the `math` dialect of each element; narrow floats are computed in f32."""
    arithmetic = context.arithmetic(context.result_type.dtype)
    if arithmetic.is_native:
        return lower_named(context, name)
    function = getattr(context.mlir.math, name)
    return context.elementwise(lambda x: arithmetic.apply(function, x))


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
        operands=(OperandDef("input", FLOATS),),
        type_rule=same_type,
        evaluate=_tanh,
        derivative=_tanh_vjp,
        lower=_lower_tanh,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY,),
        extension=True,
        contract=Contract("ElementwiseUnary", "Tanh"),
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
        operands=(OperandDef("input", FLOATS),),
        type_rule=same_type,
        evaluate=_erf,
        derivative=_erf_vjp,
        lower=_lower_erf,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY,),
        extension=True,
        contract=Contract("ElementwiseUnary", "Erf"),
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Rsqrt",
        mnemonic="rsqrt",
        summary="Computes the reciprocal square root elementwise.",
        description="`result[i] = 1 / sqrt(input[i])`. `rsqrt(inf)` is 0, `rsqrt(+-0.0)` is +-inf; a "
        "negative number and NaN give NaN. The gradient is `-result ** 3 / 2` times the cotangent.",
        spec=_SPEC,
        operands=(OperandDef("input", FLOATS, domain=Domain.POSITIVE),),
        type_rule=same_type,
        evaluate=_rsqrt,
        derivative=_rsqrt_vjp,
        lower=_lower_rsqrt,
        rounding=Rounding.APPROXIMATE,
        choices=(
            "Either zero gives an infinity of its sign, a negative number NaN; neither is an error.",
            _ACCURACY,
        ),
        extension=True,
        contract=Contract("ElementwiseUnary", "Rsqrt"),
        examples=UNARY_EXAMPLES,
    ),
)
