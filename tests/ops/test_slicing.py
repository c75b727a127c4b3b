"""Slice and Pad: numpy rules, rejections, derivatives, compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_harness import (
    DTYPES,
    Case,
    check_adjoint,
    check_compiled,
    f32,
    integers,
    ramp,
    rejection,
    run,
    shapes_of,
)

from mind_mlir import DType
from mind_mlir.ir.attributes import TensorLiteral


def scalar(value: Any, dtype: Any = np.float32) -> TensorLiteral:
    found = DType.from_numpy(np.dtype(dtype))
    assert found is not None
    return TensorLiteral.of(value, found)


# Slice


def sliced(x: Any, *bounds: tuple[int, int, int]) -> Any:
    starts, ends, steps = zip(*bounds, strict=True) if bounds else ((), (), ())
    return run("Slice", x, starts=starts, ends=ends, steps=steps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slice(dtype: Any) -> None:
    x = ramp(4, 6, dtype=dtype)
    np.testing.assert_array_equal(sliced(x, (1, 3, 1), (0, 6, 2)), x[1:3, 0:6:2])
    np.testing.assert_array_equal(sliced(x, (-3, -1, 1), (-2, 100, 1)), x[-3:-1, -2:100])
    np.testing.assert_array_equal(sliced(x, (3, -5, -1), (5, 0, -3)), x[::-1, 5:0:-3])
    assert sliced(x, (2, 2, 1), (3, 1, 1)).shape == (0, 0)
    assert sliced(ramp(dtype=dtype)) == ramp(dtype=dtype)


bound = st.integers(-9, 9) | st.sampled_from([-(2**63), 2**63 - 1])
step = st.integers(-4, 4).filter(bool) | st.sampled_from([-(2**63), 2**63 - 1])
axis = st.tuples(st.integers(0, 6), bound, bound, step)


@given(st.lists(axis, max_size=3))
def test_slice_matches_numpy(axes: list[tuple[int, int, int, int]]) -> None:
    x = ramp(*(extent for extent, *_ in axes))
    result = sliced(x, *((start, end, step) for _, start, end, step in axes))
    np.testing.assert_array_equal(result, x[tuple(slice(*bounds) for _, *bounds in axes)])


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.integers(1, 4))
def test_slice_extent_is_that_of_the_document(extent: int, start: int, end: int, step: int) -> None:
    start, end = min(start, extent), min(end, extent)
    expected = max(-((start - end) // step), 0)  # ceil((end - start) / step)
    assert sliced(ramp(extent), (start, end, step)).shape == (expected,)


def test_slice_rejects() -> None:
    lists = {"starts": (0, 0), "ends": (1, 1), "steps": (1, 1)}
    for name in lists:
        for wrong in ((), (1,), (1, 1, 1)):
            (finding,) = rejection("Slice", f32(3, 4), **{**lists, name: wrong})
            assert finding.code == "E4007"
            assert len(wrong) in finding.context["lengths"]
    findings = rejection("Slice", f32(3, 4), **{**lists, "steps": (0, 0)})
    assert [(f.code, f.context["dimension"]) for f in findings] == [("E4008", 0), ("E4008", 1)]


# Pad


def padded(x: Any, value: Any, *amounts: tuple[int, int, int]) -> Any:
    low, high, interior = zip(*amounts, strict=True) if amounts else ((), (), ())
    return run(
        "Pad", x, low=low, high=high, interior=interior, pad_value=scalar(x.dtype.type(value), x.dtype)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_pad(dtype: Any) -> None:
    x = ramp(2, 3, dtype=dtype)
    expected = np.full((5, 8), 7, dtype)
    expected[1:4:2, 0:7:3] = x
    np.testing.assert_array_equal(padded(x, 7, (1, 1, 1), (0, 1, 2)), expected)
    np.testing.assert_array_equal(padded(x, 7, (0, 0, 0), (0, 0, 0)), x)
    assert padded(ramp(dtype=dtype), 7) == ramp(dtype=dtype)


def test_pad_value_keeps_its_bits() -> None:
    for value in (-0.0, np.nan, -np.inf):
        padding = padded(ramp(1), value, (1, 1, 0))[[0, 2]]
        assert padding.tobytes() == np.full(2, value, np.float32).tobytes()


amount = st.integers(0, 3)


@given(st.lists(st.tuples(st.integers(0, 4), amount, amount, amount), max_size=3))
def test_pad_is_undone_by_slice(axes: list[tuple[int, int, int, int]]) -> None:
    x = ramp(*(extent for extent, *_ in axes))
    result = padded(x, -1, *((low, high, interior) for _, low, high, interior in axes))
    for extent, found, (low, high, interior) in zip(
        x.shape, result.shape, (a[1:] for a in axes), strict=True
    ):
        assert found == low + extent + high + max(extent - 1, 0) * interior  # as ptir-v0.4.md has it
    kept = tuple(slice(low, low + e * (gap + 1), gap + 1) for e, low, _, gap in axes)
    np.testing.assert_array_equal(result[kept], x)
    assert np.count_nonzero(result == -1) == result.size - x.size


def test_pad_rejects() -> None:
    good = {"low": (1, 1), "high": (0, 0), "interior": (0, 2), "pad_value": scalar(0)}
    bad: list[dict[str, Any]] = [
        {name: amounts} for name in ("low", "high", "interior") for amounts in ((1,), (0, -1), (-1, 0))
    ]
    bad += [{"pad_value": scalar(0, np.float64)}, {"pad_value": scalar([0])}, {"low": (2**63 - 1, 0)}]
    for change in bad:
        (finding,) = rejection("Pad", f32(3, 4), **{**good, **change})
        assert finding.code == "E1103"
    assert len(rejection("Pad", f32(3, 4), **{**good, "low": (-1, -1, 0)})) == 3


# Derivatives


@given(st.lists(axis, max_size=3))
def test_derivative_of_slice(axes: list[tuple[int, int, int, int]]) -> None:
    extents, starts, ends, steps = zip(*axes, strict=True) if axes else ((), (), (), ())
    x = integers(np.random.default_rng(1), extents)
    check_adjoint("Slice", x, starts=starts, ends=ends, steps=steps)


@given(st.lists(st.tuples(st.integers(0, 4), amount, amount, amount), max_size=3))
def test_derivative_of_pad(axes: list[tuple[int, int, int, int]]) -> None:
    extents, low, high, interior = zip(*axes, strict=True) if axes else ((), (), (), ())
    x = integers(np.random.default_rng(1), extents)
    check_adjoint("Pad", x, low=low, high=high, interior=interior, pad_value=scalar(0, np.float64))


# Compiled code


def picks(rng: np.random.Generator, choices: list[int], count: int) -> tuple[int, ...]:
    return tuple(map(int, rng.choice(choices, count)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_slices_and_pads(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    cases: list[Case] = []
    for _ in range(25):
        x = ramp(*shapes_of(rng), dtype=dtype)
        bounds = [picks(rng, list(range(-8, 9)), x.ndim) for _ in range(2)]
        steps = picks(rng, [-3, -2, -1, 1, 2, 3, 2**62], x.ndim)
        cases.append(("Slice", [x], {"starts": bounds[0], "ends": bounds[1], "steps": steps}))
        low, high, interior = (picks(rng, [0, 1, 2], x.ndim) for _ in range(3))
        attributes = {"low": low, "high": high, "interior": interior, "pad_value": scalar(1, dtype)}
        cases.append(("Pad", [x], attributes))
    check_compiled(cases)
