"""Identities of truth values, and of the bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.passes.simplify.pattern import Pattern

if TYPE_CHECKING:
    from mind_mlir.ir.module import ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Of each operation, what leaves the other operand as it is, and what decides: all bits, or none of them.
_NEUTRAL = {"And": True, "Or": False, "Xor": False}
_DECIDES = {"And": False, "Or": True}


def _bits(at: Rewrite, value: ValueId) -> bool | None:
    """Return whether a constant has all bits or none of them; None of any other value."""
    number = at.number(value)
    return next((bits for bits in (True, False) if number == _number(at.type.dtype, bits)), None)


def _number(dtype: DType, bits: bool) -> int:
    """Return what has all bits of ``dtype``, or none of them."""
    if dtype is DType.I1 or not bits:
        return bits
    return limits(dtype)[1] if dtype.kind is DTypeKind.UNSIGNED else -1


def _full(at: Rewrite, bits: bool) -> ValueId:
    return at.constant(_number(at.type.dtype, bits), at.type.dtype, at.type.extents)


def _with_constant(at: Rewrite) -> ValueId | None:
    opcode = at.operation.opcode
    for value, constant in at.orders():
        bits = _bits(at, constant)
        if bits is None:
            continue
        if bits is _NEUTRAL[opcode]:
            return at.as_result(value)
        if bits is _DECIDES.get(opcode):
            return at.as_result(constant)
        return at.as_result(at.emit("Not", (value,), at.type_of(value)))
    return None


def _with_itself(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    if left != right:
        return None
    return _full(at, bits=False) if at.operation.opcode == "Xor" else left


def _with_opposite(at: Rewrite) -> ValueId | None:
    for value, other in at.orders():
        negation = at.maker(other, "Not")
        if negation is not None and negation.operands[0] == value:
            return _full(at, bits=at.operation.opcode != "And")
    return None


def _absorbed(at: Rewrite) -> ValueId | None:
    for value, other in at.orders():
        inner = at.maker(other, "Or" if at.operation.opcode == "And" else "And")
        if inner is not None and value in inner.operands:
            return at.as_result(value)
    return None


def _twice_not(at: Rewrite) -> ValueId | None:
    negation = at.maker(at.operands[0], "Not")
    return None if negation is None else negation.operands[0]


_WHY = "of each bit, which is one or the other: false and true are no bits of an integer, and all of them"
_ALL = ("And", "Or", "Xor")

PATTERNS = (
    Pattern(
        "p and true, p or false, p xor false, p and false, p or true, p xor true",
        "p, p, p, false, true, not p",
        _WHY,
        _ALL,
        _with_constant,
    ),
    Pattern("p and p, p or p, p xor p", "p, p, false", _WHY, _ALL, _with_itself),
    Pattern("p and not p, p or not p, p xor not p", "false, true, true", _WHY, _ALL, _with_opposite),
    Pattern("p and (p or q), p or (p and q)", "p", _WHY, ("And", "Or"), _absorbed),
    Pattern("not (not p)", "p", _WHY, ("Not",), _twice_not),
)
