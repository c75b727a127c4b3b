"""Functions of floats that StableHLO has and PTIR does not: exponential, trigonometric, powers and roots.

Those of numbers near zero stay exact where a composition of others would lose the last places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_REAL,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    Domain,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.pointwise import (
    ON_BROADCAST,
    SAME_EVERYWHERE,
    SAME_FOR_ALL,
    elementwise,
    float_function,
    full_like,
    stretched,
    within,
    zeros_like,
)

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext

# Exponentials and the logistic function


def _log1p_slope(context: VjpContext) -> Value:
    (x,) = context.operands
    return context.emit("Reciprocal", context.emit("Add", full_like(context, 1, x), x))


def _logistic(x: Array) -> Array:
    # Of magnitudes, whose exponentials are never out of range, nor is a small result lost in a difference.
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def _logistic_slope(context: VjpContext) -> Value:
    rest = context.emit("Sub", full_like(context, 1, context.result), context.result)
    return context.emit("Mul", context.result, rest)


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


# Angles


def _tan_slope(context: VjpContext) -> Value:
    one = full_like(context, 1, context.result)
    return context.emit("Add", one, context.emit("Mul", context.result, context.result))


def _atan2_vjp(context: VjpContext) -> Sequence[Value | None]:
    # Squares may be out of range: the point is brought near the unit circle first, by its signs if infinite.
    y, x = context.operands
    size = context.emit("Maximum", context.emit("Abs", y), context.emit("Abs", x))
    scale = context.emit("Reciprocal", size)
    is_far = context.emit("Compare", scale, zeros_like(context, context.result), op="Equal")
    y, x = (
        context.emit("Select", is_far, context.emit("Sign", each), context.emit("Mul", each, scale))
        for each in (stretched(context, y), stretched(context, x))
    )
    square = context.emit("Add", context.emit("Mul", y, y), context.emit("Mul", x, x))
    scaled = context.emit(
        "Mul", context.emit("Mul", context.cotangent, scale), context.emit("Reciprocal", square)
    )
    return (
        context.emit("Mul", scaled, x) if context.needs[0] else None,
        context.emit("Neg", context.emit("Mul", scaled, y)) if context.needs[1] else None,
    )


# Powers and roots


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
    """Emit the product of powers by the lower digits of the exponent and by the upper ones.

    The lower ones, as many as the binary logarithm of the width, say which squares of squares are
    multiplied. The last square of an odd base is 1 + d, where `d` is a multiple of four times the width: so
    a few terms of the binomial series are its power by the upper digits. That of an even base is 0. An
    exponent below 0 has upper digits, and the parity that counts for a base of 1 or -1; others give 0 then.
    """
    arith, arithmetic = context.mlir.arith, context.arithmetic(dtype)
    zero, one = arithmetic.constant(0), arithmetic.constant(1)
    lower = dtype.bits.bit_length() - 1
    result, factor = one, base
    for place in range(lower):
        bit = arith.andi(exponent, arithmetic.constant(1 << place))
        taken = arith.cmpi(arith.CmpIPredicate.ne, bit, zero)
        result = arith.select(taken, arith.muli(result, factor), result)
        factor = arith.muli(factor, factor)
    upper = arith.shrui(exponent, arithmetic.constant(lower))
    terms = -(-dtype.bits // (lower + 2))  # the product of so many `d` is 0
    result = arith.muli(result, _binomial_series(context, dtype, arith.subi(factor, one), upper, terms))
    has_power = arithmetic.compare("NotEqual", arith.andi(base, one), zero)
    if dtype.kind is DTypeKind.SIGNED:
        others = arith.andi(arith.addi(base, one), arithmetic.constant(-3))  # zero of 0 and 2
        is_unit = arithmetic.compare("Equal", others, zero)
        has_power = arith.select(arithmetic.compare("Less", exponent, zero), is_unit, has_power)
    has_power = arith.ori(has_power, arithmetic.compare("Equal", upper, zero))
    return arithmetic.rounded(arith.select(has_power, result, zero))


def _binomial_series(context: LoweringContext, dtype: DType, d: Any, n: Any, terms: int) -> Any:
    """Emit so many terms of `(1 + d) ** n`, that is of `1 + n d (1 + (n - 1) d/2 (1 + (n - 2) d/3 (...)))`.

    More of the last digits of `d` are zeros than divisions by two take.
    """
    arith, arithmetic = context.mlir.arith, context.arithmetic(dtype)
    one = found = arithmetic.constant(1)
    for term in reversed(range(1, terms)):
        twos = (term & -term).bit_length() - 1
        part = arith.shrui(d, arithmetic.constant(twos)) if twos else d
        inverse = pow(term >> twos, -1, 1 << dtype.bits)
        if inverse != 1:
            part = arith.muli(part, arithmetic.constant(inverse))
        left = arith.subi(n, arithmetic.constant(term - 1)) if term > 1 else n
        found = arith.addi(one, arith.muli(found, arith.muli(left, part)))
    return found


def _cbrt_vjp(context: VjpContext) -> Sequence[Value | None]:
    # One factor after the other: the square may be out of range where the product is not.
    inverse = context.emit("Reciprocal", context.result)
    product = context.emit("Mul", context.cotangent, full_like(context, 1 / 3, context.result))
    return (context.emit("Mul", context.emit("Mul", product, inverse), inverse),)


_REAL_LINE = "off the real line its result has no stated accuracy here: compose it of Exp"
_EXPONENTIAL: dict[str, Any] = {"refused": ((COMPLEX, f"{_REAL_LINE} or Log"),)}
_ANGLE_ACCURACY = (
    "The result is within two units in the last place of the exact value for all arguments, however large. "
    + SAME_EVERYWHERE
)
_ANGLE: dict[str, Any] = {"choices": (_ANGLE_ACCURACY,), "refused": ((COMPLEX, _REAL_LINE),)}

OPERATIONS = (
    float_function(
        "Log1p",
        np.log1p,
        domain=Domain.POSITIVE,
        summary="Computes the natural logarithm of one more than a number elementwise.",
        description="`result[i] = ln(1 + input[i])`, also where the sum would lose the operand's last "
        "places. `log1p(-1)` is -inf, `log1p(inf)` is inf, `log1p(-0.0)` is -0.0; less than -1 and NaN give "
        "NaN. The gradient is the cotangent divided by `1 + input`.",
        slope=_log1p_slope,
        lower="log1p",
        stablehlo="log_plus_one",
        vector_operations=24,
        choices=(within("two units"),),
        **_EXPONENTIAL,
    ),
    float_function(
        "Expm1",
        np.expm1,
        summary="Computes the exponential less one elementwise.",
        description="`result[i] = e ** input[i] - 1`, also where the exponential is near 1. Overflow gives "
        "inf, `expm1(-inf)` is -1, `expm1(-0.0)` is -0.0, NaN stays NaN. The gradient is `result + 1` times "
        "the cotangent.",
        slope=lambda context: context.emit("Add", context.result, full_like(context, 1, context.result)),
        lower="expm1",
        stablehlo="exponential_minus_one",
        vector_operations=20,
        choices=(within("two units"),),
        **_EXPONENTIAL,
    ),
    float_function(
        "Logistic",
        _logistic,
        summary="Computes the logistic function elementwise.",
        description="`result[i] = 1 / (1 + e ** -input[i])`, the sigmoid. `logistic(inf)` is 1, "
        "`logistic(-inf)` is 0, NaN stays NaN; no intermediate result overflows. The gradient is "
        "`result * (1 - result)` times the cotangent.",
        slope=_logistic_slope,
        lower=_lower_logistic,
        stablehlo=hlo.logistic,
        stablehlo_name="stablehlo.logistic",
        vector_operations=28,
        choices=(within("three units"),),
        **_EXPONENTIAL,
    ),
    float_function(
        "Sin",
        np.sin,
        summary="Computes the sine elementwise.",
        description="`result[i] = sin(input[i])`, of radians. `sin(-0.0)` is -0.0; infinities and NaN give "
        "NaN. The gradient is `cos(input)` times the cotangent.",
        slope=lambda context: context.emit("Cos", *context.operands),
        lower="sin",
        stablehlo="sine",
        vector_operations=32,
        **_ANGLE,
    ),
    float_function(
        "Cos",
        np.cos,
        summary="Computes the cosine elementwise.",
        description="`result[i] = cos(input[i])`, of radians. Infinities and NaN give NaN. The gradient is "
        "`-sin(input)` times the cotangent.",
        slope=lambda context: context.emit("Neg", context.emit("Sin", *context.operands)),
        lower="cos",
        stablehlo="cosine",
        vector_operations=32,
        **_ANGLE,
    ),
    float_function(
        "Tan",
        np.tan,
        summary="Computes the tangent elementwise.",
        description="`result[i] = tan(input[i])`, of radians. `tan(-0.0)` is -0.0; infinities and NaN give "
        "NaN. The gradient is `1 + result ** 2` times the cotangent.",
        slope=_tan_slope,
        lower="tan",
        stablehlo="tan",
        vector_operations=48,
        **_ANGLE,
    ),
    elementwise(
        "Atan2",
        (OperandDef("y", ALL_FLOATS), OperandDef("x", ALL_FLOATS)),
        summary="Computes the angles of points elementwise, with broadcasting.",
        description="`result[i]` is the angle between the positive first axis and the point `(x[i], y[i])`, "
        f"between -pi and pi, {ON_BROADCAST} Zeros, infinities and NaN give what "
        "IEEE 754's atan2 gives: the sign is that of `y`, `atan2(+-0.0, -0.0)` is +-pi. The gradients are "
        "`x` and `-y`, divided by `x ** 2 + y ** 2`, times the cotangent.",
        function=np.arctan2,
        computed=numbers.in_f64,
        derivative=_atan2_vjp,
        lower="atan2",
        stablehlo="atan2",
        in_numpy=("atan2", "arctan2"),
        vector_operations=48,
        rounding=Rounding.APPROXIMATE,
        choices=(_ANGLE_ACCURACY, "The gradient at the origin is NaN; that of infinite numbers is 0."),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_ANGLE["refused"],
    ),
    elementwise(
        "Power",
        (OperandDef("lhs", ALL_REAL, domain=Domain.POSITIVE), OperandDef("rhs", ALL_REAL)),
        summary="Raises a tensor to powers elementwise, with broadcasting.",
        description=f"`result[i] = lhs[i] ** rhs[i]` {ON_BROADCAST} Floats are "
        "what IEEE 754's pow gives: a negative number to a power that is no integer is NaN, and anything to "
        "the power of 0, as 1 to any power, is 1. Powers of integers wrap around; of a negative exponent, "
        "the result is that of the truncated reciprocal: 1 and -1 stay 1 or -1, all others give 0. The "
        "gradients are `rhs * lhs ** (rhs - 1)` and `ln(lhs) * result` times the cotangent.",
        evaluate=_power,
        derivative=_power_vjp,
        lower=_lower_power,
        stablehlo="power",
        in_numpy=("power", "pow"),
        scalar_op="math.powf",
        vector_operations=60,
        rounding=Rounding.APPROXIMATE,
        choices=(
            "Floats are within two units in the last place of the exact value, and powers of integers exact "
            "below 2^53; those of f64 are the C library's, one by one, where multiplication and addition are "
            f"not fused. {SAME_FOR_ALL}",
            "An integer 0 to a negative power is 0: there is no number for it, and it is no error.",
            "Where the exponent is 0, no gradient flows to the base.",
            "Where the base is 0, the gradient of the exponent is 0.",
        ),
        refused=((COMPLEX, "its result has no stated accuracy here: compose it of Exp and Log"),),
    ),
    float_function(
        "Cbrt",
        np.cbrt,
        domain=Domain.NONZERO,
        summary="Computes the cube root elementwise.",
        description="`result[i]` is the number whose third power is `input[i]`, of the same sign. "
        "Infinities, zeros and NaN stay what they are. The gradient is the cotangent divided by `3 * result "
        "** 2`.",
        derivative=_cbrt_vjp,
        lower="cbrt",
        stablehlo="cbrt",
        vector_operations=40,
        choices=(f"The result is within two units in the last place of the exact value. {SAME_FOR_ALL}",),
        refused=((COMPLEX, "a complex number has three cube roots, of which none is distinguished here"),),
    ),
)
