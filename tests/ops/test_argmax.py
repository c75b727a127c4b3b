"""ArgMax: ties, NaN, zeros, and rejections."""

from __future__ import annotations

import numpy as np
import pytest
from harness import edge_values, findings, run_both

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

ARGMAX = by_opcode()["ArgMax"]


def form(axis: int, dtype: DType = DType.SI32, keepdims: bool = False) -> dict[str, object]:
    return {"axis": axis, "keepdims": keepdims, "output_dtype": dtype}


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.SI32, DType.SI64, DType.I1])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("output", [DType.SI32, DType.SI64])
def test_awkward_values_with_ties(dtype: DType, axis: int, output: DType) -> None:
    x = np.random.default_rng(axis + 3).choice(edge_values(dtype), (7, 3, 37))
    found = run_both(ARGMAX, [x], form(axis, output))
    np.testing.assert_array_equal(found, np.argmax(x, axis))
    assert found.dtype == output.numpy


def test_ties_go_to_the_least_index_whatever_the_sign_of_zero() -> None:
    x = np.array([[-1.0, -0.0, 0.0, 0.0], [0.0, -0.0, -1.0, -0.0], [2.0, 5.0, 5.0, 1.0]], np.float32)
    np.testing.assert_array_equal(run_both(ARGMAX, [x], form(1)), [1, 0, 1])


def test_the_first_nan_is_the_greatest() -> None:
    x = np.array([[np.inf, 1.0, np.nan, np.nan], [-np.inf, np.nan, np.inf, 0.0], [-np.inf] * 4], np.float32)
    np.testing.assert_array_equal(run_both(ARGMAX, [x], form(1)), [2, 1, 0])


def test_long_axes() -> None:
    x = np.zeros((2, 100_003), np.float32)
    x[0, 99_999] = x[1, 16] = 1
    np.testing.assert_array_equal(run_both(ARGMAX, [x], form(1, DType.SI64)), [99_999, 16])


@pytest.mark.parametrize(
    ("shape", "axis", "dtype", "code"),
    [
        ((2, 0), 1, DType.SI32, "E3006"),
        ((2, 3), 2, DType.SI32, "E3004"),
        ((), 0, DType.SI32, "E3004"),
        ((2, 3), 1, DType.F32, "E2005"),
        ((2**31,), 0, DType.SI32, "E2005"),
    ],
)
def test_rejections(shape: tuple[int, ...], axis: int, dtype: DType, code: str) -> None:
    (finding,) = findings(ARGMAX, [TensorType(DType.F32, shape)], form(axis, dtype))
    assert finding.code == code
    assert finding.help


def test_long_axes_have_wide_indices() -> None:
    assert findings(ARGMAX, [TensorType(DType.F32, (2**31,))], form(0, DType.SI64)) == []


@pytest.mark.parametrize("dtype", [DType.I1, DType.SI8, DType.UI16])
def test_places_that_16_bits_hold_and_others(dtype: DType) -> None:
    for extent in (32_767, 32_768, 40_000):
        x = np.zeros((2, extent), dtype.numpy)
        x[0, -1] = x[1, 5] = 1
        attributes = {"axis": 1, "keepdims": False, "output_dtype": DType.SI64}
        np.testing.assert_array_equal(run_both(by_opcode()["ArgMax"], (x,), attributes), [extent - 1, 5])
