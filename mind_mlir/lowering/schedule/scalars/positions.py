"""Selections and conditions by position: what comparisons of the indices of two axes say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.scalars.graph import Scalar

#: Comparisons of ``i + c`` with ``j`` that hold where a key is visible, and what ``c`` is then greater by.
_VISIBLE = {"sge": 0, "sgt": -1}
_MIRRORED = {"sle": "sge", "slt": "sgt", "sge": "sle", "sgt": "slt"}
_NEGATED = {"slt": "sge", "sle": "sgt", "sgt": "sle", "sge": "slt"}
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


def hides(node: Scalar, row: int, column: int) -> int | None:
    """Return ``c`` if ``node`` is minus infinity wherever ``j > i + c``."""
    if node.name != "arith.select":
        return None
    condition, on, off = node.operands
    for hidden, negated in ((off, False), (on, True)):
        if is_lowest(hidden):
            return _visible(condition, row, column, negated=negated)
    return None


def is_lowest(node: Scalar) -> bool:
    """Return whether ``node`` is minus infinity."""
    is_float = node.kind == "constant" and isinstance(node.value, ir.FloatAttr)
    return is_float and float(ir.FloatAttr(node.value).value) == -math.inf


def _visible(condition: Scalar, row: int, column: int, *, negated: bool) -> int | None:
    """Return ``c`` if ``condition``, or its contrary, is false wherever ``j > i + c``."""
    joins = "arith.ori" if negated else "arith.andi"
    if condition.name == joins:
        for operand in condition.operands:
            found = _visible(operand, row, column, negated=negated)
            if found is not None:
                return found
    if condition.op is None or condition.name != "arith.cmpi":
        return None
    number = int(ir.IntegerAttr(condition.op.attributes["predicate"]).value)
    if number >= len(_PREDICATES):
        return None
    predicate = _PREDICATES[number]
    left, right = (_affine(operand) for operand in condition.operands)
    if left is None or right is None:
        return None
    if left[0] == {column: 1}:
        left, right, predicate = right, left, _MIRRORED.get(predicate, predicate)
    if negated:
        predicate = _NEGATED.get(predicate, predicate)
    if left[0] != {row: 1} or right[0] != {column: 1} or predicate not in _VISIBLE:
        return None
    return left[1] - right[1] + _VISIBLE[predicate]


def _affine(node: Scalar) -> tuple[dict[int, int], int] | None:
    """Return an integer as a position plus a constant: by which dimension, and the constant."""
    if node.kind == "index":
        return {node.number: 1}, 0
    if node.kind == "constant":
        is_integer = isinstance(node.value, ir.IntegerAttr)
        return ({}, int(ir.IntegerAttr(node.value).value)) if is_integer else None
    if node.name in ("arith.index_cast", "arith.extsi"):
        return _affine(node.operands[0])
    if node.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = (_affine(operand) for operand in node.operands)
    if left is None or right is None or (left[0] and right[0]) or (node.name == "arith.subi" and right[0]):
        return None
    sign = 1 if node.name == "arith.addi" else -1
    return {**left[0], **right[0]}, left[1] + sign * right[1]
