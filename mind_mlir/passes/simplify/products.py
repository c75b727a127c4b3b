"""Identities of products, quotients and reciprocals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DTypeKind
from mind_mlir.passes.simplify.integers import wrapped
from mind_mlir.passes.simplify.pattern import Pattern

if TYPE_CHECKING:
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.types import DType
    from mind_mlir.passes.simplify.rewrite import Rewrite


def _times_one(at: Rewrite) -> ValueId | None:
    for value, one in at.orders():
        if at.is_real(one, 1):
            return at.as_result(value)
    return None


def _times_minus_one(at: Rewrite) -> ValueId | None:
    for value, one in at.orders():
        if at.is_real(one, -1):
            return at.as_result(at.emit("Neg", (value,), at.type_of(value)))
    return None


def _times_zero(at: Rewrite) -> ValueId | None:
    if not at.type.dtype.is_integer or not any(at.is_real(value, 0) for value in at.operands):
        return None
    return at.constant(0, at.type.dtype, at.type.extents)


def _of_negatives(at: Rewrite) -> ValueId | None:
    if at.operation.opcode == "Div" and not at.type.dtype.is_float:
        return None
    negations = [at.maker(value, "Neg") for value in at.operands]
    inside = [negation.operands[0] for negation in negations if negation is not None]
    return at.again(inside) if len(inside) == len(negations) else None


def _negative_times_constant(at: Rewrite) -> ValueId | None:
    for value, constant in at.orders():
        number, negation = at.real(constant), at.maker(value, "Neg")
        if number is None or negation is None or math.isnan(number):
            continue
        dtype = at.type.dtype
        other = wrapped(-number, dtype) if isinstance(number, int) else -number
        factor = at.broadcast(at.constant(other, dtype), at.shape_of(constant))
        return at.emit("Mul", (*negation.operands, factor), at.type)
    return None


def _by_one(at: Rewrite) -> ValueId | None:
    value, one = at.operands
    return at.as_result(value) if at.is_real(one, 1) else None


def _by_minus_one(at: Rewrite) -> ValueId | None:
    value, one = at.operands
    if at.type.dtype.kind is DTypeKind.UNSIGNED or not at.is_real(one, -1):
        return None
    return at.as_result(at.emit("Neg", (value,), at.type_of(value)))


def _by_power_of_two(at: Rewrite) -> ValueId | None:
    value, divisor = at.operands
    number = at.real(divisor)
    if not isinstance(number, float) or not _has_exact_reciprocal(number, at.type.dtype):
        return None
    factor = at.beside(value, 1 / number)
    return at.as_result(at.emit("Mul", (value, factor), at.type_of(value)))


def _has_exact_reciprocal(number: float, dtype: DType) -> bool:
    """Return whether ``number`` and its reciprocal are powers of two that ``dtype`` has as normal numbers."""
    if abs(math.frexp(number)[0]) != 0.5:
        return False
    least, greatest = dtype.format.smallest_normal, dtype.format.greatest
    return least <= abs(number) <= greatest and least <= abs(1 / number) <= greatest


PATTERNS = (
    Pattern(
        "x * 1",
        "x",
        "zeros keep their signs, infinities stay, NaN stays NaN",
        ("Mul",),
        _times_one,
        "of complex numbers: the product has an infinity times 0, which is NaN",
    ),
    Pattern(
        "x * -1",
        "-x",
        "the sign flips, also those of zeros and infinities; integers wrap around either way",
        ("Mul",),
        _times_minus_one,
        "of complex numbers, as x * 1",
    ),
    Pattern(
        "x * 0",
        "0",
        "only of integers",
        ("Mul",),
        _times_zero,
        "of floats: NaN and infinities give NaN, and negative numbers -0.0",
    ),
    Pattern(
        "-x * -y, -x / -y",
        "x * y, x / y",
        "signs of products and quotients are those of their operands' together, also of zeros and "
        "infinities; products of integers are the same modulo a power of two",
        ("Mul", "Div"),
        _of_negatives,
        "quotients of integers: the least one is its own negative",
    ),
    Pattern(
        "-x * c",
        "x * -c",
        "as -x * -y; c is a constant",
        ("Mul",),
        _negative_times_constant,
    ),
    Pattern(
        "x / 1",
        "x",
        "zeros keep their signs, infinities stay, NaN stays NaN",
        ("Div",),
        _by_one,
        "of complex numbers: as x * 1",
    ),
    Pattern(
        "x / -1",
        "-x",
        "the sign flips, also those of zeros and infinities; the least integer divided by -1 is itself, as "
        "is its negative",
        ("Div",),
        _by_minus_one,
        "of unsigned integers: their greatest number is no -1",
    ),
    Pattern(
        "x / c",
        "x * (1 / c)",
        "c is a power of two whose reciprocal is a normal number of the dtype: quotient and product are the "
        "same number before they round, and round alike, to subnormals, infinities and zeros, too",
        ("Div",),
        _by_power_of_two,
        "other c: 1 / c rounds, and so does the product. c = 2^-127 of f32: 1 / c is 2^127, but c is "
        "subnormal, which a caller's mode may flush. Of integers: quotients are truncated",
    ),
)
