"""tanh, erf, rsqrt, magnitudes, limits and barriers: values written out by hand, gradients, rejections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import edge_values, findings, run_both, run_vjp

import mind_mlir
from mind_mlir import parse
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.example_types import parse_type
from mind_mlir.ops.registry import by_opcode

OPS = by_opcode()
NAN, INF = float("nan"), float("inf")
BOTH = pytest.mark.parametrize("dtype", [DType.F32, DType.F64])


def run(opcode: str, *operands: Any) -> Any:
    """Run one operation interpreted and compiled, check that the two agree, and return the result."""
    return run_both(OPS[opcode], operands, {})


def same_bits(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


@BOTH
@pytest.mark.parametrize(
    ("opcode", "argument", "expected"),
    [
        ("Tanh", 0.5, 0.46211715726000975),
        ("Tanh", -2.0, -0.9640275800758169),
        ("Erf", 0.5, 0.5204998778130465),
        ("Erf", -2.0, -0.9953222650189527),
        ("Rsqrt", 0.25, 2.0),
        ("Rsqrt", 2.0, 0.7071067811865476),
        ("Rsqrt", 1e-30, 1e15),
    ],
)
def test_values(opcode: str, argument: float, expected: float, dtype: DType) -> None:
    result = run(opcode, np.array([argument], dtype.numpy))
    np.testing.assert_allclose(result, [expected], rtol=4 * np.finfo(dtype.numpy).eps)


@BOTH
@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("Tanh", [0.0, -0.0, 1.0, -1.0, NAN]),
        ("Erf", [0.0, -0.0, 1.0, -1.0, NAN]),
        ("Rsqrt", [INF, -INF, 0.0, NAN, NAN]),
        ("Abs", [0.0, 0.0, INF, INF, NAN]),
    ],
)
def test_zeros_infinities_and_nan(opcode: str, expected: list[float], dtype: DType) -> None:
    x = np.array([0.0, -0.0, INF, -INF, NAN], dtype.numpy)
    same_bits(run(opcode, x), np.array(expected, dtype.numpy))


@BOTH
def test_small_numbers(dtype: DType) -> None:
    limits = np.finfo(dtype.numpy)
    x = np.array([limits.smallest_subnormal, -limits.tiny, 1e-30, limits.tiny * 0.7], dtype.numpy)
    same_bits(run("Tanh", x), x)
    exact = [math.erf(float(each)) for each in x]
    if dtype is DType.F32:
        np.testing.assert_allclose(run("Erf", x), exact, atol=limits.smallest_subnormal, rtol=2e-7)
    assert np.isfinite(run("Rsqrt", np.abs(x))).all()
    assert np.isnan(run("Rsqrt", -np.abs(x))).all()


@BOTH
def test_abs_of_floats_clears_the_sign(dtype: DType) -> None:
    x = edge_values(dtype)
    result = run("Abs", x)
    assert not np.signbit(result[~np.isnan(x)]).any()
    np.testing.assert_array_equal(result, np.where(x < 0, -x, x))


@pytest.mark.parametrize("dtype", [DType.SI32, DType.SI64])
def test_abs_of_the_least_integer_is_itself(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    x = np.array([info.min, info.min + 1, -1, 0, info.max], dtype.numpy)
    assert run("Abs", x).tolist() == [info.min, info.max, 1, 0, info.max]


def test_clamp() -> None:
    x = np.array([-3.0, 0.5, 3.0, 2.0, NAN, 1.0, 1.0, 0.0, -0.0])
    low = np.array([-1.0, -1.0, -1.0, 1.0, 0.0, NAN, 0.0, -0.0, 0.0])
    high = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0, NAN, -0.0, INF])
    same_bits(run("Clamp", x, low, high), np.array([-1.0, 0.5, 1.0, 0.0, NAN, NAN, NAN, -0.0, 0.0]))
    assert run("Clamp", np.array([-5, 9, 2]), np.array([0, 0, 3]), np.array([4, 4, 1])).tolist() == [0, 4, 1]


def test_stop_gradient_hands_bits_through() -> None:
    x = edge_values(DType.F32)
    assert run("StopGradient", x).tobytes() == x.tobytes()
    assert run("StopGradient", np.array([True, False])).tolist() == [True, False]


# Gradients


def vjp(opcode: str, *operands: Any, seed: Any) -> list[Any]:
    return run_vjp(OPS[opcode], operands, np.asarray(seed), {})


def test_abs_gradient_is_the_sign() -> None:
    (gradient,) = vjp("Abs", np.array([2.0, -2.0, 0.0, -0.0, NAN, -INF]), seed=[3.0, 3.0, 3.0, NAN, 3.0, 3.0])
    same_bits(gradient, np.array([3.0, -3.0, 0.0, 0.0, 0.0, -3.0]))


def test_clamp_gradient_goes_to_what_is_chosen() -> None:
    x = np.array([0.0, -9.0, 9.0, 1.0, -1.0, 3.0, NAN, -9.0])
    low = np.array([-1.0, -1.0, -1.0, -1.0, -1.0, 2.0, -1.0, 1.0])
    high = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    of_x, of_low, of_high = vjp("Clamp", x, low, high, seed=np.full(8, 5.0))
    assert of_x.tolist() == [5.0, 0.0, 0.0, 5.0, 5.0, 0.0, 5.0, 0.0]
    assert of_low.tolist() == [0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    assert of_high.tolist() == [0.0, 0.0, 5.0, 0.0, 0.0, 5.0, 0.0, 0.0]


def test_tanh_gradient_is_exact_where_it_is_flat() -> None:
    (gradient,) = vjp("Tanh", np.array([15.0, 40.0]), seed=[1.0, 1.0])
    assert gradient[0] == pytest.approx(4 * math.exp(-30), rel=1e-3)
    assert gradient[1] == 0


def test_rsqrt_gradient_does_not_overflow_on_the_way() -> None:
    (gradient,) = vjp("Rsqrt", np.array([1e-240]), seed=[1e-100])
    np.testing.assert_allclose(gradient, [-0.5e260], rtol=1e-14)


def test_erf_gradient_of_far_numbers_is_zero() -> None:
    (gradient,) = vjp("Erf", np.array([0.0, INF, 1e200]), seed=[1.0, 1.0, 1.0])
    np.testing.assert_allclose(gradient, [2 / math.sqrt(math.pi), 0.0, 0.0], rtol=1e-15)


def test_stop_gradient_is_a_barrier() -> None:
    text = """\
