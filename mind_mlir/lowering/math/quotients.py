"""Quotients and remainders of vectors of integers, by way of floats: processors divide these in vectors.

The quotient, rounded, is truncated to the right integer. One that is no integer is 1 / b from the next one,
n, at least, if b is the divisor. It is rounded to n only if n b is as great as two to the bits of the
significand; but n b has one bit more than the integers at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.math.bits import like
from mind_mlir.mlir.bindings import arith, ir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Operation, Value

#: What is replaced: whether integers are signed, and whether the remainder is what is asked for.
DIVISIONS = {
    "arith.divsi": (True, False),
    "arith.divui": (False, False),
    "arith.remsi": (True, True),
    "arith.remui": (False, True),
}
#: The most bits of integers that are divided as f32, and as f64.
_SHORT, _LONG = 16, 32


def divide_as_floats(operations: Iterable[Operation]) -> None:
    """Divide vectors of integers of at most 32 bits as floats, in place; by constants, LLVM multiplies.

    Args:
        operations: Those called one of `DIVISIONS`, none of which divides by zero or overflows.
    """
    for op in operations:
        left, right = op.operands
        type_ = left.type
        if not isinstance(type_, ir.VectorType) or not isinstance(type_.element_type, ir.IntegerType):
            continue
        if type_.element_type.width > _LONG or _is_constant(right):
            continue
        with ir.InsertionPoint(op), op.location:
            result = _divided(op.name, left, right)
        op.result.replace_all_uses_with(result)
        op.erase()


def _divided(name: str, left: Value, right: Value) -> Value:
    is_signed, is_remainder = DIVISIONS[name]
    to_float, to_integer = (arith.SIToFPOp, arith.FPToSIOp) if is_signed else (arith.UIToFPOp, arith.FPToUIOp)
    type_ = left.type
    element = ir.F32Type.get() if type_.element_type.width <= _SHORT else ir.F64Type.get()
    floats = [to_float(like(type_, element), each).result for each in (left, right)]
    quotient = to_integer(type_, arith.DivFOp(*floats).result).result
    if not is_remainder:
        return quotient
    return arith.SubIOp(left, arith.MulIOp(quotient, right).result).result


def _is_constant(value: Value) -> bool:
    """Return whether ``value`` is a constant, or one in all lanes."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "vector.broadcast":
        return _is_constant(owner.operands[0])
    return bool(owner.name == "arith.constant")
