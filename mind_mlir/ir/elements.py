"""The numbers that a dtype holds: the rule of literals (E4005), for texts and for Python's numbers alike.

An integer dtype takes every integer in its range, spelled as a float or not; `i1` takes truth values, 0 and
1. A float dtype takes every number up to its largest, rounded to nearest once, and infinity and NaN as they
are.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Array: TypeAlias = npt.NDArray[Any]

#: Decimals with more digits before or behind the point are beyond every dtype.
_DECIMAL_RANGE = 400


@dataclass(slots=True)
class ElementProblem(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Element ``index`` cannot be converted."""

    index: int
    code: str
    message: str
    help: str | None = None


def limits(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer dtype, or of truth values."""
    if dtype.kind is DTypeKind.SIGNED:
        return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    return 0, 2**dtype.bits - 1


def holds_all(wide: DType, narrow: DType) -> bool:
    """Return whether ``wide`` has all numbers of ``narrow``, so that a cast there and back changes nothing.

    Truth values are 0 and 1, of which a cast back makes them again.
    """
    if wide is narrow or narrow is DType.I1:
        return True
    if wide.is_complex:
        return holds_all(wide.part, narrow.part)
    if narrow.is_complex or wide is DType.I1:
        return False
    if narrow.is_float:
        return wide.is_float and wide.format.holds_all(narrow.format)
    least, greatest = limits(narrow)
    if wide.is_float:
        # The least signed number is a power of two.
        return greatest < 1 << wide.format.precision and greatest <= wide.format.greatest
    lowest, highest = limits(wide)
    return lowest <= least and greatest <= highest


def wide_integer(dtype: DType) -> type[np.integer[Any]]:
    """Return the 64-bit numpy type that holds every value of an integer dtype."""
    return np.uint64 if dtype.kind is DTypeKind.UNSIGNED else np.int64


def checked_integer(value: int | None, text: str, index: int, dtype: DType) -> int:
    """Return ``value``, which element ``index`` spells as ``text``; None where that is no integer.

    Raises:
        ElementProblem: ``dtype`` does not hold it.
    """
    name = dtype.core_name
    if value is None:
        message = f"{text} is not an integer, as {name} requires"
        raise ElementProblem(index, "E4005", message, "write an integer, or declare a floating-point dtype")
    low, high = limits(dtype)
    if not low <= value <= high:
        raise ElementProblem(
            index, "E4005", f"{text} is out of range of {name}", f"{name} holds {low} to {high}"
        )
    return value


def checked_float(
    wide: float, exact: Callable[[int], Fraction], text: str, index: int, dtype: DType, *, finite: bool
) -> Any:
    """Return the element of ``dtype`` (of its parts) nearest to a number.

    Args:
        wide: The f64 nearest to it; an infinity where it is too large.
        exact: Gives the number itself, if it is asked: only for a finite one.
        text: How it is spelled.
        index: Its place among the elements.
        dtype: A float or complex dtype.
        finite: Whether it is neither an infinity nor NaN.

    Raises:
        ElementProblem: The number is finite and beyond the largest, or infinite where ``dtype`` has no
            infinity.
    """
    array = np.array([wide])
    narrow = narrowed(array, exact, dtype)
    overflowed = finite and bool(np.isinf(narrow[0]))
    if overflowed or lost_infinity(array, narrow):
        hint = f"the largest finite value is {dtype.format.greatest!r}"
        hint += "; write inf for an infinity" if overflowed else ""
        raise ElementProblem(index, "E4005", f"{text} is out of range of {dtype.core_name}", hint)
    return narrow[0]


def not_boolean(text: str, index: int) -> ElementProblem:
    """Return the finding about an element that is no truth value."""
    return ElementProblem(index, "E4005", f"{text} is not an i1 value", "write true or false")


def lost_infinity(wide: Array, narrow: Array) -> bool:
    """Return whether a number became NaN because the type has no infinities."""
    return bool(np.any(np.isnan(narrow) & ~np.isnan(wide)))


def narrowed(wide: Array, exact: Callable[[int], Fraction], dtype: DType) -> Array:
    """Round f64 values to ``dtype``, or its parts, as if from the exact numbers that they are nearest to.

    Rounding twice is wrong in one case, where the f64 lies exactly between two floats and the number does
    not: those elements are decided by exact arithmetic.
    """
    target = dtype.part.numpy
    if target == np.float64:
        return wide
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        narrow = wide.astype(target)
        nearest = narrow.astype(np.float64)
        towards = np.copysign(dtype.format.greatest, wide - nearest).astype(target)
        second = np.nextafter(narrow, towards)
        ties = (nearest != wide) & (np.abs(wide - nearest) == np.abs(wide - second.astype(np.float64)))
    for index in np.flatnonzero(ties).tolist():
        number, value = exact(index), Fraction(float(wide[index]))
        if number != value and (number > value) == (float(second[index]) > float(narrow[index])):
            narrow[index] = second[index]
    return narrow


def convert_array(array: Array, dtype: DType) -> Array:
    """Return the elements of an array of numbers as ``dtype``, flat, in memory of their own.

    Raises:
        ElementProblem: The first element that ``dtype`` cannot hold.
    """
    flat = np.array(array, dtype=array.dtype.newbyteorder("="), order="C").reshape(-1)
    if flat.dtype == np.bool_ and dtype.kind is DTypeKind.BOOL:
        return plain_booleans(flat)
    if flat.dtype == dtype.numpy:
        return flat
    converted = _convert_in_bulk(flat, dtype)
    return convert_numbers(list(flat), dtype) if converted is None else converted


def plain_booleans(array: Array) -> Array:
    """Return a boolean array whose bytes are 0 and 1; a byte that is something else means true."""
    return np.asarray(array.view(np.uint8) != 0)


def convert_numbers(numbers: Sequence[object], dtype: DType) -> Array:
    """Convert numbers of any Python or numpy type one by one.

    Raises:
        ElementProblem: The first element that is no number or that ``dtype`` cannot hold.
    """
    if dtype.kind is DTypeKind.BOOL:
        return np.array([_boolean(number, index) for index, number in enumerate(numbers)], np.bool_)
    if dtype.is_integer:
        exact = [_integer(number, index, dtype) for index, number in enumerate(numbers)]
        return np.array(exact, wide_integer(dtype)).astype(dtype.numpy)
    plain = _plain_floats(numbers, dtype)
    if plain is not None:
        return plain
    target = dtype.part.numpy
    if dtype.is_complex:
        parts = [part for index, number in enumerate(numbers) for part in _parts(number, index)]
        elements = [_float(part, index // 2, dtype) for index, part in enumerate(parts)]
        return np.array(elements, target).view(dtype.numpy)
    return np.array([_float(number, index, dtype) for index, number in enumerate(numbers)], target)


def _plain_floats(numbers: Sequence[object], dtype: DType) -> Array | None:
    """Return Python's floats as f32 or f64, rounded once; None where it is not that, or one does not fit."""
    if dtype not in (DType.F32, DType.F64) or any(type(number) is not float for number in numbers):
        return None
    wide = np.array(numbers, np.float64)
    if dtype is DType.F64:
        return wide
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        narrow = wide.astype(np.float32)
    return None if np.any(np.isinf(narrow) & np.isfinite(wide)) else narrow


def _convert_in_bulk(flat: Array, dtype: DType) -> Array | None:
    """Convert an array of plain numbers; None where any of them needs a closer look."""
    source = DType.from_numpy(flat.dtype)
    if source is None or source.is_complex or dtype.is_complex:
        return None
    if dtype.is_float:
        with np.errstate(over="ignore", invalid="ignore"):
            wide = flat.astype(np.float64)
            narrow = narrowed(wide, lambda index: _fraction(flat[index]), dtype)
            fits = not np.any(np.isinf(narrow) & ~np.isinf(wide)) and not lost_infinity(wide, narrow)
        return narrow if fits else None
    if source.is_float:
        return None
    low, high = limits(dtype)
    values = flat.astype(wide_integer(source))
    if values.size and (int(values.min()) < low or int(values.max()) > high):
        return None
    return values.astype(wide_integer(dtype)).astype(dtype.numpy)


def _fraction(number: object) -> Fraction:
    exact = _exact(number)
    assert isinstance(exact, Fraction), "only finite numbers lie between two others"
    return exact


def _exact(number: Any) -> Fraction | float | complex | None:
    """Return a number exactly: as a fraction, an infinity or NaN, or complex; None where it is no number."""
    if isinstance(number, np.ndarray) and number.ndim == 0:
        number = number[()]
    if isinstance(number, (bool, np.bool_)):
        return Fraction(bool(number))
    integer = argument_checks.whole(number)
    if integer is not None:
        return Fraction(integer)
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    if isinstance(number, Decimal):
        return _exact_decimal(number)
    if isinstance(number, np.longdouble):  # wider than Python's
        return Fraction(*number.as_integer_ratio()) if np.isfinite(number) else float(number)
    if isinstance(number, (complex, np.complexfloating)):
        return complex(number)
    if isinstance(number, (str, bytes, np.ndarray)) or not hasattr(type(number), "__float__"):
        return None
    if isinstance(number, np.generic) and not _is_number(number):
        return None
    value = float(number)
    return Fraction(value) if math.isfinite(value) else value


def _is_number(scalar: np.generic) -> bool:
    return isinstance(scalar, np.number) or DType.from_numpy(scalar.dtype) is not None


def _exact_decimal(number: Decimal) -> Fraction | float:
    if number.is_nan():
        return math.nan
    sign = -1 if number.is_signed() else 1
    if number.is_infinite():
        return sign * math.inf
    if not number or abs(number.adjusted()) < _DECIMAL_RANGE:
        return Fraction(number) if number else Fraction(0)
    # Written out, it could fill the memory: another number stands for it that is as far beyond every dtype.
    return sign * Fraction(10) ** int(math.copysign(_DECIMAL_RANGE, number.adjusted()))


def _boolean(number: object, index: int) -> bool:
    exact = None if isinstance(number, (float, np.floating)) else _exact(number)
    if not isinstance(exact, Fraction) or exact not in (0, 1):
        raise not_boolean(_shown(number), index)
    return exact == 1


def _integer(number: object, index: int, dtype: DType) -> int:
    exact = _real(number, index, dtype)
    integral = isinstance(exact, Fraction) and exact.denominator == 1
    return checked_integer(int(exact) if integral else None, _shown(number), index, dtype)


def _float(number: object, index: int, dtype: DType) -> Any:
    exact = _real(number, index, dtype)
    try:
        wide = float(exact)
    except OverflowError:
        wide = math.inf if exact > 0 else -math.inf
    # Of a zero, the fraction has lost the sign.
    if wide == 0 and isinstance(number, (float, np.floating, Decimal)):
        wide = math.copysign(0.0, number)
    finite = isinstance(exact, Fraction)
    return checked_float(wide, lambda _: Fraction(exact), _shown(number), index, dtype, finite=finite)


def _parts(number: Any, index: int) -> tuple[object, object]:
    if isinstance(number, (complex, np.complexfloating)):
        return number.real, number.imag
    return number, 0.0


def _real(number: object, index: int, dtype: DType) -> Fraction | float:
    exact = _exact(number)
    if exact is None:
        raise ElementProblem(
            index, "E4005", f"{_shown(number)} is no number", f"{dtype.core_name} holds numbers"
        )
    if isinstance(exact, complex):
        message = f"{_shown(number)} is complex, and {dtype.core_name} is not"
        raise ElementProblem(index, "E4005", message, "take its real part")
    return exact


def _shown(number: object) -> str:
    """Return an element as a message shows it."""
    if isinstance(number, np.generic) and DType.from_numpy(number.dtype) is not None:
        number = number.item()
    if type(number) in (bool, float, complex):
        return repr(number)
    if type(number) is int and not abs(number) >= 10**argument_checks.MAX_DIGITS:
        return str(number)
    return argument_checks.describe(number)


#: No float of at most 16 bits needs more significant digits.
_SHORT_FLOAT_DIGITS = 6


def format_float(value: float) -> str:
    """Return the text of an f64."""
    return repr(float(value))


def format_elements(array: Array, dtype: DType) -> list[str]:
    """Return the text of every element, row-major; a complex number gives two, real part first."""
    flat = array.reshape(-1)
    if dtype.kind is DTypeKind.BOOL:
        return ["true" if element else "false" for element in flat.tolist()]
    if dtype.is_integer:
        return list(map(str, flat.astype(wide_integer(dtype)).tolist()))
    if dtype.is_complex:
        flat = flat.view(dtype.part.numpy)
    if flat.dtype == np.float64:
        return list(map(repr, flat.tolist()))
    if flat.dtype == np.float32:
        # numpy finds the shortest digits; a round trip through f64 puts them into Python's notation.
        return [repr(float(str(element))) for element in flat]
    return [_short_float(element) for element in flat]


def _short_float(element: Any) -> str:
    """Return the shortest text of a float of 16 bits or fewer."""
    exact = float(element)
    for digits in range(1, _SHORT_FLOAT_DIGITS + 1):
        text = float(f"{exact:.{digits}g}")
        if float(type(element)(text)) == exact:
            return repr(text)
    return repr(exact)
