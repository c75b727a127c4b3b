"""Powers with broadcasting, of floats and of integers, and cube roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
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
    BROADCAST_EXAMPLES,
    UNARY_EXAMPLES,
    broadcast_type,
    full_like,
    lower_function,
    same_type,
    stretched,
    zeros_like,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import DType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _power(context: EvalContext) -> Array:
    if context.result_type.dtype.is_integer:
        return numbers.apply(_integer_power, *context.operands)
    return numbers.in_f64(np.power, *context.operands)


def _integer_power(base: Array, exponent: Array) -> Array:
    base, exponent = np.broadcast_arrays(base, exponent)
    result, factor, left = np.ones_like(base), base, exponent
    while np.any(left > 0):
        result = np.where((left > 0) & (left % 2 == 1), result * factor, result)
        factor, left = factor * factor, left // 2
    # The reciprocal of a power, truncated: that of zero is none, and 0 here as in XLA.
    of_minus_one = np.where(exponent % 2 == 0, 1, -1) if base.dtype.kind == "i" else np.zeros_like(base)
    inverse = np.where(base == 1, 1, np.where(base + 1 == 0, of_minus_one, 0))
    return np.where(exponent < 0, inverse, result).astype(base.dtype)


def _power_vjp(context: VjpContext) -> Sequence[Value | None]:
    base, exponent = (stretched(context, operand) for operand in context.operands)
    zeros, ones = zeros_like(context, context.result), full_like(context, 1, context.result)
    of_base = of_exponent = None
    if context.needs[0]:
        # Of a power of zero there is no slope, also where the base is zero and the other factor infinite.
        constant = context.emit("Compare", exponent, zeros, op="Equal")
        power = context.emit("Power", base, context.emit("Sub", exponent, ones))
        slope = context.emit("Select", constant, zeros, context.emit("Mul", exponent, power))
        of_base = context.emit("Mul", context.cotangent, slope)
    if context.needs[1]:
        vanishes = context.emit("Compare", base, zeros, op="Equal")
        log = context.emit("Log", context.emit("Select", vanishes, ones, base))
        of_exponent = context.emit("Mul", context.cotangent, context.emit("Mul", log, context.result))
    return of_base, of_exponent


def _lower_power(context: LoweringContext) -> Any:
    dtype = context.result_type.dtype
    arithmetic = context.arithmetic(dtype)
    if not dtype.is_integer:
        return context.elementwise(lambda x, y: arithmetic.apply(context.mlir.math.powf, x, y))
    return context.elementwise(lambda x, y: _lower_integer_power(context, dtype, x, y))


def _lower_integer_power(context: LoweringContext, dtype: DType, base: Any, exponent: Any) -> Any:
    """Emit the product of those squares of squares that the bits of the exponent name."""
    arith = context.mlir.arith
    arithmetic = context.arithmetic(dtype)
    zero, one = arithmetic.constant(0), arithmetic.constant(1)
    signed = dtype.kind is DTypeKind.SIGNED
    result, factor = one, base
    digits = dtype.bits - signed
    for place in range(digits):
        bit = arith.andi(exponent, arithmetic.constant(1 << place))
        taken = arith.cmpi(arith.CmpIPredicate.ne, bit, zero)
        result = arith.select(taken, arithmetic.multiply(result, factor), result)
        if place + 1 < digits:
            factor = arithmetic.multiply(factor, factor)
    if not signed:
        return result
    minus_one, odd = arithmetic.constant(-1), arith.andi(exponent, one)
    is_odd = arith.cmpi(arith.CmpIPredicate.ne, odd, zero)
    of_minus_one = arith.select(is_odd, minus_one, one)
    inverse = arith.select(arithmetic.compare("Equal", base, minus_one), of_minus_one, zero)
    inverse = arith.select(arithmetic.compare("Equal", base, one), one, inverse)
    return arith.select(arithmetic.compare("Less", exponent, zero), inverse, result)


def _cbrt(context: EvalContext) -> Array:
    return numbers.in_f64(np.cbrt, *context.operands)


def _cbrt_vjp(context: VjpContext) -> Sequence[Value | None]:
    # One factor after the other: the square may be out of range where the product is not.
    inverse = context.emit("Reciprocal", context.result)
    product = context.emit("Mul", context.cotangent, full_like(context, 1 / 3, context.result))
    return (context.emit("Mul", context.emit("Mul", product, inverse), inverse),)


def _lower_cbrt(context: LoweringContext) -> Any:
    return lower_function(context, "cbrt")


_SAME = (
    "Compiled, it is the same at every place, shape and optimisation level, but may differ between "
    "processors with and without fused multiply-add, and where constant operands let MLIR compute it."
)

OPERATIONS = (
    OpDef(
        opcode="Power",
        mnemonic="power",
        summary="Raises a tensor to powers elementwise, with broadcasting.",
        description="`result[i] = lhs[i] ** rhs[i]` on the right-aligned broadcast of the two shapes (E3001 "
        "where they do not fit). Both operands have one dtype (E2004), which is the result's. Floats are "
        "what IEEE 754's pow gives: a negative number to a power that is no integer is NaN, and anything to "
        "the power of 0, as 1 to any power, is 1. Powers of integers wrap around; of a negative exponent, "
        "the result is that of the truncated reciprocal: 1 and -1 stay 1 or -1, all others give 0. The "
        "gradients are `rhs * lhs ** (rhs - 1)` and `ln(lhs) * result` times the cotangent.",
        spec="StableHLO specification, power",
        operands=(OperandDef("lhs", ALL_REAL, domain=Domain.POSITIVE), OperandDef("rhs", ALL_REAL)),
        type_rule=broadcast_type,
        evaluate=_power,
        derivative=_power_vjp,
        lower=_lower_power,
        stablehlo=hlo.binary("power"),
        vector_operations=60,
        rounding=Rounding.APPROXIMATE,
        choices=(
            "Floats are within two units in the last place of the exact value; those of f64 are the C "
            f"library's, one by one. {_SAME}",
            "An integer 0 to a negative power is 0: there is no number for it, and it is no error.",
            "Where the exponent is 0, no gradient flows to the base.",
            "Where the base is 0, the gradient of the exponent is 0.",
        ),
        extension=True,
        aliases=(Alias("core-functions", "tensor.power"),),
        never=(NO_NUMBERS,),
        refused=((COMPLEX, "its result has no stated accuracy here: compose it of Exp and Log"),),
        examples=BROADCAST_EXAMPLES,
    ),
    OpDef(
        opcode="Cbrt",
        mnemonic="cbrt",
        summary="Computes the cube root elementwise.",
        description="`result[i]` is the number whose third power is `input[i]`, of the same sign. "
        "Infinities, zeros and NaN stay what they are. The gradient is the cotangent divided by `3 * result "
        "** 2`.",
        spec="StableHLO specification, cbrt",
        operands=(OperandDef("input", ALL_FLOATS, domain=Domain.NONZERO),),
        type_rule=same_type,
        evaluate=_cbrt,
        derivative=_cbrt_vjp,
        lower=_lower_cbrt,
        stablehlo=hlo.unary("cbrt"),
        vector_operations=40,
        rounding=Rounding.APPROXIMATE,
        choices=(f"The result is within two units in the last place of the exact value. {_SAME}",),
        extension=True,
        aliases=(Alias("core-functions", "tensor.cbrt"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=((COMPLEX, "a complex number has three cube roots, of which none is distinguished here"),),
        examples=UNARY_EXAMPLES,
    ),
)
