"""The bits of integers: shifts, and how many are set or lead. PTIR has none of it, StableHLO all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops.opdef import ALL_FLOATS, ALL_INTEGERS, BOOL, COMPLEX, NotDifferentiable, OpDef, OperandDef
from mind_mlir.ops.pointwise import elementwise

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.arithmetic import Arithmetic
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext

_CONSTANT = NotDifferentiable("integers carry no gradient", constant=True)
_NEVER = (
    (BOOL, "a truth value has no bits to move: use And, Or, Xor and Not"),
    (ALL_FLOATS + COMPLEX, "Bitcast makes integers of the bits of floats"),
)
_CHOICE = "PTIR has no such operation; this is StableHLO's."


def unsigned(array: Array) -> Array:
    """Return the bits of integers as unsigned numbers, those of 4 bits in bytes."""
    dtype = numbers.dtype_of(array)
    wide = numbers.widened(array)
    bits = wide.view(f"u{wide.itemsize}")
    return bits & 15 if dtype.bits == 4 else bits


def _shift(context: EvalContext, function: Callable[[Array, Array, DType], Array]) -> Array:
    value, amount = context.operands
    dtype = numbers.dtype_of(value)
    found = function(value, unsigned(amount), dtype)
    if dtype.bits == 4:
        return numbers.rounded(found, dtype)
    return np.asarray(found).view(dtype.numpy)


def _left(value: Array, amount: Array, dtype: DType) -> Array:
    bits = unsigned(value)
    inside = amount < dtype.bits
    return np.where(inside, bits << np.where(inside, amount, 0), 0).astype(bits.dtype)


def _right(value: Array, amount: Array, dtype: DType) -> Array:
    bits = unsigned(value)
    inside = amount < dtype.bits
    return np.where(inside, bits >> np.where(inside, amount, 0), 0).astype(bits.dtype)


def _right_with_sign(value: Array, amount: Array, dtype: DType) -> Array:
    bits = unsigned(value)
    width = 8 * bits.itemsize
    signed = (bits << (width - dtype.bits)).view(f"i{bits.itemsize}") >> (width - dtype.bits)
    return signed >> np.minimum(amount, dtype.bits - 1).astype(signed.dtype)


def _lower_right(arithmetic: Arithmetic, context: LoweringContext, value: Any, amount: Any) -> Any:
    arith = context.mlir.arith
    if arithmetic.dtype.bits == 4 and not arithmetic.is_unsigned:
        value = arith.andi(value, _number(context, arithmetic, 15))
    return _or_nothing(arithmetic, context, arith.shrui, value, amount)


def _lower_right_with_sign(arithmetic: Arithmetic, context: LoweringContext, value: Any, amount: Any) -> Any:
    arith, most = context.mlir.arith, _number(context, arithmetic, arithmetic.dtype.bits - 1)
    if arithmetic.dtype.bits == 4 and arithmetic.is_unsigned:
        four = _number(context, arithmetic, 4)
        value = arith.shrsi(arith.shli(value, four), four)
    return arith.shrsi(value, arith.minui(amount, most))


def _or_nothing(
    arithmetic: Arithmetic, context: LoweringContext, shift: Callable[..., Any], value: Any, amount: Any
) -> Any:
    """Emit a shift, and 0 where it leaves no bit: LLVM does not say what that gives."""
    arith = context.mlir.arith
    zero, width = _number(context, arithmetic, 0), _number(context, arithmetic, arithmetic.dtype.bits)
    inside = arith.cmpi(arith.CmpIPredicate.ult, amount, width)
    return arith.select(inside, shift(value, arith.select(inside, amount, zero)), zero)


def _number(context: LoweringContext, arithmetic: Arithmetic, number: int) -> Any:
    """Emit a number of the type that elements are kept in, whatever its dtype holds."""
    ir, type_ = context.mlir.ir, arithmetic.element
    return context.mlir.arith.ConstantOp(type_, ir.IntegerAttr.get(type_, number)).result


def _shift_record(
    opcode: str,
    what: str,
    beyond: str,
    evaluate: Callable[[Array, Array, DType], Array],
    lower: Callable[..., Any],
    **facts: Any,
) -> OpDef:
    def lowered(context: LoweringContext) -> Any:
        arithmetic = context.arithmetic(context.result_type.dtype)
        return context.elementwise(
            lambda value, amount: arithmetic.rounded(lower(arithmetic, context, value, amount))
        )

    return _of_bits(
        opcode,
        (OperandDef("input", ALL_INTEGERS), OperandDef("amount", ALL_INTEGERS)),
        summary=f"Shifts the bits of integers {what}, elementwise with broadcasting.",
        description=f"`result[i]` has the bits of `input[i]` moved {what} by `amount[i]` places, on the "
        "right-aligned broadcast of the two shapes (E3001 where they do not fit). Both operands have one "
        "integer dtype (E2004), which is the result's.",
        evaluate=lambda context: _shift(context, evaluate),
        lower=lowered,
        vector_operations=3,
        choices=(
            _CHOICE,
            f"The amount counts as an unsigned number: one of the dtype's width or more, and so a negative "
            f"one, gives {beyond}.",
        ),
        **facts,
    )


def _of_bits(opcode: str, operands: tuple[OperandDef, ...], **facts: Any) -> OpDef:
    """Return the record of an operation that is StableHLO's alone."""
    return elementwise(
        opcode,
        operands,
        spec="StableHLO specification, ops",
        derivative=_CONSTANT,
        aliases=(),
        never=_NEVER,
        **facts,
    )


