"""Slices of padded tensors, read where they lie: equal to the interpreter bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, Module, TensorType
from mind_mlir.target import named_target, runs_here

#: Extents, low and high margins, window along each but the last dimension.
CASES = [
    ((2, 7, 13, 37), (0, 1, 1, 0), (0, 1, 1, 0), (1, 3, 3)),
    ((1, 8, 16, 128), (0, 1, 1, 0), (0, 1, 1, 0), (1, 3, 3)),
    ((3, 5, 1, 64), (0, 2, 1, 0), (0, 0, 1, 0), (1, 3, 3)),
    ((11, 16), (3, 0), (1, 0), (5,)),
    ((1, 2, 6, 5), (0, 0, 4, 0), (0, 0, 3, 0), (1, 1, 2)),  # whole windows lie in the margin
    ((5, 12, 3), (1, 0, 0), (0, 2, 0), (2, 2)),
]


def stencil(
    shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], window: tuple[int, ...], dtype: DType
) -> Module:
    """Sum of products of all slices of a padded tensor that a window slides over."""
    builder = Builder()
    x = builder.input("x", TensorType(dtype, shape))
    w = builder.input("w", TensorType(dtype, (*window, shape[-1])))
    none = (0,) * len(shape)
    padded = builder.emit("Pad", x, low=low, high=high, interior=none, pad_value=2)
    counts = [extent - size + 1 for extent, size in zip(padded.shape, window, strict=False)]
    total = None
    for place in itertools.product(*map(range, window)):
        ends = (*(first + count for first, count in zip(place, counts, strict=True)), shape[-1])
        part = builder.emit("Slice", padded, starts=(*place, 0), ends=ends, steps=(1,) * len(shape))
        after = (*(first + 1 for first in place), shape[-1])
        row = builder.emit("Slice", w, starts=(*place, 0), ends=after, steps=(1,) * (len(window) + 1))
        factor = builder.emit("Reshape", row, new_shape=shape[-1:])
        term = builder.emit("Mul", part, factor)
        total = term if total is None else builder.emit("Add", total, term)
    assert total is not None
    return builder.build([total])


@pytest.mark.parametrize("target", ["sse", "avx2", "avx512"])
@pytest.mark.parametrize(("shape", "low", "high", "window"), CASES, ids=str)
def test_stencils(
    shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], window: tuple[int, ...], target: str
) -> None:
    if not runs_here(named_target(target)):
        pytest.skip(f"this processor has no {target}")
    for dtype in (DType.F32, DType.SI64) if target == "avx2" else (DType.F32,):
        module = stencil(shape, low, high, window, dtype)
        draw = np.random.default_rng(1)
        shapes = {"x": shape, "w": (*window, shape[-1])}
        arguments = {
            name: (draw.integers(-99, 99, each) / 8).astype(dtype.numpy) for name, each in shapes.items()
        }
        compiled = mind_mlir.compile(module, target=target)
        np.testing.assert_array_equal(compiled(**arguments)[0], mind_mlir.interpret(module, arguments)[0])


def test_nothing_is_copied() -> None:
    module = stencil(*CASES[1], DType.F32)
    compiled = mind_mlir.compile(module, target="avx2")
    text = compiled.as_text("bufferized")
    assert "memref.copy" not in text
    assert "mind.scratch_bytes = 0 " in text
    assert "rows     4 at once" in compiled.as_text("schedule")


def test_a_padded_tensor_is_a_result_as_well() -> None:
    builder = Builder()
    x = builder.input("x", TensorType(DType.F32, (6, 16)))
    padded = builder.emit("Pad", x, low=(1, 0), high=(1, 0), interior=(0, 0), pad_value=2)
    part = builder.emit("Slice", padded, starts=(0, 0), ends=(6, 16), steps=(1, 1))
    module = builder.build([padded, builder.emit("Exp", part)])
    given = np.arange(96, dtype=np.float32).reshape(6, 16) / 96
    for found, expected in zip(
        mind_mlir.compile(module)(given), mind_mlir.interpret(module, {"x": given}), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
