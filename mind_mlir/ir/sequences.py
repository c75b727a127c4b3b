"""Checks of the sequences that the parts of a module hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Sized

T = TypeVar("T")


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
    found = argument_checks.items(values, parameter, expected)
    for value in found:
        if not isinstance(value, kind):
            argument_checks.reject(f"each of {parameter}", f"a {kind.__name__}", value)
    return cast("tuple[T, ...]", found)