# Counting


def _count(context: EvalContext) -> Array:
    (value,) = context.operands
    return np.asarray(np.bitwise_count(unsigned(value)).astype(value.dtype))


def _leading(context: EvalContext) -> Array:
    (value,) = context.operands
    bits = unsigned(value)
    zeros = np.full(bits.shape, numbers.dtype_of(value).bits, np.uint8)
    while np.any(bits):
        zeros -= bits != 0
        bits = bits >> 1
    return np.asarray(zeros.astype(value.dtype))


def _lower_count(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)
    return context.elementwise(lambda x: _counted(arithmetic, context, context.mlir.math.ctpop, x))


def _lower_leading(context: LoweringContext) -> Any:
    arithmetic = context.arithmetic(context.result_type.dtype)

    def body(x: Any) -> Any:
        zeros = _counted(arithmetic, context, context.mlir.math.ctlz, x)
        if arithmetic.dtype.bits != 4:
            return zeros
        return context.mlir.arith.subi(
            zeros, _number(context, arithmetic, 4)
        )  # those of the byte's upper half

    return context.elementwise(body)


def _counted(arithmetic: Arithmetic, context: LoweringContext, count: Callable[..., Any], x: Any) -> Any:
    if arithmetic.dtype.bits == 4 and arithmetic.dtype.kind is DTypeKind.SIGNED:
        x = context.mlir.arith.andi(x, _number(context, arithmetic, 15))
    return count(x)


def _count_record(opcode: str, what: str, evaluate: Any, lower: Any, stablehlo: str) -> OpDef:
    return _of_bits(
        opcode,
        (OperandDef("input", ALL_INTEGERS),),
        summary=f"Counts the bits of integers {what}, elementwise.",
        description=f"`result[i]` is how many bits of `input[i]` {what}, in the operand's dtype, an integer.",
        evaluate=evaluate,
        lower=lower,
        stablehlo=stablehlo,
        vector_operations=4,
        choices=(_CHOICE,),
    )


OPERATIONS = (
    _shift_record(
        "ShiftLeft",
        "to the left",
        "0",
        _left,
        lambda arithmetic, context, value, amount: _or_nothing(
            arithmetic, context, context.mlir.arith.shli, value, amount
        ),
        stablehlo="shift_left",
        in_numpy=("shift_left", "left_shift", "bitwise_left_shift"),
    ),
    _shift_record(
        "ShiftRightLogical",
        "to the right, zeros coming in",
        "0",
        _right,
        _lower_right,
        stablehlo="shift_right_logical",
    ),
    _shift_record(
        "ShiftRightArithmetic",
        "to the right, the first bit staying what it is",
        "the first bit in all places",
        _right_with_sign,
        _lower_right_with_sign,
        stablehlo="shift_right_arithmetic",
    ),
    _count_record("PopulationCount", "that are set", _count, _lower_count, "popcnt"),
    _count_record(
        "CountLeadingZeros",
        "that are not set, in front of the first one that is",
        _leading,
        _lower_leading,
        "count_leading_zeros",
    ),
)
