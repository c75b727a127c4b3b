"""Damaged ONNX files are refused with a diagnostic, or are other models: nothing else happens."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
from onnx_models import model, node, perceptron

import mind_mlir
from mind_mlir.diagnostics import MindError

#: How many files are made of each model.
_FILES = 150


def convolutional() -> bytes:
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("MaxPool", "c", "p", kernel_shape=[2, 2]),
        node("Shape", "p", "s"),
        node("Slice", "s zero two", "t"),
        node("Concat", "t all", "u", axis=0),
        node("Reshape", "p u", "y"),
    ]
    weights = {
        "w": np.ones((2, 1, 3, 3), np.float32),
        "zero": np.array([0]),
        "two": np.array([2]),
        "all": np.array([-1]),
    }
    data: bytes = model(nodes, {"x": [1, 1, 4, 4]}, ("y",), weights).SerializeToString()
    return data


@pytest.mark.parametrize("which", ["products", "convolutions"])
def test_damage_is_a_diagnostic(which: str) -> None:
    data = perceptron().SerializeToString() if which == "products" else convolutional()
    bindings = {"rows": 2} if which == "products" else None
    random = np.random.default_rng(0)
    for _ in range(_FILES):
        damaged = bytearray(data)
        for place in random.integers(0, len(data), random.integers(1, 4)):
            damaged[place] = random.integers(0, 256)
        with contextlib.suppress(MindError, ValueError):
            read = mind_mlir.from_onnx(bytes(damaged), bindings=bindings)
            assert read.module.functions
