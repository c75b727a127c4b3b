"""LayerNorm: means far from 0, constant rows, gradients against other formulas, and rejections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_vjp

import mind_mlir
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

NORM = by_opcode()["LayerNorm"]


def form(axis: int, epsilon: float = 1e-5) -> dict[str, Any]:
    return {"epsilon": epsilon, "feature_axis": axis}


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_features_have_mean_0_and_variance_1(axis: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((16, 33, 24)).astype(np.float32) * 3 + 5
    count = x.shape[axis]
    result = run_both(NORM, [x, np.ones(count, np.float32), np.zeros(count, np.float32)], form(axis, 0.0))
    np.testing.assert_allclose(result.mean(axis), 0, atol=1e-5)
    np.testing.assert_allclose((result * result).mean(axis), 1, rtol=1e-4)


def test_each_feature_is_scaled_and_shifted() -> None:
    x = np.array([[1.0, 3.0], [5.0, 5.0]])
    result = run_both(NORM, [x, np.array([2.0, 10.0]), np.array([0.5, -0.5])], form(1, 0.0))
    np.testing.assert_array_equal(result[0], [-1.5, 9.5])
    assert np.isnan(result[1]).all(), "0 / 0 without an epsilon"
    result = run_both(NORM, [x, np.array([2.0, 10.0]), np.array([0.5, -0.5])], form(1))
    np.testing.assert_array_equal(result[1], [0.5, -0.5])


def test_a_mean_far_from_0_costs_no_accuracy() -> None:
    x = (np.arange(1000, dtype=np.float32) % 7 + 2**20).reshape(2, 500)
    result = run_both(NORM, [x, np.ones(500, np.float32), np.zeros(500, np.float32)], form(1))
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(result, expected, atol=0.05)


def test_gradients() -> None:
    rng = np.random.default_rng(3)
    x, seed = rng.standard_normal((4, 6)), rng.standard_normal((4, 6))
    gamma, beta = rng.standard_normal(6), rng.standard_normal(6)
    of_x, of_gamma, of_beta = run_vjp(NORM, [x, gamma, beta], seed, form(1))
    scale = 1 / np.sqrt(x.var(1) + 1e-5)
    normal = (x - x.mean(1, keepdims=True)) * scale[:, None]
    for row in range(4):
        # The Jacobian of a row as a matrix.
        jacobian = scale[row] * (np.eye(6) - 1 / 6 - np.outer(normal[row], normal[row]) / 6)
        assert of_x is not None
        np.testing.assert_allclose(of_x[row], jacobian @ (seed[row] * gamma), atol=1e-12)
    assert of_gamma is not None
    assert of_beta is not None
    np.testing.assert_allclose(of_gamma, (seed * normal).sum(0))
    np.testing.assert_allclose(of_beta, seed.sum(0))


@pytest.mark.parametrize(
    ("shapes", "attributes", "code"),
    [
        (((2, 3), (3,), (3,)), form(2), "E3004"),
        (((), (3,), (3,)), form(0), "E3004"),
        (((2, 3), (2,), (3,)), form(1), "E3003"),
        (((2, 3), (3,), (1,)), form(1), "E3003"),
        (((2, 3), (1, 3), (3,)), form(1), "E3002"),
        (((2, 3), (3,), (3,)), form(1, -1e-5), "E1103"),
        (((2, 3), (3,), (3,)), form(1, float("inf")), "E1103"),
        (((2, 3), (3,), (3,)), form(1, float("nan")), "E1103"),
    ],
)
def test_rejections(shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any], code: str) -> None:
    (finding,) = findings(NORM, [TensorType(DType.F32, shape) for shape in shapes], attributes)
    assert finding.code == code
    assert finding.help


def test_texts_and_builders_take_any_number_as_epsilon() -> None:
    text = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Input {name="g"} : tensor<f32[3]>
%2 = LayerNorm (%0, %1, %1) {epsilon=1, feature_axis=1} : tensor<f32[2, 3]>
outputs: %2
"""
    module = mind_mlir.parse(text)
    assert module.operations[-1].attributes["epsilon"] == 1.0
    assert mind_mlir.parse(str(module)) == module
    builder = mind_mlir.Builder()
    x, g = builder.input("x", TensorType(DType.F32, (2, 3))), builder.input("g", TensorType(DType.F32, (3,)))
    built = builder.build([builder.emit("LayerNorm", x, g, g, epsilon=1, feature_axis=np.int64(1))])
    assert built.operations[-1].attributes == module.operations[-1].attributes
