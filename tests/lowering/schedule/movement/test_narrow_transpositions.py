"""Transposes of narrow matrices, between guard pages: in rows that are read, or written, whole."""

from __future__ import annotations

from typing import Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

DTYPES = (np.bool_, np.uint8, np.int16, np.float16, np.float32, np.int64)


def lowered(order: tuple[int, ...], x: Any, target: str | None = None) -> mind_mlir.Executable:
    return mind_mlir.jit(lambda x: mnp.transpose(x, order), target=target).lower(x).compile()


def check(x: Any, *order: int, target: str | None = None) -> None:
    executable = lowered(order, x, target)
    (found,) = guarded.call_executable(executable, {executable.parameters[0].name: x})
    np.testing.assert_array_equal(found, x.transpose(order))


def numbers(dtype: Any, *shape: int) -> Any:
    return np.random.default_rng(7).integers(0, 200, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_rows_become_columns_and_back(columns: int, dtype: Any) -> None:
    for rows in (127, 128, 131):
        check(numbers(dtype, rows, columns), 1, 0)
        check(numbers(dtype, columns, rows), 1, 0)


@pytest.mark.parametrize("target", ["sse", "avx2"])
def test_on_other_targets(target: str) -> None:
    for dtype in (np.uint8, np.float64):
        check(numbers(dtype, 131, 3), 1, 0, target=target)
        check(numbers(dtype, 3, 131), 1, 0, target=target)


def test_images() -> None:
    for height, width in ((5, 131), (131, 5), (1, 257)):
        check(numbers(np.float32, height, width, 3), 2, 0, 1)
        check(numbers(np.float32, 3, height, width), 1, 2, 0)
        check(numbers(np.float32, 2, height, width, 3), 0, 3, 1, 2)
        check(numbers(np.float32, 2, 3, height, width), 0, 2, 3, 1)
        check(numbers(np.float32, height, width, 3), 1, 2, 0)
        check(numbers(np.float32, height, width, 3), 1, 0, 2)


def test_which_are_narrow() -> None:
    for shape, is_narrow in {(999, 4): True, (4, 999): True, (5, 999): False, (31, 3): False}.items():
        text = lowered((1, 0), numbers(np.float32, *shape), "avx512").as_text("schedule")
        assert ("columns" in text, "square" in text) == (is_narrow, not is_narrow)


def test_many_rows_are_shared() -> None:
    x = numbers(np.float32, 40_013, 3)
    for threads in (1, 2):
        np.testing.assert_array_equal(mind_mlir.jit(mnp.transpose, threads=threads)(x), x.T)
        np.testing.assert_array_equal(mind_mlir.jit(mnp.transpose, threads=threads)(x.T.copy()), x)


def test_numbers_stay_what_they_are() -> None:
    x = np.array([[np.nan, -0.0, np.inf], [5e-324, 0.0, -np.inf]] * 40)
    found = np.asarray(mind_mlir.jit(mnp.transpose)(x))
    assert found.tobytes() == np.ascontiguousarray(x.T).tobytes()
