"""Reductions of one large tensor are one nest, wherever the program has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

X = np.random.default_rng(9).standard_normal((96, 101)).astype(np.float32)


def nests(function: Any, *arguments: Any) -> int:
    """Check the results against numpy's, and return in how many nests elements are read."""
    compiled = mind_mlir.jit(function)
    for found, wanted in zip(compiled(*arguments), function(*arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    rows = compiled.lower(*arguments).compile().as_text("schedule").splitlines()
    return sum(" x " in row or " 9696" in row for row in rows if ". fused" in row)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_statistics_take_one_pass(axis: Any) -> None:
    assert nests(lambda x: (x.sum(axis), x.max(axis), x.min(axis), (x * x).sum(axis)), X) == 1


def test_reductions_along_different_axes_stay_apart() -> None:
    assert nests(lambda x: (x.sum(0), x.max(1)), X) == 2


def test_a_later_reduction_joins_the_first_one() -> None:
    def scaled(x: Any) -> Any:
        return ((x - x.min()) / (x.max() - x.min()),)

    assert nests(scaled, X) == 2


def test_what_reads_an_argument_otherwise_joins_its_reductions() -> None:
    assert nests(lambda x: (x.sum(), mnp.abs(x) if not isinstance(x, np.ndarray) else np.abs(x)), X) == 1
