"""Identities of truth values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.passes.simplify.pattern import Pattern

if TYPE_CHECKING:
    from mind_mlir.ir.module import ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Of each operation, what it leaves as it is, and what decides it.
_NEUTRAL = {"And": True, "Or": False, "Xor": False}
_DECIDES = {"And": False, "Or": True}


def _with_constant(at: Rewrite) -> ValueId | None:
    opcode = at.operation.opcode
    for value, constant in at.orders():
        truth = at.truth(constant)
        if truth is None:
            continue
        if truth is _NEUTRAL[opcode]:
            return at.as_result(value)
        if truth is _DECIDES.get(opcode):
            return at.as_result(constant)
        return at.as_result(at.emit("Not", (value,), at.type_of(value)))
    return None


def _with_itself(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    if left != right:
        return None
    return at.constant(False, DType.I1, at.type.extents) if at.operation.opcode == "Xor" else left


def _with_opposite(at: Rewrite) -> ValueId | None:
    for value, other in at.orders():
        negation = at.maker(other, "Not")
        if negation is not None and negation.operands[0] == value:
            return at.constant(at.operation.opcode != "And", DType.I1, at.type.extents)
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


_WHY = "of truth values, which are one or the other"
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
