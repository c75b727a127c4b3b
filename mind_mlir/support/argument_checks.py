"""Checks of what Python passes to the public functions.

Programs and array arguments are the subject of diagnostics; an argument of the wrong Python type is a
`TypeError` or `ValueError` that names the parameter, what was expected and what came. Each check returns the
value in the form that the rest of the compiler holds: plain `str`, `int` and `tuple`, never a subclass with
behaviour of its own. What a caller's own object raises while it is asked (in ``__index__``, ``__iter__``)
arrives unchanged.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from mind_mlir.support.suggestions import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sized


T = TypeVar("T")

#: No integer of the IR has more digits; Python refuses to print one of more than 4300.
MAX_DIGITS = 40
_LIMIT = 10**MAX_DIGITS
_SHOWN = 40


def describe(value: object) -> str:
    """Return what ``value`` is, without running any code of its own and never at length."""
    if value is None:
        return "None"
    # Exactly these classes: a subclass may have a __repr__ of its own.
    kind, plain = type(value), cast("Any", value)
    if kind is str or kind is bytes:
        return f"the {kind.__name__} {plain[:_SHOWN]!r}"
    if kind in (bool, float, complex) or (kind is int and abs(plain) < _LIMIT):
        return f"the {kind.__name__} {plain!r}"
    note = getattr(kind, "BORDER_NOTE", "") if str(kind.__module__).startswith("mind_mlir.") else ""
    return f"an object of type {kind.__name__}{note}"


def reject(parameter: str, expected: str, value: object) -> NoReturn:
    """Raise the TypeError about ``value``."""
    raise TypeError(f"{parameter} must be {expected}, not {describe(value)}")


def refuse(problem: str) -> NoReturn:
    """Raise the ValueError about an argument of the right type."""
    raise ValueError(problem) from None


def expect(value: object, kind: type[T], parameter: str, expected: str) -> T:
    """Return ``value``, which must be of class ``kind``."""
    if not isinstance(value, kind):
        reject(parameter, expected, value)
    return value


def text(value: object, parameter: str) -> str:
    """Return a string; one of a subclass becomes a plain one."""
    if type(value) is str:
        return value
    return str.__str__(expect(value, str, parameter, "a string"))


def flag(value: object, parameter: str) -> bool:
    """Return a truth value, Python's or numpy's."""
    if not isinstance(value, bool) and not _is_numpy(value, "bool_"):
        reject(parameter, "True or False", value)
    return bool(value)


def integer(value: object, parameter: str) -> int:
    """Return a number that stands for an integer by itself, whatever its type; no truth value does."""
    number = whole(value)
    if number is None:
        reject(parameter, "an integer", value)
    if not -_LIMIT < number < _LIMIT:
        raise ValueError(f"{parameter} must be an integer of at most {MAX_DIGITS} digits")
    return number


def whole(value: Any) -> int | None:
    """Return the plain integer that ``value`` stands for, or None; truth values and vectors are none."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or _is_numpy(value, "bool_") or not hasattr(type(value), "__index__"):
        return None
    if _is_numpy(value, "ndarray") and (value.ndim or value.dtype.kind not in "iu"):
        return None
    return operator.index(value)


def _is_numpy(value: object, kind: str) -> bool:
    """Return whether ``value`` is of a class of numpy, without loading numpy: what prints help needs none."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, getattr(numpy, kind))


def items(value: object, parameter: str, expected: str) -> tuple[object, ...]:
    """Return what an iterable yields; text and sets, which have no order, are none here."""
    if type(value) is tuple:
        return value
    if isinstance(value, (str, bytes, AbstractSet)) or getattr(type(value), "__iter__", None) is None:
        reject(parameter, expected, value)
    return tuple(cast("Iterable[object]", value))


def names(value: object, parameter: str) -> tuple[str, ...]:
    """Return one name, or the names that an iterable yields, in its order."""
    if isinstance(value, str):
        return (text(value, parameter),)
    expected = "a name or a sequence of names"
    found: list[str] = []
    for name in items(value, parameter, expected):
        if not isinstance(name, str):
            reject(f"each name in {parameter}", "a string", name)
        found.append(text(name, parameter))
    return tuple(found)


def mapping(value: object, parameter: str, expected: str) -> Mapping[object, object]:
    """Return a mapping."""
    if not isinstance(value, Mapping):
        reject(parameter, expected, value)
    return value


def path(value: object, parameter: str) -> str:
    """Return a path as text; bytes are no path, but an `os.PathLike` may give some."""
    if isinstance(value, bytes) or not isinstance(value, (str, os.PathLike)):
        reject(parameter, "a string or an os.PathLike", value)
    return text(os.fsdecode(value), parameter)


def choice(value: object, choices: tuple[str, ...], parameter: str) -> str:
    """Return one of the words ``choices``."""
    word = text(value, parameter)
    if word not in choices:
        raise ValueError(f"{parameter} must be one of {', '.join(choices)}, not {describe(word)}")
    return word


def keywords(given: Iterable[str], known: Collection[str], function: str) -> None:
    """Refuse keywords that a function does not know, in Python's words."""
    for name in given:
        if name not in known:
            near = nearest(name, known)
            hint = f". Did you mean {near!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def refuse_bindings(bindings: object) -> None:
    """Refuse what a caller passes as ``bindings`` for a module, which has no symbolic dimensions.

    Raises:
        TypeError: It is no mapping.
        ValueError: It binds something.
    """
    if bindings is None:
        return
    if mapping(bindings, "bindings", "a mapping from names of symbols to extents"):
        raise ValueError("bindings must be empty for a module: only programs have symbolic dimensions")


def counted(things: Sized, noun: str) -> str:
    """Return how many ``things`` there are, in words: ``3 operations``."""
    count = len(things)
    return f"{count} {noun}{'' if count == 1 else 's'}"


def sequence_of(values: object, kind: type[T], parameter: str) -> tuple[T, ...]:
    """Return ``values`` as a tuple, all of which must be of ``kind``.

    Raises:
        TypeError: They are not.
    """
    expected = f"a sequence of {kind.__name__}s"
    found = items(values, parameter, expected)
    for value in found:
        if not isinstance(value, kind):
            reject(f"each of {parameter}", f"a {kind.__name__}", value)
    return cast("tuple[T, ...]", found)
