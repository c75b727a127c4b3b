"""Identities of comparisons and selections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.passes.simplify.pattern import Pattern

if TYPE_CHECKING:
    from mind_mlir.ir.module import ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

_OPPOSITE = {
    "Less": "GreaterEqual",
    "LessEqual": "Greater",
    "Equal": "NotEqual",
    "GreaterEqual": "Less",
    "Greater": "LessEqual",
    "NotEqual": "Equal",
}
#: The same with the operands the other way round.
_MIRRORED = {
    "Less": "Greater",
    "LessEqual": "GreaterEqual",
    "Equal": "Equal",
    "GreaterEqual": "LessEqual",
    "Greater": "Less",
    "NotEqual": "NotEqual",
}
#: What a comparison of a number with itself gives.
_OF_EQUALS = {
    "Less": False,
    "LessEqual": True,
    "Equal": True,
    "GreaterEqual": True,
    "Greater": False,
    "NotEqual": False,
}
#: Comparisons that are false where a side is NaN, and of equal numbers.
_STRICT = ("Less", "Greater")


def _with_itself(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    op = str(at.attributes["op"])
    dtype = at.type_of(left).dtype
    if left != right or not (dtype.is_integer or dtype is DType.I1 or (dtype.is_float and op in _STRICT)):
        return None
    return at.constant(_OF_EQUALS[op], DType.I1, at.type.extents)


def _with_an_end(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    dtype = at.type_of(left).dtype
    if not dtype.is_integer:
        return None
    least, greatest = limits(dtype)
    op = str(at.attributes["op"])
    for constant, seen in ((right, op), (left, _MIRRORED[op])):
        number = at.integer(constant)
        known = {("Less", least): False, ("GreaterEqual", least): True}
        known |= {("Greater", greatest): False, ("LessEqual", greatest): True}
        if number is not None and (seen, number) in known:
            return at.constant(known[seen, number], DType.I1, at.type.extents)
    return None


def _with_a_truth(at: Rewrite) -> ValueId | None:
    op = at.attributes["op"]
    for value, constant in at.orders():
        truth = at.truth(constant)
        if truth is None or op not in ("Equal", "NotEqual"):
            continue
        return value if truth is (op == "Equal") else at.emit("Not", (value,), at.type)
    return None


def _opposite(at: Rewrite) -> ValueId | None:
    comparison = at.maker(at.operands[0], "Compare")
    if comparison is None:
        return None
    dtype, op = at.type_of(comparison.operands[0]).dtype, str(comparison.attributes["op"])
    if not (dtype.is_integer or dtype is DType.I1) and op not in ("Equal", "NotEqual"):
        return None
    return at.emit("Compare", comparison.operands, at.type, op=_OPPOSITE[op])


def _known_choice(at: Rewrite) -> ValueId | None:
    condition, on_true, on_false = at.operands
    truth = at.truth(condition)
    return None if truth is None else on_true if truth else on_false


def _equal_choices(at: Rewrite) -> ValueId | None:
    _, on_true, on_false = at.operands
    return on_true if on_true == on_false else None


def _negated_choice(at: Rewrite) -> ValueId | None:
    condition, on_true, on_false = at.operands
    negation = at.maker(condition, "Not")
    return None if negation is None else at.again((*negation.operands, on_false, on_true))


def _same_condition(at: Rewrite) -> ValueId | None:
    condition, on_true, on_false = at.operands
    for place, value in ((1, on_true), (2, on_false)):
        inner = at.maker(value, "Select")
        if inner is not None and inner.operands[0] == condition:
            taken = inner.operands[place]
            return at.again((condition, taken, on_false) if place == 1 else (condition, on_true, taken))
    return None


def _of_truths(at: Rewrite) -> ValueId | None:
    condition, on_true, on_false = at.operands
    match at.truth(on_true), at.truth(on_false):
        case True, False:
            return condition
        case False, True:
            return at.emit("Not", (condition,), at.type)
    return None


PATTERNS = (
    Pattern(
        "x == x, x <= x, x >= x, x != x",
        "true, true, true, false",
        "only of integers and truth values",
        ("Compare",),
        _with_itself,
        "of floats: NaN equals nothing, itself included. But x < x and x > x are false of floats, too",
    ),
    Pattern(
        "x < least, x >= least, x > greatest, x <= greatest",
        "false, true, false, true",
        "only of integers, with the ends of their dtype: of unsigned ones, least is 0",
        ("Compare",),
        _with_an_end,
        "of floats: with NaN, no comparison but != is true",
    ),
    Pattern(
        "p == true, p != false, p == false, p != true",
        "p, p, not p, not p",
        "of truth values, which are one or the other",
        ("Compare",),
        _with_a_truth,
    ),
    Pattern(
        "not (x < y)",
        "x >= y",
        "of integers and truth values, for all comparisons; of floats == and != alone, which are opposites "
        "for NaN, too",
        ("Not",),
        _opposite,
        "of floats: where x or y is NaN, x < y and x >= y are both false",
    ),
    Pattern(
        "select(true, x, y), select(false, x, y)",
        "x, y",
        "elements are chosen bit for bit",
        ("Select",),
        _known_choice,
    ),
    Pattern("select(p, x, x)", "x", "elements are chosen bit for bit", ("Select",), _equal_choices),
    Pattern(
        "select(not p, x, y)",
        "select(p, y, x)",
        "elements are chosen bit for bit",
        ("Select",),
        _negated_choice,
    ),
    Pattern(
        "select(p, select(p, x, y), z), select(p, x, select(p, y, z))",
        "select(p, x, z)",
        "elements are chosen bit for bit, both times by the same truth value",
        ("Select",),
        _same_condition,
        "another condition inside",
    ),
    Pattern(
        "select(p, true, false), select(p, false, true)",
        "p, not p",
        "of truth values",
        ("Select",),
        _of_truths,
    ),
)
