"""Identities of what is the greater, the lesser, within limits, and without sign."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.passes.simplify.pattern import Pattern, beneath, idle

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite


def ends(dtype: DType) -> tuple[float, float] | None:
    """Return what nothing is less and nothing greater than; None of a float dtype that has no infinities."""
    if dtype.is_float:
        return (-math.inf, math.inf) if dtype.format.infinite else None
    return limits(dtype)


def _of_itself(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    return left if left == right else None


def _neutral_end(at: Rewrite) -> ValueId | None:
    bounds = ends(at.type.dtype)
    end = bounds and bounds[0 if at.operation.opcode == "Maximum" else 1]
    for value, constant in at.orders():
        if end is not None and at.is_real(constant, end):
            return at.as_result(value)
    return None


def _absorbing_end(at: Rewrite) -> ValueId | None:
    if not at.type.dtype.is_integer:
        return None
    end = limits(at.type.dtype)[1 if at.operation.opcode == "Maximum" else 0]
    for _, constant in at.orders():
        if at.is_real(constant, end):
            return at.as_result(constant)
    return None


def _of_constants(at: Rewrite) -> ValueId | None:
    return at.of_two_constants(greater if at.operation.opcode == "Maximum" else lesser)


def greater(left: float, right: float) -> float:
    """Return the greater of two numbers, as `Maximum` has it."""
    if math.isnan(left) or math.isnan(right):
        return math.nan
    if left == right == 0:
        return left + right
    return max(left, right)


def lesser(left: float, right: float) -> float:
    """Return the lesser of two numbers, as `Minimum` has it."""
    if math.isnan(left) or math.isnan(right):
        return math.nan
    if left == right == 0:
        return -(-left + -right)
    return min(left, right)


def _clamp_without_limit(at: Rewrite) -> ValueId | None:
    bounds = ends(at.type.dtype)
    value, low, high = at.operands
    if bounds is not None and at.is_real(low, bounds[0]):
        return at.emit("Minimum", (value, high), at.type)
    if bounds is not None and at.is_real(high, bounds[1]):
        return at.emit("Maximum", (value, low), at.type)
    return None


@beneath("Clamp")
def _clamp_twice(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    return at.operands[0] if inner.operands[1:] == at.operands[1:] else None


@beneath("Clamp")
def _clamp_of_clamp(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    outer = _interval(at, at.operands[1:])
    first = _interval(at, inner.operands[1:])
    if outer is None or first is None:
        return None
    low, high = (lesser(greater(end, outer[0]), outer[1]) for end in first)
    shape, dtype = at.type.extents, at.type.dtype
    held = (inner.operands[0], at.constant(low, dtype, shape), at.constant(high, dtype, shape))
    return at.emit("Clamp", held, at.type)


def _interval(at: Rewrite, operands: tuple[ValueId, ...]) -> tuple[float, float] | None:
    low, high = map(at.real, operands)
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return None
    is_above = (low, math.copysign(1, low)) > (high, math.copysign(1, high))
    return None if is_above else (low, high)


def _abs_of_unsigned(at: Rewrite) -> ValueId | None:
    return at.operands[0] if at.type.dtype.kind is DTypeKind.UNSIGNED else None


@beneath("Neg")
def _abs_of_negative(at: Rewrite, negation: CoreOperation) -> ValueId | None:
    return None if at.type.dtype.kind is DTypeKind.UNSIGNED else at.again(negation.operands)


_EXTREMES = ("Maximum", "Minimum")

PATTERNS = (
    Pattern("max(x, x), min(x, x)", "x", "also of NaN and of either zero", _EXTREMES, _of_itself),
    Pattern(
        "max(x, least), min(x, greatest)",
        "x",
        "least and greatest are the infinities of floats, the ends of integers; NaN stays NaN",
        _EXTREMES,
        _neutral_end,
        "the greatest finite number: infinities are greater. fp8_e4m3 has no infinities: none is looked for",
    ),
    Pattern(
        "max(x, greatest), min(x, least)",
        "greatest, least",
        "only of integers",
        _EXTREMES,
        _absorbing_end,
        "of floats: where x is NaN, so is the result",
    ),
    Pattern(
        "max(max(x, c), d), min(min(x, c), d)",
        "max(x, max(c, d)), min(x, min(c, d))",
        "both choose from one order, in which -0.0 is less than 0.0, and NaN wins wherever it is; c and d "
        "are constants",
        _EXTREMES,
        _of_constants,
    ),
    Pattern(
        "clamp(x, least, h), clamp(x, l, greatest)",
        "min(x, h), max(x, l)",
        "as max(x, least): the other half of what a clamp is defined as",
        ("Clamp",),
        _clamp_without_limit,
    ),
    Pattern(
        "clamp(clamp(x, l, h), l, h)",
        "clamp(x, l, h)",
        "what a clamp gives is within its limits, or h where l is greater, which the second one gives, too; "
        "a NaN in x, l or h is NaN after the first one",
        ("Clamp",),
        _clamp_twice,
    ),
    Pattern(
        "clamp(clamp(x, a, b), c, d)",
        "clamp(x, clamp(a, c, d), clamp(b, c, d))",
        "a clamp keeps the order of numbers, zeros by sign included, and x as NaN; the limits are constants, "
        "no NaN, a <= b and c <= d",
        ("Clamp",),
        _clamp_of_clamp,
        "a > b: the first clamp is b everywhere",
    ),
    Pattern("abs(x)", "x", "only of unsigned integers", ("Abs",), _abs_of_unsigned),
    Pattern(
        "abs(abs(x)), abs(relu(x))",
        "abs(x), relu(x)",
        "the sign bit is 0 already: relu gives 0.0 for -0.0 and NaN. The least signed integer is its own "
        "absolute value, once as twice.",
        ("Abs",),
        idle("Abs", "Relu"),
    ),
    Pattern(
        "abs(-x)",
        "abs(x)",
        "only the sign bit differs; the least signed integer is its own negative",
        ("Abs",),
        _abs_of_negative,
        "of unsigned integers: their negative wraps around",
    ),
    Pattern(
        "relu(relu(x))",
        "relu(x)",
        "what relu gives is not negative, nor -0.0, nor NaN",
        ("Relu",),
        idle("Relu"),
        "relu(abs(x)), relu(exp(x)): of NaN, relu is 0.0",
    ),
)
