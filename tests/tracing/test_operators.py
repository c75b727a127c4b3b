"""Python's operators on traced arrays are numpy's."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import mind_mlir

_FLOATS = np.array([5.5, -5.5, 7, -7, 0, -0.0, np.inf, np.nan, 1.0, 3.0], np.float32)
_DIVISORS = np.array([2, 2, -3, -3, 2, -2, 3, 1, 0.1, 0], np.float32)
_INTEGERS = np.array([7, -7, 7, -7, 0, 1 << 40, -(1 << 40)], np.int64)
_DIVIDERS = np.array([2, 2, -2, -2, 3, 7, 7], np.int64)
_ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def same(function: Any, *args: Any) -> None:
    """Check that a function gives, traced, what it gives on numpy's arrays, bit for bit."""
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(*args))
    found = mind_mlir.jit(function)(*args)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("name", [*_ARITHMETIC, "truediv", *_COMPARISONS])
def test_operators_of_floats(name: str) -> None:
    found = getattr(operator, name)
    same(found, _FLOATS, _DIVISORS)
    same(lambda x: found(x, 2) if name != "mod" else found(x, 2.5), _FLOATS)
    same(lambda x: found(2.5, x), _DIVISORS)


@pytest.mark.parametrize("name", [*_ARITHMETIC, "and_", "or_", "xor", *_COMPARISONS])
def test_operators_of_integers(name: str) -> None:
    found = getattr(operator, name)
    same(found, _INTEGERS, _DIVIDERS)
    same(lambda x: found(x, 3), _INTEGERS)
    same(lambda x: found(100, x), _DIVIDERS)
