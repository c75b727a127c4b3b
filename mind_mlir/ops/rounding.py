"""Rounding of floats to integers in the four ways of StableHLO, square roots, signs, and what is finite.

IEEE 754 has all of them: the results are exact or correctly rounded, and the same on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.float_forms import (
    ceil_form,
    floor_form,
    is_finite_form,
    round_even_form,
    round_form,
    sign_form,
)
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_INTEGERS,
    ALL_REAL,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    NO_ORDER,
    Domain,
    NotDifferentiable,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.pointwise import elementwise, float_function, full_like

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.rules import ExpandRule
    from mind_mlir.ops.vjp import VjpContext


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    # The difference is exact. Of infinities it is NaN, and they stay.
    rounded = np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)
    return np.copysign(rounded, x)


def _rounding(
    opcode: str,
    function: Callable[[Array], Any],
    *,
    to: str,
    lower: str,
    stablehlo: str,
    form: ExpandRule,
    vector_operations: int = 1,
    in_numpy: tuple[str, ...] | None = None,
) -> OpDef:
    return float_function(
        opcode,
        function,
        summary=f"Rounds a tensor to integers elementwise: to {to}.",
        description=f"`result[i]` is `input[i]` rounded to {to}; it is a float, as the operand is. Integers, "
        "infinities and both zeros stay what they are, and NaN stays NaN. The result has the sign of the "
        "operand, so that what becomes zero may be `-0.0`. The gradient is 0.",
        computed=numbers.apply,
        derivative=NotDifferentiable("rounding is piecewise constant", constant=True),
        lower=lower,
        stablehlo=stablehlo,
        keeps_integers=True,
        in_numpy=in_numpy,
        vector_operations=vector_operations,
        rounding=Rounding.EXACT,
        choices=(
            "Integer dtypes are not taken (E2005): there is nothing to round. To round to an integer dtype, "
            "`Cast` the result.",
        ),
        never=(NO_NUMBERS, NO_FLOATS, NO_ORDER),
        in_contract=form,
    )


def _sqrt_vjp(context: VjpContext) -> Sequence[Value | None]:
    half = full_like(context, 0.5, context.result)
    halved = context.emit("Mul", context.cotangent, half)
    # Core v1 has no Div. The reciprocal of a root is never out of range.
    return (context.emit("Mul", halved, context.emit("Reciprocal", context.result)),)


def _sign(x: Array) -> Array:
    ones = np.where(x > 0, 1, -1).astype(x.dtype)
    # What is neither greater nor less than zero stays: both zeros, and NaN.
    return np.where((x > 0) | (x < 0), ones, x)


def _lower_sign(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    zero, one = arithmetic.constant(0), arithmetic.constant(1)
    unsigned = context.result_type.dtype.kind is DTypeKind.UNSIGNED
    minus_one = zero if unsigned else arithmetic.constant(-1)

    def body(x: Any) -> Any:
        select = context.mlir.arith.select
        rest = x if unsigned else select(arithmetic.compare("Less", x, zero), minus_one, x)
        return select(arithmetic.compare("Greater", x, zero), one, rest)

    return context.elementwise(body)


def _lower_is_finite(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.operand_types[0].dtype)
    mlir = context.mlir

    def body(x: Any) -> Any:
        wide = arithmetic.widened(x)
        infinity = mlir.arith.constant(wide.type, mlir.ir.FloatAttr.get(wide.type, math.inf))
        # Comparisons with NaN are false.
        return mlir.arith.cmpf(mlir.arith.CmpFPredicate.OLT, mlir.math.absf(wide), infinity)

    return context.elementwise(body)


OPERATIONS = (
    float_function(
        "Sqrt",
        np.sqrt,
        domain=Domain.POSITIVE,
        summary="Computes the square root elementwise.",
        description="`result[i] = sqrt(input[i])`, correctly rounded. `sqrt(inf)` is inf, `sqrt(-0.0)` is "
        "-0.0; a negative number and NaN give NaN. The gradient is the cotangent divided by `2 * result`.",
        computed=numbers.precisely,
        derivative=_sqrt_vjp,
        lower="sqrt",
        stablehlo="sqrt",
        vector_operations=8,
        rounding=Rounding.EXACT,
        choices=("The root of a negative number is NaN; it is no error.",),
        refused=(
            (COMPLEX, "its result has no stated accuracy off the real line: write `Mul (%z, %r)` of Rsqrt"),
        ),
    ),
    _rounding(
        "Floor",
        np.floor,
        to="the greatest integer that is not greater",
        lower="floor",
        stablehlo="floor",
        form=floor_form,
    ),
    _rounding(
        "Ceil",
        np.ceil,
        to="the least integer that is not less",
        lower="ceil",
        stablehlo="ceil",
        form=ceil_form,
    ),
    _rounding(
        "RoundEven",
        np.rint,
        to="the nearest integer, of two the even one",
        lower="roundeven",
        stablehlo="round_nearest_even",
        form=round_even_form,
        in_numpy=("round_even", "rint", "round"),
    ),
    _rounding(
        "Round",
        _half_away,
        to="the nearest integer, of two the one away from zero",
        lower="round",
        stablehlo="round_nearest_afz",
        form=round_form,
        vector_operations=4,
        in_numpy=("round_half_away",),  # numpy's round is that to even
    ),
    elementwise(
        "Sign",
        (OperandDef("input", ALL_REAL),),
        summary="Computes the signs of numbers elementwise.",
        description="`result[i]` is 1 where `input[i]` is greater than 0, -1 where it is less, and "
        "`input[i]` itself elsewhere: zeros of either sign and NaN stay what they are. The gradient is 0.",
        function=_sign,
        derivative=NotDifferentiable("signs are piecewise constant", constant=True),
        lower=_lower_sign,
        stablehlo=hlo.sign,
        stablehlo_name="stablehlo.sign",
        vector_operations=4,
        choices=("Unsigned integers, which StableHLO does not take, are 0 or have the sign 1.",),
        refused=((COMPLEX, "a complex number has a direction: divide it by its magnitude"),),
        in_contract=sign_form,
    ),
    elementwise(
        "IsFinite",
        (OperandDef("input", ALL_FLOATS),),
        summary="Computes elementwise whether numbers are finite.",
        description="`result[i]` is the i1 value of `input[i]` being neither an infinity nor NaN.",
        type_rule=lambda context: context.operands[0].with_dtype(DType.I1),
        evaluate=lambda context: np.asarray(np.isfinite(numbers.widened(context.operands[0]))),
        derivative=NotDifferentiable("whether a number is finite is piecewise constant", constant=True),
        lower=_lower_is_finite,
        stablehlo=lambda context: context.emit("is_finite", list(context.operands), context.result_type),
        stablehlo_name="stablehlo.is_finite",
        in_numpy=("is_finite", "isfinite"),
        vector_operations=2,
        choices=("Integers are not taken (E2005): all of them are finite.",),
        never=(NO_NUMBERS, (ALL_INTEGERS, "all integers are finite")),
        refused=((COMPLEX, "ask the two parts, which are real"),),
        in_contract=is_finite_form,
    ),
)
