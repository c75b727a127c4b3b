"""DynamicSlice and DynamicUpdateSlice: where windows lie, what is refused, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_vjp

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

SLICE, UPDATE = by_opcode()["DynamicSlice"], by_opcode()["DynamicUpdateSlice"]
X = np.arange(35.0).reshape(7, 5)


def f32(*shape: int) -> TensorType:
    return TensorType(DType.F32, shape)


def i64(*shape: int) -> TensorType:
    return TensorType(DType.SI64, shape)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("start", "row", "column"),
    [((1, 2), 1, 2), ((5, 2), 5, 2), ((6, 3), 5, 2), ((-1, -9), 0, 0), ((2**31 - 1, -(2**31)), 5, 0)],
)
def test_a_window_is_moved_into_the_tensor(start: tuple[int, int], row: int, column: int, dtype: Any) -> None:
    first = np.array(start, dtype)
    taken = run_both(SLICE, [X, first], {"sizes": (2, 3)})
    np.testing.assert_array_equal(taken, X[row : row + 2, column : column + 3])
    update = -np.arange(1.0, 7).reshape(2, 3)
    expected = X.copy()
    expected[row : row + 2, column : column + 3] = update
    np.testing.assert_array_equal(run_both(UPDATE, [X, update, first], {}), expected)


def test_starts_of_any_size() -> None:
    start = np.array([2**63 - 1, -(2**63)])
    np.testing.assert_array_equal(run_both(SLICE, [X, start], {"sizes": (2, 3)}), X[5:, :3])


def test_gradients_are_the_transposed_maps() -> None:
    start = np.array([5, 9])
    seed = np.arange(1.0, 5).reshape(2, 2)
    dx, none = run_vjp(SLICE, [X, start], seed, {"sizes": (2, 2)})
    expected = np.zeros_like(X)
    expected[5:, 3:] = seed
    np.testing.assert_array_equal(dx, expected)
    assert none is None
    seed = np.arange(35.0).reshape(7, 5)
    dx, du, none = run_vjp(UPDATE, [X, np.ones((2, 2)), start], seed, {})
    np.testing.assert_array_equal(du, seed[5:, 3:])
    seed[5:, 3:] = 0
    np.testing.assert_array_equal(dx, seed)
    assert none is None


@pytest.mark.parametrize(
    ("types", "sizes", "codes"),
    [
        ([f32(7, 5), i64(2)], (7, 6), ["E4123"]),
        ([f32(7, 5), i64(2)], (8, 6), ["E4123", "E4123"]),
        ([f32(7, 5), i64(2)], (7,), ["E4007"]),
        ([f32(7, 5), i64(2)], (-1, 5), ["E3006"]),
        ([f32(7, 5), i64(3)], (1, 1), ["E3003"]),
        ([f32(7, 5), i64()], (1, 1), ["E3002"]),
        ([f32(7, 5), i64(2, 1)], (1,), ["E4007", "E3002"]),
        ([f32(7, 5), f32(2)], (1, 1), ["E2005"]),
    ],
)
def test_windows_that_are_refused(types: list[TensorType], sizes: tuple[int, ...], codes: list[str]) -> None:
    assert [finding.code for finding in findings(SLICE, types, {"sizes": sizes})] == codes


@pytest.mark.parametrize(
    ("update", "start", "codes"),
    [
        (f32(8, 5), i64(2), ["E4123"]),
        (f32(5), i64(2), ["E3002"]),
        (f32(5), i64(1), ["E3002", "E3003"]),
        (TensorType(DType.F64, (1, 1)), i64(2), ["E2004"]),
        (f32(1, 1), i64(), ["E3002"]),
        (f32(1, 1), f32(2), ["E2005"]),
    ],
)
def test_updates_that_are_refused(update: TensorType, start: TensorType, codes: list[str]) -> None:
    assert [finding.code for finding in findings(UPDATE, [f32(7, 5), update, start], {})] == codes
