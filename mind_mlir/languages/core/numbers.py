"""Converts number texts to elements of a dtype, by the rule of `ir/elements.py`.

A decimal is first read as f64 (correctly rounded), then rounded to its dtype as if it were so at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mind_mlir.ir.elements import (
    ElementProblem,
    checked_float,
    checked_integer,
    limits,
    lost_infinity,
    narrowed,
    not_boolean,
    wide_integer,
)
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.languages.core.tokens import NUMBER
from mind_mlir.support import argument_checks

Array: TypeAlias = npt.NDArray[Any]

_BOOLEANS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}
_RADIX = re.compile(r"[-+]?0[xXoObB]")


def convert_plain(texts: Sequence[str], dtype: DType) -> Array | None:
    """Convert plain decimal texts in bulk; None where any of them needs a closer look."""
    try:
        if dtype.kind is DTypeKind.BOOL:
            return np.array([_BOOLEANS[text.strip()] for text in texts], np.bool_)
        if dtype.is_integer:
            return _integers([int(text) for text in texts], dtype)
        wide = np.array([float(text) for text in texts], np.float64)
    except (ValueError, KeyError, OverflowError):
        return None
    narrow = narrowed(wide, lambda index: _fraction(texts[index]), dtype)
    overflowed = np.count_nonzero(np.isinf(narrow)) > sum("inf" in text for text in texts)
    return None if overflowed or lost_infinity(wide, narrow) else narrow


def convert_elements(texts: Sequence[str], dtype: DType) -> Array:
    """Convert element texts of any spelling one by one.

    Raises:
        ElementProblem: The first element that is no number (E1101) or that ``dtype`` cannot hold (E4005).
    """
    if dtype.kind is DTypeKind.BOOL:
        return np.array([_boolean(text, index) for index, text in enumerate(texts)], np.bool_)
    if dtype.is_integer:
        exact = [_exact_integer(text, index, dtype) for index, text in enumerate(texts)]
        return np.array(exact, wide_integer(dtype)).astype(dtype.numpy)
    elements = [_exact_float(text, index, dtype) for index, text in enumerate(texts)]
    return np.array(elements, dtype.part.numpy)


def integer_value(text: str) -> int:
    """Return the value of a well-formed integer text; raises ValueError where it is absurdly long."""
    digits = text.replace("_", "")
    if len(digits) > argument_checks.MAX_DIGITS and not _RADIX.match(digits):
        raise ValueError(f"a number of {len(digits)} digits")
    # int(text, 0) reads every radix but refuses the leading zeros of a decimal.
    return int(digits, 0) if _RADIX.match(digits) else int(digits)


def float_value(text: str) -> float:
    """Return the f64 nearest to a well-formed number text; an infinity where it overflows."""
    plain = text.replace("_", "")
    if not _RADIX.match(plain):
        return float(plain)
    try:
        return float(int(plain, 0))
    except OverflowError:
        return math.inf


def _integers(values: list[int], dtype: DType) -> Array | None:
    low, high = limits(dtype)
    if values and (min(values) < low or max(values) > high):
        return None
    return np.array(values, wide_integer(dtype)).astype(dtype.numpy)


def _boolean(text: str, index: int) -> bool:
    if text not in _BOOLEANS:
        raise not_boolean(f"'{text[:40]}'", index)
    return _BOOLEANS[text]


def _number(text: str, index: int) -> re.Match[str]:
    match = NUMBER.match(text)
    if match is None:
        raise ElementProblem(index, "E1101", f"expected a number, found '{text[:40]}'")
    return match


def _exact_integer(text: str, index: int, dtype: DType) -> int:
    match = _number(text, index)
    beyond = limits(dtype)[1] + 1
    if match["integer"] is None:
        value = _integral(text, beyond)
    else:
        try:
            value = integer_value(text)
        except ValueError:
            value = beyond
    return checked_integer(value, text[:40], index, dtype)


def _integral(text: str, limit: int) -> int | None:
    """Return the integer that a decimal equals, None where it is none, and ``limit`` for anything larger."""
    try:
        number = Decimal(text.replace("_", ""))
    except InvalidOperation:  # an exponent beyond the decimal module's own range
        return None if "e-" in text.lower() else limit
    if not number.is_finite():
        return None
    if abs(number) > limit:
        return limit if number > 0 else -limit - 1
    return int(number) if number == number.to_integral_value() else None


def _exact_float(text: str, index: int, dtype: DType) -> Any:
    _number(text, index)
    finite = "inf" not in text and "nan" not in text
    return checked_float(float_value(text), lambda _: _fraction(text), text[:40], index, dtype, finite=finite)


def _fraction(text: str) -> Fraction:
    return Fraction(integer_value(text)) if _RADIX.match(text) else Fraction(text.replace("_", "").strip())
