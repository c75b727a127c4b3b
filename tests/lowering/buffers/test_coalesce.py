"""Copies that need not happen: parts are computed where they belong in the whole."""

from __future__ import annotations

from typing import Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.mlir.memory import reshaped_type


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float32])
def test_parts_are_joined_without_copies(dtype: Any, axis: int) -> None:
    rng = np.random.default_rng(7)
    shapes = [[3, 5, 67], [3, 5, 67], [3, 5, 67]]
    for shape, extent in zip(shapes, (31, 1, 130), strict=True):
        shape[axis] = extent if axis < 2 else extent + 36
    parts = [rng.integers(0, 2, shape).astype(dtype) for shape in shapes]
    executable = mind_mlir.jit(lambda *parts: mnp.concatenate(parts, axis)).lower(*parts).compile()
    assert "memref.copy" not in executable.as_text("bufferized")
    names = [each.name for each in executable.parameters]
    (found,) = guarded.call_executable(executable, dict(zip(names, parts, strict=True)))
    np.testing.assert_array_equal(found, np.concatenate(parts, axis))


def test_parts_are_computed_where_they_are_joined() -> None:
    x, y = (np.random.default_rng(7).standard_normal((n, 33)).astype(np.float32) for n in (7, 20))
    executable = mind_mlir.jit(lambda x, y: mnp.concatenate([x * y[:7], y + 1], 0)).lower(x, y).compile()
    text = executable.as_text("bufferized")
    assert "memref.copy" not in text
    assert "scratch_bytes = 0 " in text
    (found,) = executable(x, y)
    np.testing.assert_array_equal(found, np.concatenate([x * y[:7], y + 1], 0))


def test_memory_in_another_shape() -> None:
    with new_context(), ir.Location.unknown():
        for text, shape, wanted in (
            ("memref<4x6xf32>", [24], "memref<24xf32>"),
            (
                "memref<4x6xf32, strided<[6, 1], offset: 12>>",
                [24],
                "memref<24xf32, strided<[1], offset: 12>>",
            ),
            ("memref<4x6xf32, strided<[8, 1]>>", [24], None),
            ("memref<4x6xf32, strided<[8, 1]>>", [2, 2, 6], "memref<2x2x6xf32, strided<[16, 8, 1]>>"),
            ("memref<4x1x6xf32, strided<[8, 8, 1]>>", [4, 6], "memref<4x6xf32, strided<[8, 1]>>"),
            ("memref<2x3x4xf32, strided<[48, 4, 1]>>", [2, 12], "memref<2x12xf32, strided<[48, 1]>>"),
            ("memref<2x3x4xf32, strided<[48, 4, 1]>>", [6, 4], None),
            ("memref<6x2xf32, strided<[9, 3]>>", [12], None),
            ("memref<1x1xf32, strided<[9, 3], offset: 2>>", [1], "memref<1xf32, strided<[1], offset: 2>>"),
            ("memref<4xf32, strided<[1], offset: ?>>", [2, 2], None),
        ):
            found = reshaped_type(ir.Type.parse(text), shape)
            assert str(found) == str(wanted and ir.Type.parse(wanted)), text
