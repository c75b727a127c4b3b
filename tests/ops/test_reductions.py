"""Sum and Mean: axes, integer means, empty axes, and rejections."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_vjp

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import FLOATS, INTEGERS, NUMERIC
from mind_mlir.ops.reductions import reduced_axes
from mind_mlir.ops.registry import by_opcode

OPS = by_opcode()
BOTH = pytest.mark.parametrize("opcode", ["Sum", "Mean"])


def run(opcode: str, operand: Any, axes: tuple[int, ...] = (), keepdims: bool = False) -> Any:
    """Run a reduction interpreted and compiled, check that the two agree, and return the result."""
    return run_both(OPS[opcode], [operand], {"axes": axes, "keepdims": keepdims})


def rejections(operand: TensorType, axes: tuple[int, ...]) -> list[Any]:
    found = [findings(OPS[opcode], [operand], {"axes": axes}) for opcode in ("Sum", "Mean")]
    assert [f.code for f in found[0]] == [f.code for f in found[1]]
    return found[0]


def test_examples_of_the_specification() -> None:
    x = np.arange(60, dtype=np.int64).reshape(3, 4, 5)
    assert run("Sum", x, (1,)).shape == (3, 5)
    assert run("Sum", x, (1,), keepdims=True).shape == (3, 1, 5)
    mean = run("Mean", np.arange(24.0).reshape(2, 3, 4), (1, 2))
    np.testing.assert_array_equal(mean, [sum(range(12)) / 12, sum(range(12, 24)) / 12])


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    "axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2), (2, 0), (-1,), (-3, 2)]
)
def test_sum_over_every_choice_of_axes(axes: tuple[int, ...], keepdims: bool) -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    expected = np.zeros([1 if a in {b % 3 for b in axes} else n for a, n in enumerate(x.shape)], np.int32)
    for index in itertools.product(*map(range, x.shape)):
        expected[tuple(min(i, n - 1) for i, n in zip(index, expected.shape, strict=True))] += x[index]
    if not keepdims:
        expected = expected.squeeze(tuple({axis % 3 for axis in axes}))
    result = run("Sum", x, axes, keepdims)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@BOTH
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (1, 1, 1)])
def test_no_axes_reduce_everything_to_a_scalar(opcode: str, shape: tuple[int, ...], keepdims: bool) -> None:
    result = run(opcode, np.full(shape, 2.0), (), keepdims)
    assert result.shape == ()
    assert result == (2.0 if opcode == "Mean" else 2.0 * math.prod(shape))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axes"), [((5000,), ()), ((40, 333), (1,)), ((333, 40), (0,)), ((9, 1), (1,))]
)
def test_sums_of_many_floats(dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(dtype.numpy)
    for opcode in ("Sum", "Mean"):
        result = run(opcode, x, axes)
        exact = np.sum(x, axis=axes or None, dtype=np.longdouble)
        scale = x.shape[axes[0]] if axes else x.size
        if opcode == "Mean":
            exact, scale = exact / scale, 1
        np.testing.assert_allclose(
            np.asarray(result, np.float64), np.asarray(exact, np.float64), rtol=0, atol=scale * 1e-6
        )


def test_infinities_and_nan_spread() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[1.0, inf, 2.0], [inf, -inf, 0.0], [nan, 1.0, 1.0], [-inf, -inf, 3.0]])
    np.testing.assert_array_equal(run("Sum", x, (1,)), [inf, nan, nan, -inf])
    np.testing.assert_array_equal(run("Mean", x, (1,)), [inf, nan, nan, -inf])


def test_sum_of_negative_zeros_is_positive_zero() -> None:
    for shape in ((), (3,), (3, 1)):
        assert not np.signbit(run("Sum", np.full(shape, -0.0)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_sums_wrap_around(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    assert run("Sum", np.array([info.max, 1], dtype.numpy)) == info.min
    assert run("Sum", np.full(300, info.min, dtype.numpy)) == 0


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("values", "mean"),
    [([1, 2], 1), ([-1, -2], -1), ([-1, 0], 0), ([7, 7, 8], 7), ([-7, -7, -8], -7), ([5], 5), ([-6, 0], -3)],
)
def test_integer_means_truncate_toward_zero(dtype: DType, values: list[int], mean: int) -> None:
    assert run("Mean", np.array(values, dtype.numpy)) == mean
    assert int(np.mean(values)) == mean


def test_i32_means_do_not_overflow() -> None:
    info = np.iinfo(np.int32)
    assert run("Mean", np.full(1000, info.max, np.int32)) == info.max
    assert run("Mean", np.full(1000, info.min, np.int32)) == info.min


def test_i64_means_wrap_around() -> None:
    info = np.iinfo(np.int64)
    assert run("Mean", np.array([info.max, 1])) == info.min // 2
    assert run("Mean", np.array([info.min, 0])) == info.min // 2
    assert run("Mean", np.array([info.min])) == info.min


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize(
    ("shape", "axes", "keepdims", "expected"),
    [
        ((0,), (), False, ()),
        ((3, 0), (1,), False, (3,)),
        ((3, 0), (1,), True, (3, 1)),
        ((2, 0, 4), (1, 2), False, (2,)),
    ],
)
def test_reductions_of_nothing(
    dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool, expected: tuple[int, ...]
) -> None:
    empty = np.empty(shape, dtype.numpy)
    total, mean = run("Sum", empty, axes, keepdims), run("Mean", empty, axes, keepdims)
    assert total.shape == mean.shape == expected
    np.testing.assert_array_equal(total, np.zeros(expected))
    assert not np.signbit(total).any()
    if dtype.is_float:
        assert np.isnan(mean).all()
    else:
        np.testing.assert_array_equal(mean, np.zeros(expected))


@BOTH
@pytest.mark.parametrize("keepdims", [False, True])
def test_empty_results(opcode: str, keepdims: bool) -> None:
    result = run(opcode, np.empty((3, 0), np.float32), (0,), keepdims)
    assert result.shape == ((1, 0) if keepdims else (0,))


@pytest.mark.parametrize(("axes", "axis"), [((3,), 3), ((0, -4), -4), ((5, 1), 5)])
def test_axis_outside_the_rank_is_E3004(axes: tuple[int, ...], axis: int) -> None:  # noqa: N802 -- the code
    (finding,) = rejections(TensorType(DType.F32, (2, 3, 4)), axes)
    assert finding.code == "E3004"
    assert (finding.context["axis"], finding.context["rank"]) == (axis, 3)
    assert "[-3, 2]" in (finding.help or "")


def test_a_scalar_has_no_axes() -> None:
    (finding,) = rejections(TensorType(DType.F32), (0,))
    assert finding.code == "E3004"
    assert "leave the list empty" in (finding.help or "")


@pytest.mark.parametrize(("axes", "axis"), [((1, 1), 1), ((0, 2, 0), 0), ((1, -2), -2)])
def test_axis_given_twice_is_E3005(axes: tuple[int, ...], axis: int) -> None:  # noqa: N802 -- the code
    (finding,) = rejections(TensorType(DType.F32, (2, 3, 4)), axes)
    assert finding.code == "E3005"
    assert (finding.context["axes"], finding.context["axis"]) == (axes, axis)


def test_all_bad_axes_are_reported_at_once() -> None:
    found = rejections(TensorType(DType.SI32, (2, 3)), (7, 0, 0, -9))
    assert [finding.code for finding in found] == ["E3004", "E3005", "E3004"]


def test_defaults_reduce_everything() -> None:
    for opcode in ("Sum", "Mean"):
        assert findings(OPS[opcode], [TensorType(DType.F32, (2, 3))], {}) == []


def test_reduced_axes_are_normalised() -> None:
    assert reduced_axes((), 3) == (0, 1, 2)
    assert reduced_axes((-1, 0), 3) == (0, 2)
    assert reduced_axes((), 0) == ()


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (-1,), (0, 1, 2)])
def test_gradients_spread_the_cotangent(axes: tuple[int, ...], keepdims: bool) -> None:
    x = np.zeros((2, 3, 4))
    reduced = np.sum(x, axis=axes or None, keepdims=keepdims and bool(axes))
    seed = np.arange(reduced.size, dtype=np.float64).reshape(reduced.shape) + 1
    kept = np.sum(x, axis=axes or None, keepdims=True).shape
    expected = np.broadcast_to(seed.reshape(kept), x.shape)
    attributes = {"axes": axes, "keepdims": keepdims}
    (spread,) = run_vjp(OPS["Sum"], [x], seed, attributes)
    np.testing.assert_array_equal(spread, expected)
    (mean,) = run_vjp(OPS["Mean"], [x], seed, attributes)
    assert mean is not None
    np.testing.assert_allclose(mean, expected * reduced.size / x.size, rtol=1e-15)
