"""Identities of comparisons and selections, of truth values, and of the bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.comparisons import COMPARISONS
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.passes.simplify.pattern import Pattern, beneath, undone

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Comparisons that are false where a side is NaN, and of equal numbers.
_STRICT = ("Less", "Greater")


def _with_itself(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    op = str(at.attributes["op"])
    dtype = at.type_of(left).dtype
    if left != right or not (dtype.is_integer or dtype is DType.I1 or (dtype.is_float and op in _STRICT)):
        return None
    return at.constant(COMPARISONS[op].of_equals, DType.I1, at.type.extents)


def _with_an_end(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    dtype = at.type_of(left).dtype
    if not dtype.is_integer:
        return None
    least, greatest = limits(dtype)
    op = str(at.attributes["op"])
    for constant, seen in ((right, op), (left, COMPARISONS[op].mirrored)):
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


@beneath("Compare")
def _opposite(at: Rewrite, comparison: CoreOperation) -> ValueId | None:
    dtype, op = at.type_of(comparison.operands[0]).dtype, str(comparison.attributes["op"])
    if not (dtype.is_integer or dtype is DType.I1) and op not in ("Equal", "NotEqual"):
        return None
    return at.emit("Compare", comparison.operands, at.type, op=COMPARISONS[op].opposite)


def _known_choice(at: Rewrite) -> ValueId | None:
    condition, on_true, on_false = at.operands
    truth = at.truth(condition)
    return None if truth is None else on_true if truth else on_false


def _equal_choices(at: Rewrite) -> ValueId | None:
    _, on_true, on_false = at.operands
    return on_true if on_true == on_false else None


@beneath("Not")
def _negated_choice(at: Rewrite, negation: CoreOperation) -> ValueId | None:
    _, on_true, on_false = at.operands
    return at.again((*negation.operands, on_false, on_true))


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


# Truth values

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


def _truth_with_constant(at: Rewrite) -> ValueId | None:
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


def _truth_with_itself(at: Rewrite) -> ValueId | None:
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


_OF_BITS = "of each bit, which is one or the other: false and true are no bits of an integer, and all of them"
_LOGICAL = ("And", "Or", "Xor")

CHOICES = (
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

TRUTHS = (
    Pattern(
        "p and true, p or false, p xor false, p and false, p or true, p xor true",
        "p, p, p, false, true, not p",
        _OF_BITS,
        _LOGICAL,
        _truth_with_constant,
    ),
    Pattern("p and p, p or p, p xor p", "p, p, false", _OF_BITS, _LOGICAL, _truth_with_itself),
    Pattern("p and not p, p or not p, p xor not p", "false, true, true", _OF_BITS, _LOGICAL, _with_opposite),
    Pattern("p and (p or q), p or (p and q)", "p", _OF_BITS, ("And", "Or"), _absorbed),
    Pattern("not (not p)", "p", _OF_BITS, ("Not",), undone("Not")),
)
