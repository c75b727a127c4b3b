"""Quotients and remainders of vectors of integers are truncated, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.target import named_target, runs_here

Array = np.ndarray[Any, np.dtype[Any]]
TARGETS = [name for name in ("avx512", "avx2", "sse") if runs_here(named_target(name))] or ["native"]
DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]


def operands(dtype: Any) -> tuple[Array, Array]:
    """Return all pairs of 8 bits; of others, multiples and what is next to them, ends and random numbers."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        each = np.arange(info.min, info.max + 1)
        left, right = (grid.ravel() for grid in np.meshgrid(each, each))
    else:
        rng = np.random.default_rng(info.bits)
        ends = np.array([info.min, info.min + 1, 0, 1, 2, 3, info.max - 1, info.max])
        right = np.concatenate([rng.integers(info.min, info.max, 4_000), rng.integers(1, 1_000, 4_001)])
        left = info.max // np.where(right == 0, 1, right) * right - np.arange(right.size) % 3
        left, right = np.append(left, np.repeat(ends, 8)), np.append(right, np.tile(ends, 8))
        left = np.append(left, rng.integers(info.min, info.max, 4_000))
        right = np.append(right, rng.integers(-100 if info.min else 0, 100, 4_000))
    kept = (right != 0) & (left >= info.min) & (left <= info.max)
    return left[kept].astype(dtype), right[kept].astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_and_remainders_are_exact(dtype: Any) -> None:
    x, y = operands(dtype)
    wide = x.astype(np.int64), y.astype(np.int64)
    remainder = np.fmod(*wide)
    expected = ((wide[0] - remainder) // wide[1]).astype(dtype), remainder.astype(dtype)
    for target in TARGETS:
        found = mind_mlir.jit(lambda x, y: (mnp.div(x, y), mnp.fmod(x, y)), target=target)(x, y)
        for result, exact in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("opcode", [mnp.div, mnp.fmod])
def test_what_is_divided_by_a_constant_is_multiplied(opcode: Any) -> None:
    x = np.arange(4096, dtype=np.int32)
    by_constant = mind_mlir.jit(lambda x: opcode(x, 7)).lower(x).compile().as_text("llvm")
    by_variable = mind_mlir.jit(opcode).lower(x, x).compile().as_text("llvm")
    assert "fdiv" not in by_constant
    assert "fdiv" in by_variable
