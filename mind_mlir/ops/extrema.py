"""The greater and the lesser of two numbers, elementwise with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.contract import binary
from mind_mlir.ops.opdef import ALL_REAL, NO_NUMBERS, NO_ORDER, Alias, OpDef, OperandDef
from mind_mlir.ops.pointwise import (
    BROADCAST_EXAMPLES,
    broadcast_type,
    full_like,
    lower_binary,
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


def _maximum(context: EvalContext) -> Array:
    return numbers.apply(_greater, *context.operands)


def _greater(left: Array, right: Array) -> Array:
    # Of two zeros, numpy gives either; their sum is negative only where both are.
    return np.where((left == 0) & (right == 0), left + right, np.maximum(left, right))


def _minimum(context: EvalContext) -> Array:
    return numbers.apply(_lesser, *context.operands)


def _lesser(left: Array, right: Array) -> Array:
    return np.where((left == 0) & (right == 0), -(-left + -right), np.minimum(left, right))


def _maximum_vjp(context: VjpContext) -> Sequence[Value | None]:
    return _shared(context, "Less")


def _minimum_vjp(context: VjpContext) -> Sequence[Value | None]:
    return _shared(context, "Greater")


def _shared(context: VjpContext, op: str) -> Sequence[Value | None]:
    """Return the cotangent for rhs where ``lhs <op> rhs``, halves where they are equal, else for lhs.

    Halves make smooth what is smooth: `max(x, y) + log1p(exp(-abs(x - y)))` has a derivative where x is y.
    """
    left, right = (stretched(context, operand) for operand in context.operands)
    zeros = zeros_like(context, context.result)
    are_equal = context.emit("Compare", left, right, op="Equal")
    half = context.emit("Mul", context.cotangent, full_like(context, 0.5, context.result))
    share = context.emit("Select", are_equal, half, context.cotangent)
    of_left = of_right = None
    if context.needs[0]:
        of_left = context.emit("Select", context.emit("Compare", left, right, op=op), zeros, share)
    if context.needs[1]:
        takes = context.emit("Compare", left, right, op=f"{op}Equal")
        of_right = context.emit("Select", takes, share, zeros)
    return of_left, of_right


def _lower_maximum(context: LoweringContext) -> Any:
    return lower_binary(context, "max", "maximum")


def _lower_minimum(context: LoweringContext) -> Any:
    return lower_binary(context, "min", "minimum")


_SPEC = "core-ir-page.md, Broadcasting rules; ptir-v0.4.md, ElementwiseBinary"
_NAN = "Where either operand is NaN, so is the result."
_ZEROS = "-0.0 is less than +0.0, as for IEEE 754's maximum and minimum."
_TIES = (
    "Where the operands are equal, each has half of the gradient; where one is NaN, all of it goes to `lhs`."
)

OPERATIONS = (
    OpDef(
        opcode="Maximum",
        mnemonic="maximum",
        summary="Computes the greater of two tensors elementwise, with broadcasting.",
        description="`result[i]` is the greater of `lhs[i]` and `rhs[i]` on the right-aligned broadcast "
        "of the two shapes (E3001 where they do not fit). Both operands have one dtype (E2004), which is "
        "the result's. The gradient goes to the operand that is greater.",
        spec=_SPEC,
        operands=(OperandDef("lhs", ALL_REAL), OperandDef("rhs", ALL_REAL)),
        type_rule=broadcast_type,
        evaluate=_maximum,
        derivative=_maximum_vjp,
        lower=_lower_maximum,
        stablehlo=hlo.binary("maximum"),
        vector_operations=2,
        choices=(_NAN, _ZEROS, _TIES),
        extension=True,
        aliases=(Alias("core-functions", "tensor.maximum"),),
        never=(
            NO_NUMBERS,
            NO_ORDER,
        ),
        contract=binary("Maximum"),
        examples=BROADCAST_EXAMPLES,
    ),
    OpDef(
        opcode="Minimum",
        mnemonic="minimum",
        summary="Computes the lesser of two tensors elementwise, with broadcasting.",
        description="`result[i]` is the lesser of `lhs[i]` and `rhs[i]` on the right-aligned broadcast of "
        "the two shapes (E3001 where they do not fit). Both operands have one dtype (E2004), which is the "
        "result's. The gradient goes to the operand that is less.",
        spec=_SPEC,
        operands=(OperandDef("lhs", ALL_REAL), OperandDef("rhs", ALL_REAL)),
        type_rule=broadcast_type,
        evaluate=_minimum,
        derivative=_minimum_vjp,
        lower=_lower_minimum,
        stablehlo=hlo.binary("minimum"),
        vector_operations=2,
        choices=(_NAN, _ZEROS, _TIES),
        extension=True,
        aliases=(Alias("core-functions", "tensor.minimum"),),
        never=(
            NO_NUMBERS,
            NO_ORDER,
        ),
        contract=binary("Minimum"),
        examples=BROADCAST_EXAMPLES,
    ),
)
