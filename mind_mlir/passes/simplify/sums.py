"""Identities of sums, differences and negation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.passes.simplify.integers import wrapped
from mind_mlir.passes.simplify.pattern import Pattern

if TYPE_CHECKING:
    from mind_mlir.ir.module import ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite


def _plus_zero(at: Rewrite) -> ValueId | None:
    for value, zero in at.orders():
        if at.is_real(zero, -0.0):
            return at.as_result(value)
    return None


def _minus_zero(at: Rewrite) -> ValueId | None:
    value, zero = at.operands
    return at.as_result(value) if at.is_real(zero, 0.0) else None


def _from_zero(at: Rewrite) -> ValueId | None:
    zero, value = at.operands
    return at.as_result(at.emit("Neg", (value,), at.type_of(value))) if at.is_real(zero, -0.0) else None


def _minus_itself(at: Rewrite) -> ValueId | None:
    left, right = at.operands
    if left != right or not at.type.dtype.is_integer:
        return None
    return at.constant(0, at.type.dtype, at.type.extents)


def _plus_negative(at: Rewrite) -> ValueId | None:
    for value, negative in at.orders():
        negation = at.maker(negative, "Neg")
        if negation is not None:
            return at.emit("Sub", (value, *negation.operands), at.type)
    return None


def _minus_negative(at: Rewrite) -> ValueId | None:
    value, negative = at.operands
    negation = at.maker(negative, "Neg")
    return None if negation is None else at.emit("Add", (value, *negation.operands), at.type)


def _twice_negative(at: Rewrite) -> ValueId | None:
    negation = at.maker(at.operands[0], "Neg")
    return None if negation is None else negation.operands[0]


def _negative_difference(at: Rewrite) -> ValueId | None:
    difference = at.maker(at.operands[0], "Sub")
    if difference is None or not at.type.dtype.is_integer:
        return None
    left, right = difference.operands
    return at.emit("Sub", (right, left), at.type)


def _constants(at: Rewrite) -> ValueId | None:
    """Add or multiply two constant integers beforehand."""
    opcode, dtype = at.operation.opcode, at.type.dtype
    for value, constant in at.orders():
        number = at.integer(constant)
        inner = None if number is None else at.maker(value, opcode)
        if number is None or inner is None:
            continue
        for kept, other in (inner.operands, inner.operands[::-1]):
            first = at.integer(other)
            if first is None:
                continue
            total = wrapped(first + number if opcode == "Add" else first * number, dtype)
            joined = at.broadcast(kept, at.shape_of(value))
            return at.as_result(at.emit(opcode, (joined, at.beside(joined, total)), at.type_of(value)))
    return None


PATTERNS = (
    Pattern(
        "x + -0.0",
        "x",
        "-0.0 + -0.0 is -0.0 and 0.0 + -0.0 is 0.0; NaN and infinities stay. Of integers any zero.",
        ("Add",),
        _plus_zero,
        "x + 0.0: where x is -0.0, that is 0.0",
    ),
    Pattern(
        "x - 0.0",
        "x",
        "-0.0 - 0.0 is -0.0 and 0.0 - 0.0 is 0.0; NaN and infinities stay. Of integers any zero.",
        ("Sub",),
        _minus_zero,
        "x - -0.0: where x is -0.0, that is 0.0",
    ),
    Pattern(
        "-0.0 - x",
        "-x",
        "-0.0 - 0.0 is -0.0, -0.0 - -0.0 is 0.0, and everything else has the other sign. Of integers any "
        "zero.",
        ("Sub",),
        _from_zero,
        "0.0 - x: where x is 0.0, that is 0.0, but -x is -0.0",
    ),
    Pattern(
        "x - x",
        "0",
        "only of integers",
        ("Sub",),
        _minus_itself,
        "of floats: where x is NaN or infinite, that is NaN",
    ),
    Pattern(
        "x + -y",
        "x - y",
        "IEEE 754 has the difference as the sum with the other sign, zeros and infinities included; integers "
        "wrap around either way. Complex numbers are added by parts.",
        ("Add",),
        _plus_negative,
    ),
    Pattern("x - -y", "x + y", "as x + -y", ("Sub",), _minus_negative),
    Pattern(
        "-(-x)",
        "x",
        "the sign bit flips twice, also those of zeros and NaN; of integers -(-x) is x modulo a power of two",
        ("Neg",),
        _twice_negative,
    ),
    Pattern(
        "-(x - y)",
        "y - x",
        "only of integers, modulo a power of two",
        ("Neg",),
        _negative_difference,
        "of floats: where x equals y, -(x - y) is -0.0 and y - x is 0.0",
    ),
    Pattern(
        "(x + c) + d, (x * c) * d",
        "x + (c + d), x * (c * d)",
        "only of integers, modulo a power of two; c and d are constants",
        ("Add", "Mul"),
        _constants,
        "of floats: each sum and product rounds",
    ),
)
