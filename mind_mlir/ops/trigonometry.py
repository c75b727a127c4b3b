"""Sine, cosine, tangent, and the angle of a point."""

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
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _sin(context: EvalContext) -> Array:
    return numbers.in_f64(np.sin, *context.operands)


def _sin_vjp(context: VjpContext) -> Sequence[Value | None]:
    return (context.emit("Mul", context.cotangent, context.emit("Cos", context.operands[0])),)


def _lower_sin(context: LoweringContext) -> Any:
    return lower_function(context, "sin")


def _cos(context: EvalContext) -> Array:
    return numbers.in_f64(np.cos, *context.operands)


def _cos_vjp(context: VjpContext) -> Sequence[Value | None]:
    slope = context.emit("Neg", context.emit("Sin", context.operands[0]))
    return (context.emit("Mul", context.cotangent, slope),)


def _lower_cos(context: LoweringContext) -> Any:
    return lower_function(context, "cos")


def _tan(context: EvalContext) -> Array:
    return numbers.in_f64(np.tan, *context.operands)


def _tan_vjp(context: VjpContext) -> Sequence[Value | None]:
    one = full_like(context, 1, context.result)
    slope = context.emit("Add", one, context.emit("Mul", context.result, context.result))
    return (context.emit("Mul", context.cotangent, slope),)


def _lower_tan(context: LoweringContext) -> Any:
    return lower_function(context, "tan")


def _atan2(context: EvalContext) -> Array:
    return numbers.in_f64(np.arctan2, *context.operands)


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


def _lower_atan2(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    return context.elementwise(lambda y, x: arithmetic.apply(context.mlir.math.atan2, y, x))


_ACCURACY = (
    "The result is within two units in the last place of the exact value for all arguments, however large. "
    "Compiled, it is the same at every place, shape and optimisation level, but may differ between "
    "processors with and without fused multiply-add, and where a constant operand lets MLIR compute it."
)
_REAL = ((COMPLEX, "off the real line its result has no stated accuracy here: compose it of Exp"),)

OPERATIONS = (
    OpDef(
        opcode="Sin",
        mnemonic="sin",
        summary="Computes the sine elementwise.",
        description="`result[i] = sin(input[i])`, of radians. `sin(-0.0)` is -0.0; infinities and NaN give "
        "NaN. The gradient is `cos(input)` times the cotangent.",
        spec="StableHLO specification, sine",
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=same_type,
        evaluate=_sin,
        derivative=_sin_vjp,
        lower=_lower_sin,
        stablehlo=hlo.unary("sine"),
        vector_operations=32,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY,),
        extension=True,
        aliases=(Alias("core-functions", "tensor.sin"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_REAL,
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Cos",
        mnemonic="cos",
        summary="Computes the cosine elementwise.",
        description="`result[i] = cos(input[i])`, of radians. Infinities and NaN give NaN. The gradient is "
        "`-sin(input)` times the cotangent.",
        spec="StableHLO specification, cosine",
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=same_type,
        evaluate=_cos,
        derivative=_cos_vjp,
        lower=_lower_cos,
        stablehlo=hlo.unary("cosine"),
        vector_operations=32,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY,),
        extension=True,
        aliases=(Alias("core-functions", "tensor.cos"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_REAL,
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Tan",
        mnemonic="tan",
        summary="Computes the tangent elementwise.",
        description="`result[i] = tan(input[i])`, of radians. `tan(-0.0)` is -0.0; infinities and NaN give "
        "NaN. The gradient is `1 + result ** 2` times the cotangent.",
        spec="StableHLO specification, tan",
        operands=(OperandDef("input", ALL_FLOATS),),
        type_rule=same_type,
        evaluate=_tan,
        derivative=_tan_vjp,
        lower=_lower_tan,
        stablehlo=hlo.unary("tan"),
        vector_operations=48,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY,),
        extension=True,
        aliases=(Alias("core-functions", "tensor.tan"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_REAL,
        examples=UNARY_EXAMPLES,
    ),
    OpDef(
        opcode="Atan2",
        mnemonic="atan2",
        summary="Computes the angles of points elementwise, with broadcasting.",
        description="`result[i]` is the angle between the positive first axis and the point `(x[i], y[i])`, "
        "between -pi and pi, on the right-aligned broadcast of the two shapes (E3001 where they do not fit). "
        "Both operands have one dtype (E2004), which is the result's. Zeros, infinities and NaN give what "
        "IEEE 754's atan2 gives: the sign is that of `y`, `atan2(+-0.0, -0.0)` is +-pi. The gradients are "
        "`x` and `-y`, divided by `x ** 2 + y ** 2`, times the cotangent.",
        spec="StableHLO specification, atan2",
        operands=(OperandDef("y", ALL_FLOATS), OperandDef("x", ALL_FLOATS)),
        type_rule=broadcast_type,
        evaluate=_atan2,
        derivative=_atan2_vjp,
        lower=_lower_atan2,
        stablehlo=hlo.binary("atan2"),
        vector_operations=48,
        rounding=Rounding.APPROXIMATE,
        choices=(_ACCURACY, "The gradient at the origin is NaN; that of infinite numbers is 0."),
        extension=True,
        aliases=(Alias("core-functions", "tensor.atan2"),),
        never=(NO_NUMBERS, NO_FLOATS),
        refused=_REAL,
        examples=BROADCAST_EXAMPLES,
    ),
)
