"""Keys that a mask hides from queries, whatever their scores: what an attention may leave out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.scalars.graph import Scalar, ordered
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.attention.program import AttentionProgram


class Visibility:
    """Finds which keys a query of an attention sees at most."""

    def __init__(self, program: AttentionProgram) -> None:
        self._p = program

    def bound(self) -> int | None:
        """Return the number ``c`` for which no key ``j > i + c`` counts; None if there is none.

        That is so where a selection makes scores there minus infinity, which has no share in a maximum, and
        whose exponential has none in a sum. Where a row's maximum is not finite, all of the row becomes NaN,
        of the keys that are looked at, too. Outputs for keys have no such row: of them it is said of finite
        tensors only (`needs_finite`). Elements that are results are all computed.
        """
        if self._p.kept:
            return None
        for node in self._p.nodes:
            bound = _hides(node, self._p.row, self._p.column)
            if bound is not None and self._without(node) and self._leaves_some(node, bound):
                return bound
        return None

    def _leaves_some(self, hidden: Scalar, bound: int) -> bool:
        """Return whether rows have a key that ``hidden`` leaves, and nothing else hides, where that matters.

        Outputs for keys have a share of rows that see no key, whose sums are not finite.
        """
        if not self._p.needs_finite:
            return True
        below = ordered(node.operands[0] for node in self._p.nodes if node.kind == "fold")
        others = [node for node in below if node.name in ("arith.select", "input") and node is not hidden]
        return bound >= 0 and hidden.operands[0].name == "arith.cmpi" and not others

    def _without(self, hidden: Scalar) -> bool:
        """Return whether an element has no share in anything where ``hidden`` is minus infinity."""
        condition = hidden.operands[0]
        values: dict[Scalar, float] = {hidden: -math.inf, condition: float(_is_infinite(hidden.operands[1]))}
        for node in self._p.nodes:
            if node not in values:
                found = _number(node) if node.kind == "constant" else self._limit(node, values)
                if found is not None:
                    values[node] = found
        for node in self._p.nodes:
            if node.kind != "fold":
                continue
            if values.get(node.operands[0]) != (0.0 if node.combiner == "arith.addf" else -math.inf):
                return False
        return all(values.get(output.node) == 0.0 for output in self._p.outputs)

    def _limit(self, node: Scalar, values: dict[Scalar, float]) -> float | None:
        """Return the number or the condition that ``node`` is, its rows being finite; None if any other."""
        known = [values.get(operand) for operand in node.operands]
        if node.kind != "op" or all(each is None for each in known):
            return None
        if node.name == "arith.select":
            return None if known[0] is None else known[1 if known[0] else 2]
        if node.name == "arith.cmpf":
            return self._compared(node, known)
        if len(known) == 1:
            return _SIMPLE[node.name](known[0]) if node.name in _SIMPLE and known[0] is not None else None
        if len(known) != 2:
            return None
        left, right = known
        if left is not None and right is not None:
            return _BOTH[node.name](left, right) if node.name in _BOTH else None
        other = node.operands[0 if left is None else 1]
        return _beside_finite(node.name, left, right) if self._is_finite(other) else None

    def _compared(self, node: Scalar, known: list[float | None]) -> float | None:
        """Return the outcome of a comparison of floats, 0 or 1."""
        assert node.op is not None
        predicate = int(ir.IntegerAttr(node.op.attributes["predicate"]).value)
        left, right = known
        if predicate not in (_EQUAL, _UNEQUAL):
            return None
        if left is not None and right is not None:
            return float((left == right) == (predicate == _EQUAL))
        other = node.operands[0 if left is None else 1]
        is_unlike = -math.inf in known and self._is_finite(other)
        return 0.0 if predicate == _EQUAL and is_unlike else None

    def _is_finite(self, node: Scalar) -> bool:
        """Return whether ``node`` may be taken to be finite: where it is not, `visible` says what happens."""
        if node.kind == "fold" or self._is_of_rows(node):
            return True
        return self._p.needs_finite and all(each.kind != "input" for each in ordered([node]))

    def _is_of_rows(self, node: Scalar) -> bool:
        return node.scored and self._p.column not in node.axes


def _number(node: Scalar) -> float | None:
    """Return the finite number that ``node`` is, if it is a constant."""
    if node.kind != "constant" or not isinstance(node.value, ir.FloatAttr):
        return None
    value = float(node.value.value)
    return value if math.isfinite(value) else None


def _beside_finite(name: str, left: float | None, right: float | None) -> float | None:
    """Return what is known of operation ``name`` of zero or minus infinity and any finite number."""
    if left == -math.inf and name in ("arith.addf", "arith.subf"):
        return left
    if right == -math.inf and name == "arith.addf":
        return right
    if name == "arith.mulf" and 0.0 in (left, right):
        return 0.0
    return 0.0 if name == "arith.divf" and left == 0.0 else None


def _positive(left: float, right: float) -> float | None:
    """Return the product of zero or minus infinity with a number, if that is either."""
    product = left * right
    return product if product in (0.0, -math.inf) else None


#: What is known of operations with one operand, and with two, that are numbers.
_SIMPLE: dict[str, Callable[[float], float | None]] = {
    "math.exp": lambda value: 0.0 if value == -math.inf else None,
    "arith.negf": lambda value: 0.0 if value == 0.0 else None,
    "arith.uitofp": lambda value: value,
    "arith.extf": lambda value: value,
    "arith.truncf": lambda value: value if value in (0.0, -math.inf) else None,
}
_BOTH: dict[str, Callable[[float, float], float | None]] = {
    "arith.addf": lambda left, right: left + right if math.inf not in (left, right) else None,
    "arith.subf": lambda left, right: left - right if math.isfinite(right) else None,
    "arith.mulf": _positive,
    "arith.divf": lambda left, right: left / right if right > 0.0 and math.isfinite(right) else None,
    "arith.ori": max,
    "arith.andi": min,
}
#: The numbers of the predicates "ordered and equal" and "unordered or not equal".
_EQUAL, _UNEQUAL = 1, 13


#: Comparisons of ``i + c`` with ``j`` that hold where a key is visible, and what ``c`` is then greater by.
_VISIBLE = {"sge": 0, "sgt": -1}
_MIRRORED = {"sle": "sge", "slt": "sgt", "sge": "sle", "sgt": "slt"}
_NEGATED = {"slt": "sge", "sle": "sgt", "sgt": "sle", "sge": "slt"}
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


def _hides(node: Scalar, row: int, column: int) -> int | None:
    """Return ``c`` if ``node`` is minus infinity wherever ``j > i + c``."""
    if node.name != "arith.select":
        return None
    condition, on, off = node.operands
    for hidden, negated in ((off, False), (on, True)):
        if _is_infinite(hidden):
            return _visible(condition, row, column, negated=negated)
    return None


def _is_infinite(node: Scalar) -> bool:
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
