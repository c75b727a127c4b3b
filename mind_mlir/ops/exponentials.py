"""Exponentials and logarithms that stay exact where their results are small, and the logistic function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    Alias,
    Domain,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.pointwise import UNARY_EXAMPLES, full_like, lower_function, same_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _log1p(context: EvalContext) -> Array:
    return numbers.in_f64(np.log1p, *context.operands)


def _log1p_vjp(context: VjpContext) -> Sequence[Value | None]:
    (x,) = context.operands
    above = context.emit("Add", full_like(context, 1, x), x)
    return (context.emit("Mul", context.cotangent, context.emit("Reciprocal", above)),)


def _lower_log1p(context: LoweringContext) -> Any:
    return lower_function(context, "log1p")


def _expm1(context: EvalContext) -> Array:
    return numbers.in_f64(np.expm1, *context.operands)


def _expm1_vjp(context: VjpContext) -> Sequence[Value | None]:
    slope = context.emit("Add", context.result, full_like(context, 1, context.result))
    return (context.emit("Mul", context.cotangent, slope),)


def _lower_expm1(context: LoweringContext) -> Any:
    return lower_function(context, "expm1")


def _logistic(context: EvalContext) -> Array:
    return numbers.in_f64(_sigmoid, *context.operands)


def _sigmoid(x: Array) -> Array:
    # Of magnitudes, whose exponentials are never out of range, nor is a small result lost in a difference.
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def _logistic_vjp(context: VjpContext) -> Sequence[Value | None]:
    rest = context.emit("Sub", full_like(context, 1, context.result), context.result)
    return (context.emit("Mul", context.cotangent, context.emit("Mul", context.result, rest)),)


def _lower_logistic(context: LoweringContext) -> Any:
    mlir = context.mlir
    arithmetic = context.arithmetic(context.result_type.dtype)

    def body(x: Any) -> Any:
        arith, math = mlir.arith, mlir.math
        one, zero = (arith.constant(x.type, mlir.ir.FloatAttr.get(x.type, each)) for each in (1.0, 0.0))
        small = math.exp(arith.negf(math.absf(x)))
        is_negative = arith.cmpf(arith.CmpFPredicate.OLT, x, zero)
        return arith.divf(arith.select(is_negative, small, one), arith.addf(one, small))

    return context.elementwise(lambda x: arithmetic.apply(body, x))


_ACCURACY = (
    "The result is within two units in the last place of the exact value, not correctly rounded. Compiled, "
    "it is the same at every place, shape and optimisation level, but may differ between processors with and "
    "without fused multiply-add, and where a constant operand lets MLIR compute it."
)
_REAL = ((COMPLEX, "off the real line its result has no stated accuracy here: compose it of Exp or Log"),)

OPERATIONS = (
    OpDef(
        opcode="Log1p",
        mnemonic="log1p",
        summary="Computes the natural logarithm of one more than a number elementwise.",
        description="`result[i] = ln(1 + input[i])`, also where the sum would lose the operand's last "
        "places. `log1p(-1)` is -inf, `log1p(inf)` is inf, `log1p(-0.0)` is -0.0; less than -1 and NaN give "
        "NaN. The gradient is the cotangent divided by `1 + input`.",
        spec="StableHLO specification, log_plus_one",
        operands=(OperandDef("input", ALL_FLOATS, domain=Domain.POSITIVE),),
        type_rule=same_type,
        evaluate=_log1p,
        derivative=_log1p_vjp,
        lower=_lower_log1p,
        stablehlo=hlo.unary("log_plus_one"),
        vector_operations=24,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY,),
        extension=True,
        aliases=(Alias("core-functions", "tensor.log1p"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_REAL,
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Expm1",
        mnemonic="expm1",
        summary="Computes the exponential less one elementwise.",
        description="`result[i] = e ** input[i] - 1`, also where the exponential is near 1. Overflow gives "
        "inf, `expm1(-inf)` is -1, `expm1(-0.0)` is -0.0, NaN stays NaN. The gradient is `result + 1` times "
        "the cotangent.",
        spec="StableHLO specification, exponential_minus_one",
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=same_type,
        evaluate=_expm1,
        derivative=_expm1_vjp,
        lower=_lower_expm1,
        stablehlo=hlo.unary("exponential_minus_one"),
        vector_operations=20,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY,),
        extension=True,
        aliases=(Alias("core-functions", "tensor.expm1"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_REAL,
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Logistic",
        mnemonic="logistic",
        summary="Computes the logistic function elementwise.",
        description="`result[i] = 1 / (1 + e ** -input[i])`, the sigmoid. `logistic(inf)` is 1, "
        "`logistic(-inf)` is 0, NaN stays NaN; no intermediate result overflows. The gradient is "
        "`result * (1 - result)` times the cotangent.",
        spec="StableHLO specification, logistic",
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=same_type,
        evaluate=_logistic,
        derivative=_logistic_vjp,
        lower=_lower_logistic,
        stablehlo=hlo.logistic,
        vector_operations=28,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY.replace("two", "three"),),
        extension=True,
        aliases=(Alias("core-functions", "tensor.logistic"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_REAL,
        examples=UNARY_EXAMPLES,
    ),
)
