"""Short loops around single vectors, which are emitted one iteration after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.default_rng(7)


def listing(function: Callable[..., Any], *arguments: Any) -> str:
    return str(mind_mlir.jit(function, target="avx512").lower(*arguments).compile().as_text("schedule"))


def matrices(count: int, rows: int, columns: int, dtype: Any = np.float32) -> Any:
    return RANDOM.integers(-9, 9, (count, rows, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int8])
@pytest.mark.parametrize(("m", "k", "n"), [(4, 4, 4), (1, 3, 2), (2, 7, 5), (6, 6, 6), (3, 1, 3), (4, 13, 4)])
def test_products_of_tiny_matrices(m: int, k: int, n: int, dtype: Any) -> None:
    x, y = matrices(37, m, k, dtype), matrices(37, k, n, dtype)
    x[0, 0, 0], y[0, 0, 0] = (-0.0, np.inf) if dtype in (np.float32, np.float64) else (1, 2)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(mind_mlir.jit(lambda x, y: x @ y)(x, y), x @ y)


def test_loops_are_none_where_they_are_short() -> None:
    assert "unrolled  d1, d3" in listing(lambda x, y: x @ y, matrices(99, 4, 4), matrices(99, 4, 4))
    assert "unrolled  d1" in listing(lambda x: x.sum(axis=1), matrices(99, 5, 8))
    assert "unrolled" not in listing(lambda x: x.sum(axis=1), matrices(99, 9, 8))  # not short
    assert "unrolled" not in listing(lambda x: x.sum(axis=1), matrices(1, 5, 8))  # over at once
    assert "unrolled" not in listing(lambda x: x.sum(axis=1), matrices(99, 4, 512))  # several steps
