"""The greater and the lesser of two numbers, elementwise with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops.contract import binary
from mind_mlir.ops.opdef import ALL_REAL, NO_NUMBERS, NO_ORDER, OpDef, OperandDef
from mind_mlir.ops.pointwise import ON_BROADCAST, elementwise, full_like, stretched, zeros_like

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext


def _greater(left: Array, right: Array) -> Array:
    # Of two zeros, numpy gives either; their sum is negative only where both are.
    return np.where((left == 0) & (right == 0), left + right, np.maximum(left, right))


def _lesser(left: Array, right: Array) -> Array:
    return np.where((left == 0) & (right == 0), -(-left + -right), np.minimum(left, right))


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


def _extreme(
    opcode: str,
    which: str,
    than: str,
    function: Callable[..., Any],
    *,
    beyond: str,
    lower: str,
    on_truths: str,
) -> OpDef:
    """Return the record of the greater or the lesser number.

    Args:
        opcode: Its opcode.
        which: Which of the two it is, ``greater`` or ``lesser``.
        than: What the operand with the gradient is: ``greater`` or ``less``.
        function: The numpy function.
        beyond: The comparison that holds where the result is rhs.
        lower: What linalg calls it.
        on_truths: What it is on truth values.
    """
    name = opcode.lower()
    return elementwise(
        opcode,
        (OperandDef("lhs", ALL_REAL), OperandDef("rhs", ALL_REAL)),
        summary=f"Computes the {which} of two tensors elementwise, with broadcasting.",
        description=f"`result[i]` is the {which} of `lhs[i]` and `rhs[i]` {ON_BROADCAST} The gradient goes "
        f"to the operand that is {than}.",
        spec="core-ir-page.md, Broadcasting rules; ptir-v0.4.md, ElementwiseBinary",
        function=function,
        derivative=lambda context: _shared(context, beyond),
        lower=(lower, name),
        stablehlo=name,
        on_truths=on_truths,
        vector_operations=2,
        keeps_zeros="always",
        choices=(
            "Where either operand is NaN, so is the result.",
            "-0.0 is less than +0.0, as for IEEE 754's maximum and minimum.",
            "Where the operands are equal, each has half of the gradient; where one is NaN, all of it goes "
            "to `lhs`.",
        ),
        never=(NO_NUMBERS, NO_ORDER),
        contract=binary(opcode),
    )


OPERATIONS = (
    _extreme("Maximum", "greater", "greater", _greater, beyond="Less", lower="max", on_truths="Or"),
    _extreme("Minimum", "lesser", "less", _lesser, beyond="Greater", lower="min", on_truths="And"),
)
