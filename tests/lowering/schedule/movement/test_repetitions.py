"""Elements that are repeated a few times side by side, between guard pages: rows are written whole."""

from __future__ import annotations

from typing import Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp


def lowered(x: Any, shape: tuple[int, ...], target: str | None = None) -> mind_mlir.Executable:
    return mind_mlir.jit(lambda x: mnp.broadcast_to(x, shape), target=target).lower(x).compile()


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float16, np.int32, np.float64])
@pytest.mark.parametrize("count", [2, 5, 8])
def test_elements_side_by_side(count: int, dtype: Any) -> None:
    for shape, wider in (((4099, 1), (4099,)), ((1031, 1), (3, 1031)), ((3, 1, 1031, 1), (3, 2, 1031))):
        x = np.random.default_rng(7).integers(0, 200, shape).astype(dtype)
        executable = lowered(x, (*wider, count))
        assert ". repetition" in executable.as_text("schedule")
        (found,) = guarded.call_executable(executable, {executable.parameters[0].name: x})
        np.testing.assert_array_equal(found, np.broadcast_to(x, (*wider, count)))


@pytest.mark.parametrize("target", ["sse", "avx2"])
def test_on_other_targets(target: str) -> None:
    x = np.random.default_rng(7).integers(0, 200, (4099, 1)).astype(np.uint8)
    executable = lowered(x, (4099, 3), target)
    (found,) = guarded.call_executable(executable, {executable.parameters[0].name: x})
    np.testing.assert_array_equal(found, np.broadcast_to(x, (4099, 3)))


def test_which_are() -> None:
    for shape, is_one in {(4099, 9): False, (4099, 8): True, (99, 8): False, (7, 4099): False}.items():
        text = lowered(np.zeros((shape[0], 1), np.float32), shape).as_text("schedule")
        assert (". repetition" in text) == is_one


def test_what_is_read_at_once_is_no_nest() -> None:
    x, y = np.ones((4099, 1), np.float32), np.ones((4099, 3), np.float32)
    text = mind_mlir.jit(lambda x, y: mnp.broadcast_to(x, y.shape) * y).lower(x, y).as_text("schedule")
    assert ". repetition" not in text
