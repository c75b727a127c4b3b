"""Converts number texts to elements of a dtype: exact range checks, decimals rounded to nearest once.

A decimal is first read as f64 (correctly rounded). Rounding that again to a narrower float is wrong in one
case, where the f64 lies exactly between two floats and the decimal does not: those elements are decided by
exact arithmetic.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mind_mlir.frontends.core_lexer import NUMBER
from mind_mlir.ir.types import DType, DTypeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

Array: TypeAlias = npt.NDArray[Any]

#: No integer type has more digits; Python refuses to convert more than 4300.
_MAX_DIGITS = 40
_BOOLEANS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}
_RADIX = re.compile(r"[-+]?0[xXoObB]")


@dataclass(slots=True)
class Problem(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Element ``index`` cannot be converted."""

    index: int
    code: str
    message: str
    help: str | None = None


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
    narrow = _narrow(wide, texts, _element_dtype(dtype))
    overflowed = np.count_nonzero(np.isinf(narrow)) > sum("inf" in text for text in texts)
    return None if overflowed or _lost_infinity(wide, narrow) else narrow


def convert_elements(texts: Sequence[str], dtype: DType) -> Array:
    """Convert element texts of any spelling one by one.

    Raises:
        Problem: The first element that is no number (E1101) or that ``dtype`` cannot hold (E4005).
    """
    if dtype.kind is DTypeKind.BOOL:
        return np.array([_boolean(text, index) for index, text in enumerate(texts)], np.bool_)
    if dtype.is_integer:
        exact = [_exact_integer(text, index, dtype) for index, text in enumerate(texts)]
        return np.array(exact, _wide_integer(dtype)).astype(dtype.numpy)
    target = _element_dtype(dtype)
    name = dtype.core_name
    return np.array([_exact_float(text, index, target, name) for index, text in enumerate(texts)], target)


def integer_value(text: str) -> int:
    """Return the value of a well-formed integer text; raises ValueError where it is absurdly long."""
    digits = text.replace("_", "")
    if len(digits) > _MAX_DIGITS and not _RADIX.match(digits):
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
    low, high = _limits(dtype)
    if values and (min(values) < low or max(values) > high):
        return None
    return np.array(values, _wide_integer(dtype)).astype(dtype.numpy)


def _wide_integer(dtype: DType) -> Any:
    return np.uint64 if dtype.kind is DTypeKind.UNSIGNED else np.int64


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype.kind is DTypeKind.UNSIGNED:
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _element_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the float type of an element, of its parts for a complex one."""
    if dtype.kind is DTypeKind.COMPLEX:
        return np.dtype(np.float32 if dtype is DType.CF32 else np.float64)
    return dtype.numpy


def _boolean(text: str, index: int) -> bool:
    if text not in _BOOLEANS:
        raise Problem(index, "E4005", f"'{text[:40]}' is not an i1 value", "write true or false")
    return _BOOLEANS[text]


def _number(text: str, index: int) -> re.Match[str]:
    match = NUMBER.match(text)
    if match is None:
        raise Problem(index, "E1101", f"expected a number, found '{text[:40]}'")
    return match


def _exact_integer(text: str, index: int, dtype: DType) -> int:
    match = _number(text, index)
    low, high = _limits(dtype)
    name = dtype.core_name
    if match["integer"] is None:
        value = _integral(text, high + 1)
    else:
        try:
            value = integer_value(text)
        except ValueError:
            value = high + 1
    if value is None:
        message = f"{text[:40]} is not an integer, as {name} requires"
        raise Problem(index, "E4005", message, "write an integer, or declare a floating-point dtype")
    if not low <= value <= high:
        raise Problem(
            index, "E4005", f"{text[:40]} is out of range of {name}", f"{name} holds {low} to {high}"
        )
    return value


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


def _exact_float(text: str, index: int, target: np.dtype[Any], name: str) -> Any:
    _number(text, index)
    wide = np.array([float_value(text)], np.float64)
    narrow = _narrow(wide, [text], target)
    infinite = bool(np.isinf(narrow[0])) and "inf" not in text
    if infinite or _lost_infinity(wide, narrow):
        limit = _largest(target)
        raise Problem(
            index,
            "E4005",
            f"{text[:40]} is out of range of {name}",
            f"the largest finite value is {limit!r}" + ("; write inf for an infinity" if infinite else ""),
        )
    return narrow[0]


def _lost_infinity(wide: Array, narrow: Array) -> bool:
    """Return whether a number became NaN because the type has no infinities."""
    return bool(np.any(np.isnan(narrow) & ~np.isnan(wide)))


def _largest(target: np.dtype[Any]) -> float:
    return float(cast("Any", ml_dtypes.finfo)(target).max)


def _narrow(wide: Array, texts: Sequence[str], target: np.dtype[Any]) -> Array:
    """Round f64 values to ``target`` as if from the decimal texts."""
    if target == np.float64:
        return wide
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        narrow = wide.astype(target)
        nearest = narrow.astype(np.float64)
        limit = _largest(target)
        towards = np.copysign(limit, wide - nearest).astype(target)
        second = np.nextafter(narrow, towards)
        ties = (nearest != wide) & (np.abs(wide - nearest) == np.abs(wide - second.astype(np.float64)))
    for index in np.flatnonzero(ties).tolist():
        exact, value = _fraction(texts[index]), Fraction(float(wide[index]))
        if exact != value and (exact > value) == (float(second[index]) > float(narrow[index])):
            narrow[index] = second[index]
    return narrow


def _fraction(text: str) -> Fraction:
    return Fraction(integer_value(text)) if _RADIX.match(text) else Fraction(text.replace("_", "").strip())
