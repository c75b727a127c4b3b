"""Padded tensors, between guard pages: what is filled is margins where these are few."""

from __future__ import annotations

from typing import Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp


def padded(x: Any, widths: Any) -> mind_mlir.Executable:
    return mind_mlir.jit(lambda x: mnp.pad(x, widths, constant_values=1)).lower(x).compile()


WIDTHS = [
    ((1, 0), (0, 2)),
    ((0, 0), (3, 1)),
    ((2, 2), (0, 0)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float32])
def test_margins_around_what_is_copied(dtype: Any, widths: Any) -> None:
    for shape in ((131, 1031), (1, 66_000), (1031, 131), (37, 2)):
        x = np.random.default_rng(7).integers(0, 2, shape).astype(dtype)
        executable = padded(x, widths)
        (found,) = guarded.call_executable(executable, {executable.parameters[0].name: x})
        np.testing.assert_array_equal(found, np.pad(x, widths, constant_values=1))


def test_more_axes() -> None:
    widths = ((0, 1), (2, 0), (1, 1), (0, 0))
    x = np.random.default_rng(7).standard_normal((3, 20, 30, 16)).astype(np.float32)
    executable = padded(x, widths)
    (found,) = guarded.call_executable(executable, {executable.parameters[0].name: x})
    np.testing.assert_array_equal(found, np.pad(x, widths, constant_values=1))


def test_what_is_filled() -> None:
    for widths, whole in {((1, 0), (0, 0)): False, ((0, 0), (0, 1)): True}.items():
        x = np.zeros((4001, 8), np.float32)
        elements = np.pad(x, widths).size
        assert (f"fused {elements}\n" in padded(x, widths).as_text("schedule")) == whole
    assert "fused 72\n" in padded(np.zeros((8, 8), np.float32), ((1, 0), (0, 0))).as_text("schedule")
