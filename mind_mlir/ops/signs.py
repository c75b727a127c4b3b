"""Signs of numbers, and which floats are finite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.float_forms import is_finite_form, sign_form
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_INTEGERS,
    ALL_REAL,
    COMPLEX,
    NO_NUMBERS,
    Alias,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.pointwise import UNARY_EXAMPLES, same_type

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext


def _sign(context: EvalContext) -> Array:
    (x,) = context.operands
    wide = numbers.widened(x)
    ones = np.where(wide > 0, 1, -1).astype(wide.dtype)
    # What is neither greater nor less than zero stays: both zeros, and NaN.
    return numbers.rounded(np.where((wide > 0) | (wide < 0), ones, wide), context.result_type.dtype)


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


def _is_finite_type(context: TypeContext) -> TensorType:
    return context.operands[0].with_dtype(DType.I1)


def _is_finite(context: EvalContext) -> Array:
    return np.asarray(np.isfinite(numbers.widened(context.operands[0])))


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
    OpDef(
        opcode="Sign",
        mnemonic="sign",
        summary="Computes the signs of numbers elementwise.",
        description="`result[i]` is 1 where `input[i]` is greater than 0, -1 where it is less, and "
        "`input[i]` itself elsewhere: zeros of either sign and NaN stay what they are. The gradient is 0.",
        spec="StableHLO specification, sign",
        operands=(OperandDef("input", ALL_REAL),),
        type_rule=same_type,
        evaluate=_sign,
        derivative=NotDifferentiable("signs are piecewise constant", constant=True),
        lower=_lower_sign,
        stablehlo=hlo.sign,
        vector_operations=4,
        choices=("Unsigned integers, which StableHLO does not take, are 0 or have the sign 1.",),
        extension=True,
        aliases=(Alias("core-functions", "tensor.sign"),),
        never=(NO_NUMBERS,),
        refused=((COMPLEX, "a complex number has a direction: divide it by its magnitude"),),
        in_contract=sign_form,
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="IsFinite",
        mnemonic="is_finite",
        summary="Computes elementwise whether numbers are finite.",
        description="`result[i]` is the i1 value of `input[i]` being neither an infinity nor NaN.",
        spec="StableHLO specification, is_finite",
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=_is_finite_type,
        evaluate=_is_finite,
        derivative=NotDifferentiable("whether a number is finite is piecewise constant", constant=True),
        lower=_lower_is_finite,
        stablehlo=hlo.is_finite,
        vector_operations=2,
        choices=("Integers are not taken (E2005): all of them are finite.",),
        extension=True,
        aliases=(Alias("core-functions", "tensor.is_finite"),),
        never=(NO_NUMBERS, (ALL_INTEGERS, "all integers are finite")),
        refused=((COMPLEX, "ask the two parts, which are real"),),
        in_contract=is_finite_form,
        examples=UNARY_EXAMPLES,
    ),
)
