"""What is known of scalars where positions hide them, and where some are zero or minus infinity."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.values import integer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mind_mlir.lowering.schedule.scalars.graph import Scalar


def hides(node: Scalar, row: int, column: int) -> int | None:
    """Return ``c`` if ``node`` is minus infinity wherever ``j > i + c``, ``i`` along ``row``."""
    if node.name != "arith.select":
        return None
    condition, on, off = node.operands
    for hidden, negated in ((off, False), (on, True)):
        if is_lowest(hidden):
            return _visible(condition, row, column, negated=negated)
    return None


def is_lowest(node: Scalar) -> bool:
    """Return whether ``node`` is minus infinity."""
    return isinstance(node.value, ir.FloatAttr) and float(node.value.value) == -math.inf


def _visible(condition: Scalar, row: int, column: int, *, negated: bool) -> int | None:
    """Return ``c`` if ``condition``, or its contrary, is false wherever ``j > i + c``."""
    if condition.name == ("arith.ori" if negated else "arith.andi"):
        for operand in condition.operands:
            found = _visible(operand, row, column, negated=negated)
            if found is not None:
                return found
    difference = _sum(condition)
    if condition.op is None or condition.name != "arith.cmpi" or difference is None:
        return None
    sign, strict = _SIGNS.get(integer_of(condition.op, "predicate"), (0, False))
    if negated:
        sign, strict = -sign, not strict
    constant = difference.pop(None, 0)
    factors = {axis: factor for axis, factor in difference.items() if factor}
    return sign * constant - strict if sign and factors == {row: sign, column: -sign} else None


def _sum(node: Scalar) -> Counter[int | None] | None:
    """Return an integer, of a comparison the difference of its sides, as a sum.

    It has the factor of each axis, and by None what is added to that.
    """
    if node.kind == "index":
        return Counter({node.number: 1})
    if isinstance(node.value, ir.IntegerAttr):
        return Counter({None: int(node.value.value)})
    if node.name in ("arith.index_cast", "arith.extsi"):
        return _sum(node.operands[0])
    if node.name not in ("arith.addi", "arith.subi", "arith.cmpi"):
        return None
    left, right = (_sum(operand) for operand in node.operands)
    if left is None or right is None:
        return None
    for axis, factor in right.items():
        left[axis] += factor if node.name == "arith.addi" else -factor
    return left


def limits(
    scalars: Iterable[Scalar], known: Mapping[Scalar, float], is_finite: Callable[[Scalar], bool]
) -> dict[Scalar, float]:
    """Return the numbers, and the conditions as 0 or 1, that scalars are.

    Args:
        scalars: The scalars, operands first.
        known: What some of them are.
        is_finite: Whether a scalar of which nothing else is known may be taken to be finite.
    """
    values = dict(known)
    for scalar in scalars:
        if scalar not in values:
            found = _number(scalar) if scalar.kind == "constant" else _limit(scalar, values, is_finite)
            if found is not None:
                values[scalar] = found
    return values


def _limit(node: Scalar, values: Mapping[Scalar, float], is_finite: Callable[[Scalar], bool]) -> float | None:
    """Return the number or the condition that ``node`` is; None if that is not known."""
    known = [values.get(operand) for operand in node.operands]
    if node.op is None or all(each is None for each in known):
        return None
    if node.name == "arith.select":
        return None if known[0] is None else known[1 if known[0] else 2]
    if not all(each is not None or is_finite(node.operands[place]) for place, each in enumerate(known)):
        return None
    if node.name == "arith.cmpf":
        equal = _EQUALITIES.get(integer_of(node.op, "predicate"))
        is_open = equal is None or (None in known and -math.inf not in known)
        return None if is_open else float((known[0] == known[1]) == equal)
    if node.name not in _RULES:
        return None
    choices = (some if each is None else (each,) for each, some in zip(known, _ANY, strict=False))
    found, *others = (_RULES[node.name](*each) for each in itertools.product(*choices))
    is_known = -math.inf <= found < math.inf and all(other == found for other in others)
    return found if is_known else None


def _number(node: Scalar) -> float | None:
    """Return the finite number that ``node`` is, if it is a constant."""
    if node.kind != "constant" or not isinstance(node.value, ir.FloatAttr):
        return None
    value = float(node.value.value)
    return value if math.isfinite(value) else None


#: Finite numbers that stand for any, of either operand: what all of them give does not depend on them.
_ANY = ((3.0, -5.0), (-7.0, 11.0))


def _unless_rounded(value: float) -> float:
    """Return a number that rounding leaves as it is; NaN stands for what is not known."""
    return value if value in (0.0, -math.inf) else math.nan


_RULES: dict[str, Callable[..., float]] = {
    "math.exp": lambda value: 0.0 if value == -math.inf else math.nan,
    "arith.negf": lambda value: _unless_rounded(-value),
    "arith.uitofp": lambda value: value,
    "arith.extf": lambda value: value,
    "arith.truncf": _unless_rounded,
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": lambda left, right: _unless_rounded(left * right),
    "arith.divf": lambda left, right: left / right if right and math.isfinite(right) else math.nan,
    "arith.ori": max,
    "arith.andi": min,
}
#: What the predicates "ordered and equal" and "unordered or not equal" say of equal numbers.
_EQUALITIES = {1: True, 13: False}
#: The sign that a difference has where signed comparisons hold, by their numbers, and whether it is not zero.
_SIGNS = {2: (-1, True), 3: (-1, False), 4: (1, True), 5: (1, False)}
