"""Reductions of one large tensor are one nest, wherever the program has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from schedule_harness import function, run

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


@pytest.mark.parametrize("start", ["%c", "%later"])
def test_what_later_ones_start_from_stands_before_them(start: str) -> None:
    """The third one goes where the second went, unless it starts from what is computed after that."""
    x = "tensor<9696xf32>"
    body = f"""
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<f32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
    %r = linalg.reduce {{ arith.addf }} ins(%a0 : {x}) outs(%f0 : tensor<f32>) dimensions = [0]
    %e = linalg.map {{ math.absf }} ins(%r : tensor<f32>) outs(%e0 : tensor<f32>)
    %c = arith.constant -1.0 : f32
    %e1 = tensor.empty() : tensor<f32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<f32>) -> tensor<f32>
    %s = linalg.reduce {{ arith.addf }} ins(%a0 : {x}) outs(%f1 : tensor<f32>) dimensions = [0]
    %later = tensor.extract %e[] : tensor<f32>
    %f2 = linalg.fill ins({start} : f32) outs(%e1 : tensor<f32>) -> tensor<f32>
    %t = linalg.reduce {{ arith.maximumf }} ins(%a0 : {x}) outs(%f2 : tensor<f32>) dimensions = [0]"""
    types = [x, *["tensor<f32>"] * 4]
    text = function(types[:1], types[1:], body, ["%r", "%e", "%s", "%t"])
    results = [np.zeros((), np.float32) for _ in range(4)]
    run(text, [X.reshape(-1)], results)
    total = X.sum(dtype=np.float64)
    first = -1.0 if start == "%c" else abs(total)
    np.testing.assert_allclose(results, [total, abs(total), total, max(X.max(), first)], rtol=1e-4)
