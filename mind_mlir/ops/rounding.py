"""Elementwise rounding of floats to integers, in the four ways that StableHLO knows, and square roots.

IEEE 754 has all of them: the results are exact or correctly rounded, and the same on every processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.float_forms import ceil_form, floor_form, round_even_form, round_form
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    NO_ORDER,
    Alias,
    Domain,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.pointwise import UNARY_EXAMPLES, full_like, lower_function, same_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.opdef import ExpandRule
    from mind_mlir.ops.vjp import VjpContext


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    # The difference is exact. Of infinities it is NaN, and they stay.
    rounded = np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)
    return np.copysign(rounded, x)


def _rounding(
    opcode: str,
    mnemonic: str,
    function: str,
    *,
    to: str,
    rule: Callable[[Array], Any],
    form: ExpandRule,
    vector_operations: int,
) -> OpDef:
    def evaluate(context: EvalContext) -> Array:
        return numbers.apply(rule, context.operands[0])

    def lower(context: LoweringContext) -> Any:
        return lower_function(context, function)

    return OpDef(
        opcode=opcode,
        mnemonic=mnemonic,
        summary=f"Rounds a tensor to integers elementwise: to {to}.",
        description=f"`result[i]` is `input[i]` rounded to {to}; it is a float, as the operand is. Integers, "
        "infinities and both zeros stay what they are, and NaN stays NaN. The result has the sign of the "
        "operand, so that what becomes zero may be `-0.0`. The gradient is 0.",
        spec=f"StableHLO specification, {_STABLEHLO[opcode]}",
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=same_type,
        evaluate=evaluate,
        derivative=NotDifferentiable("rounding is piecewise constant", constant=True),
        lower=lower,
        stablehlo=hlo.unary(_STABLEHLO[opcode]),
        vector_operations=vector_operations,
        choices=(
            "Integer dtypes are not taken (E2005): there is nothing to round. To round to an integer dtype, "
            "`Cast` the result.",
        ),
        extension=True,
        aliases=(Alias("core-functions", f"tensor.{mnemonic}"),),
        never=(NO_NUMBERS, NO_FLOATS, NO_ORDER),
        in_contract=form,
        examples=UNARY_EXAMPLES,
    )


_STABLEHLO = {
    "Floor": "floor",
    "Ceil": "ceil",
    "RoundEven": "round_nearest_even",
    "Round": "round_nearest_afz",
}


def _sqrt(context: EvalContext) -> Array:
    return numbers.precisely(np.sqrt, context.operands[0])


def _sqrt_vjp(context: VjpContext) -> Sequence[Value | None]:
    half = full_like(context, 0.5, context.result)
    halved = context.emit("Mul", context.cotangent, half)
    # Core v1 has no Div. The reciprocal of a root is never out of range.
    return (context.emit("Mul", halved, context.emit("Reciprocal", context.result)),)


def _lower_sqrt(context: LoweringContext) -> Any:
    return lower_function(context, "sqrt")


OPERATIONS = (
    OpDef(
        opcode="Sqrt",
        mnemonic="sqrt",
        summary="Computes the square root elementwise.",
        description="`result[i] = sqrt(input[i])`, correctly rounded. `sqrt(inf)` is inf, `sqrt(-0.0)` is "
        "-0.0; a negative number and NaN give NaN. The gradient is the cotangent divided by `2 * result`.",
        spec="StableHLO specification, sqrt",
        operands=(OperandDef("input", ALL_FLOATS, domain=Domain.POSITIVE),),
        type_rule=same_type,
        evaluate=_sqrt,
        derivative=_sqrt_vjp,
        lower=_lower_sqrt,
        stablehlo=hlo.unary("sqrt"),
        vector_operations=8,
        choices=("The root of a negative number is NaN; it is no error.",),
        extension=True,
        aliases=(Alias("core-functions", "tensor.sqrt"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=(
            (COMPLEX, "its result has no stated accuracy off the real line: write `Mul (%z, %r)` of Rsqrt"),
        ),
        examples=UNARY_EXAMPLES,
    ),
    _rounding(
        "Floor",
        "floor",
        "floor",
        to="the greatest integer that is not greater",
        rule=np.floor,
        form=floor_form,
        vector_operations=1,
    ),
    _rounding(
        "Ceil",
        "ceil",
        "ceil",
        to="the least integer that is not less",
        rule=np.ceil,
        form=ceil_form,
        vector_operations=1,
    ),
    _rounding(
        "RoundEven",
        "round_even",
        "roundeven",
        to="the nearest integer, of two the even one",
        rule=np.rint,
        form=round_even_form,
        vector_operations=1,
    ),
    _rounding(
        "Round",
        "round",
        "round",
        to="the nearest integer, of two the one away from zero",
        rule=_half_away,
        form=round_form,
        vector_operations=4,
    ),
)
