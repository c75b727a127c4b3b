"""What is computed of patches, element by element or along windows, reads the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, Module, TensorType
from mind_mlir.target import named_target, runs_here

#: Image, window, strides, dilation, margins before and behind.
CASES = [
    ((2, 7, 11, 37), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    ((1, 13, 9, 16), (2, 3), (2, 3), (1, 2), (0, 3), (2, 0)),
    ((1, 1, 5, 8), (1, 2), (1, 1), (1, 1), (0, 1), (0, 0)),
    ((3, 17, 5), (4,), (3,), (2,), (1,), (5,)),
]


def depthwise(shape: tuple[int, ...], lists: dict[str, Any]) -> Module:
    """A depthwise convolution as patches, weights and a sum, with a bias."""
    builder = Builder()
    x = builder.input("x", TensorType(DType.F32, shape))
    patches = builder.emit("ExtractPatches", x, pad_value=0.5, **lists)
    size, channels = int(np.prod(lists["window"])), shape[-1]
    rank = len(patches.shape)
    apart = builder.emit("Reshape", patches, new_shape=(*patches.shape[:-1], size, channels))
    w = builder.input("w", TensorType(DType.F32, (size, channels)))
    terms = builder.emit("Mul", apart, w)
    bias = builder.input("b", TensorType(DType.F32, (channels,)))
    total = builder.emit("Sum", terms, axes=(rank - 1,), keepdims=False)
    return builder.build([builder.emit("Relu", builder.emit("Add", total, bias))])


def named(case: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], dict[str, Any]]:
    shape, *lists = case
    return shape, dict(
        zip(("window", "strides", "dilation", "padding_low", "padding_high"), lists, strict=True)
    )


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_patches_are_read_where_they_lie(case: tuple[tuple[int, ...], ...], target: str) -> None:
    if not runs_here(named_target(target)):
        pytest.skip(f"this processor has no {target}")
    shape, lists = named(case)
    module = depthwise(shape, lists)
    draw = np.random.default_rng(1)
    arguments: dict[str, object] = {}
    for each in module.inputs:
        type_ = each.result_type
        assert isinstance(type_, TensorType)
        arguments[str(each.attributes["name"])] = (draw.integers(-9, 9, type_.extents) / 4).astype(np.float32)
    compiled = mind_mlir.compile(module, target=target)
    expected = mind_mlir.interpret(module, arguments)[0]
    np.testing.assert_array_equal(compiled(**arguments)[0], expected)  # all sums are exact


def test_neither_patches_nor_terms_are_written() -> None:
    shape, lists = named(CASES[0])
    text = mind_mlir.compile(depthwise(shape, lists), target="avx2").as_text("bufferized")
    assert "mind.scratch_bytes = 34688 " in text, "the padded image alone"
    assert "memref<2x7x11x3x3x37xf32>" not in text
