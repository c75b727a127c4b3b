"""Identities of sums, differences, products and quotients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DTypeKind
from mind_mlir.passes.simplify.pattern import Pattern, beneath, neutral, undone

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ir.types import DType
    from mind_mlir.passes.simplify.rewrite import Rewrite


def wrapped(number: int, dtype: DType) -> int:
    """Return ``number`` as an integer of ``dtype``, wrapped around.

    Example:
        >>> from mind_mlir.ir.types import DType
        >>> wrapped(130, DType.SI8), wrapped(-1, DType.UI4)
        (-126, 15)
    """
    least, _ = limits(dtype)
    return (number - least) % (1 << dtype.bits) + least


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


@beneath("Sub")
def _negative_difference(at: Rewrite, difference: CoreOperation) -> ValueId | None:
    left, right = difference.operands
    return at.emit("Sub", (right, left), at.type) if at.type.dtype.is_integer else None


def _constants(at: Rewrite) -> ValueId | None:
    """Add or multiply two constant integers beforehand."""

    def joined(first: float, number: float) -> float | None:
        if not isinstance(first, int) or not isinstance(number, int):
            return None
        return wrapped(first + number if at.operation.opcode == "Add" else first * number, at.type.dtype)

    return at.of_two_constants(joined)


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


SUMS = (
    Pattern(
        "x + -0.0",
        "x",
        "-0.0 + -0.0 is -0.0 and 0.0 + -0.0 is 0.0; NaN and infinities stay. Of integers any zero.",
        ("Add",),
        neutral(-0.0),
        "x + 0.0: where x is -0.0, that is 0.0",
    ),
    Pattern(
        "x - 0.0",
        "x",
        "-0.0 - 0.0 is -0.0 and 0.0 - 0.0 is 0.0; NaN and infinities stay. Of integers any zero.",
        ("Sub",),
        neutral(0.0, right=True),
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
        undone("Neg"),
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

PRODUCTS = (
    Pattern(
        "x * 1",
        "x",
        "zeros keep their signs, infinities stay, NaN stays NaN",
        ("Mul",),
        neutral(1),
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
        neutral(1, right=True),
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
