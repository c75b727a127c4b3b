"""Magnitudes, numbers held within limits, and values that carry no gradient, as PTIR has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.contract import Contract, unary
from mind_mlir.ops.dims import elementwise as elementwise_dims
from mind_mlir.ops.opdef import (
    ALL_REAL,
    COMPLEX,
    EVERY,
    NO_NUMBERS,
    NO_ORDER,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.open_rules import elementwise as open_elementwise
from mind_mlir.ops.pointwise import elementwise, equal_type, lower_named, zeros_like

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _abs(context: EvalContext) -> Array:
    (x,) = context.operands
    dtype = context.result_type.dtype
    if dtype.kind is DTypeKind.UNSIGNED:
        return x.copy()
    # Each dtype has a wide one that holds its magnitudes, of which the low bits are kept; i64 is that itself.
    wide = np.asarray(x, np.float64 if dtype.is_float else np.int64)
    return numbers.rounded(np.abs(wide), dtype)


def _abs_vjp(context: VjpContext) -> Sequence[Value | None]:
    (x,) = context.operands
    zeros = zeros_like(context, x)
    positive = context.emit("Compare", x, zeros, op="Greater")
    negative = context.emit("Compare", x, zeros, op="Less")
    downwards = context.emit("Select", negative, context.emit("Neg", context.cotangent), zeros)
    return (context.emit("Select", positive, context.cotangent, downwards),)


def _lower_abs(context: LoweringContext) -> Any:
    dtype = context.result_type.dtype
    arithmetic = context.arithmetic(dtype)
    if arithmetic.is_unsigned:
        return context.operands[0]
    if not dtype.is_float:
        return context.elementwise(lambda x: arithmetic.maximum(x, arithmetic.negate(x)))
    if arithmetic.is_native:
        return lower_named(context, "abs")
    return context.elementwise(lambda x: arithmetic.apply(context.mlir.math.absf, x))


def _held(x: Array, low: Array, high: Array) -> Array:
    # Of two zeros, numpy gives either; their sum is negative only where both are.
    raised = np.where((x == 0) & (low == 0), x + low, np.maximum(x, low))
    return np.where((raised == 0) & (high == 0), -(-raised + -high), np.minimum(raised, high))


def _clamp_vjp(context: VjpContext) -> Sequence[Value | None]:
    x, low, high = context.operands
    zeros = zeros_like(context, context.result)
    is_low = context.emit("Compare", x, low, op="Less")
    raised = context.emit("Maximum", x, low)
    is_high = context.emit("Compare", raised, high, op="Greater")
    within = context.emit("Select", is_high, zeros, context.cotangent)
    return (
        context.emit("Select", is_low, zeros, within) if context.needs[0] else None,
        context.emit("Select", is_low, within, zeros) if context.needs[1] else None,
        context.emit("Select", is_high, context.cotangent, zeros) if context.needs[2] else None,
    )


def _lower_clamp(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    return context.elementwise(lambda x, low, high: arithmetic.minimum(arithmetic.maximum(x, low), high))


OPERATIONS = (
    elementwise(
        "Abs",
        (OperandDef("input", ALL_REAL),),
        summary="Computes the absolute value elementwise.",
        description="`result[i]` is `input[i]` without its sign. For floats the sign bit is cleared, so "
        "`-0.0` gives `0.0` and NaN stays NaN; unsigned integers stay what they are. The gradient is the "
        "cotangent times the sign of the operand.",
        spec="ptir-v0.4.md, ElementwiseUnary",
        evaluate=_abs,
        derivative=_abs_vjp,
        lower=_lower_abs,
        stablehlo=hlo.magnitude,
        stablehlo_name="stablehlo.abs",
        in_numpy=("abs", "absolute"),
        vector_operations=1,
        choices=(
            "The least signed integer is its own absolute value (two's complement).",
            "The gradient is 0 where the operand is 0 or NaN.",
            "Complex numbers are not taken (E2005): the result has the dtype of the operand, and the "
            "absolute value of a complex number is a real one.",
        ),
        aliases=(),
        never=(NO_NUMBERS, (COMPLEX, "magnitudes are real, but the result has the dtype of the operand")),
        contract=unary("Abs"),
    ),
    OpDef(
        opcode="Clamp",
        summary="Holds a tensor between two others elementwise.",
        description="`result[i] = min(max(x[i], lo[i]), hi[i])`. All operands have one dtype (E2004) and one "
        "shape (E3002, E3003): nothing is broadcast. The gradient goes to the operand that is chosen.",
        spec="ptir-v0.4.md, Clamp",
        operands=(OperandDef("x", ALL_REAL), OperandDef("lo", ALL_REAL), OperandDef("hi", ALL_REAL)),
        type_rule=equal_type,
        evaluate=lambda context: numbers.apply(_held, *context.operands),
        derivative=_clamp_vjp,
        lower=_lower_clamp,
        stablehlo=lambda c: c.emit("clamp", [c.operands[1], c.operands[0], c.operands[2]], c.result_type),
        vector_operations=4,
        choices=(
            "Where `lo` is greater than `hi`, the result is `hi`.",
            "Where any operand is NaN, so is the result; -0.0 is less than +0.0.",
            "Where `x` equals a limit, the gradient goes to `x`; where the limits are equal and `x` is less, "
            "to `lo`. No gradient goes to a limit because something is NaN.",
        ),
        extension=True,
        never=(NO_NUMBERS, NO_ORDER),
        contract=Contract("Clamp"),
        examples=(
            Example(("T[7, 3]", "T[7, 3]", "T[7, 3]")),
            Example(
                ("T[2, 3, 37]", "T[2, 3, 37]", "T[2, 3, 37]"),
                note="the last extent is no multiple of a vector",
            ),
            Example(("T[1]", "T[1]", "T[1]")),
            Example(("T[]", "T[]", "T[]")),
        ),
    ),
    elementwise(
        "StopGradient",
        (OperandDef("input", EVERY),),
        summary="Returns its operand, to which no gradient flows.",
        description="`result = input`, bit for bit. Differentiation counts the result as a constant.",
        spec="ptir-v0.4.md, StopGradient",
        evaluate=lambda context: context.operands[0].copy(),
        derivative=NotDifferentiable("it is there to stop gradients", constant=True),
        dims=elementwise_dims,
        open_axes=open_elementwise,
        lower=lambda context: context.operands[0],
        stablehlo=lambda context: context.operands[0],
        aliases=(),
        never=(),
        contract=Contract("StopGradient"),
    ),
)