%0 = Input {name="x"} : tensor<f64[3]>
%1 = StopGradient (%0) : tensor<f64[3]>
%2 = Mul (%0, %1) : tensor<f64[3]>
%3 = Sum (%2) {axes=[], keepdims=false} : tensor<f64[]>
outputs: %3
"""
    x = np.array([1.0, -2.0, 3.0])
    found = mind_mlir.compile(mind_mlir.differentiate(parse(text)).module)(x)
    np.testing.assert_array_equal(found[-1], x)


# Rejections


@pytest.mark.parametrize("opcode", ["Tanh", "Erf", "Rsqrt"])
def test_functions_of_integers_are_E2005(opcode: str) -> None:  # noqa: N802 -- the code as it is spelled
    (finding,) = findings(OPS[opcode], [TensorType(DType.SI32, (2,))], {})
    assert finding.code == "E2005"
    assert "the result is no integer: cast to a float first" in finding.notes


@pytest.mark.parametrize(
    ("operands", "code"),
    [
        (("f32[2, 3]", "f32[3]", "f32[2, 3]"), "E3002"),
        (("f32[2, 3]", "f32[2, 3]", "f32[2, 1]"), "E3003"),
        (("f32[3]", "f32[3]", "f64[3]"), "E2004"),
        (("i1[3]", "i1[3]", "i1[3]"), "E2005"),
    ],
)
def test_clamp_rejections(operands: tuple[str, ...], code: str) -> None:
    found = findings(OPS["Clamp"], [parse_type(spelled, None) for spelled in operands], {})
    assert {finding.code for finding in found} == {code}
    assert found[0].help
