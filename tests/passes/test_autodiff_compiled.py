"""Gradient modules through the whole compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from differentiation import directions, float_inputs

import mind_mlir
from mind_mlir import Builder, DType, TensorType, differentiate, interpret
from mind_mlir.ir.attributes import Padding, PaddingMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Module


def tensor(*shape: int) -> TensorType:
    return TensorType(DType.F64, shape)


def perceptron() -> Module:
    """Return the mean square of relu(x @ w + c) @ u, for a batch of sequences."""
    b = Builder()
    x, w, c = b.input("x", tensor(3, 5, 7)), b.input("w", tensor(7, 11)), b.input("c", tensor(11))
    u = b.input("u", tensor(11, 2))
    hidden = b.emit("Relu", b.emit("Add", b.emit("MatMul", x, w), c))
    output = b.emit("MatMul", hidden, u)
    return b.build([b.emit("Mean", b.emit("Mul", output, output), axes=())])


def scores() -> Module:
    """Return sum(log(sum(exp(q @ k^T)))), a softmax's normaliser, per head."""
    b = Builder()
    q, k = b.input("q", tensor(2, 3, 5, 4)), b.input("k", tensor(3, 7, 4))
    products = b.emit("MatMul", q, b.emit("Transpose", k, permutation=(0, 2, 1)))
    sums = b.emit("Sum", b.emit("Exp", products), axes=(3,), keepdims=True)
    return b.build([b.emit("Sum", b.emit("Log", sums), axes=(1, 2, 3)), b.emit("Sub", products, sums)])


def convolution() -> Module:
    """Return two convolutions, with strides that leave a remainder and with padding."""
    b = Builder()
    x, w = b.input("x", tensor(2, 8, 7, 3)), b.input("w", tensor(3, 2, 3, 4))
    v = b.input("v", tensor(2, 2, 4, 2))
    padding = Padding(PaddingMode.CUSTOM, ((0, 3), (2, 0)))
    hidden = b.emit("Relu", b.emit("Conv2d", x, w, strides=(2, 3), padding=Padding(PaddingMode.SAME)))
    return b.build([b.emit("Conv2d", hidden, v, strides=(2, 1), padding=padding)])


def indexing() -> Module:
    """Return an embedding look-up with repeated indices, sliced backwards."""
    b = Builder()
    table, indices = b.input("table", tensor(6, 4)), b.constant([5, 0, 5, -1, 2], DType.SI64)
    rows = b.emit("Gather", table, indices)
    part = b.emit("Slice", rows, starts=(4, 0), ends=(0, 4), steps=(-2, 3))
    return b.build([b.emit("Mul", part, part), b.emit("Index", table, indices=(1, 2))])


@pytest.mark.parametrize("build", [perceptron, scores, convolution, indexing])
def test_compiled_gradients_agree_with_interpreted_ones(build: Callable[[], Module]) -> None:
    gradient = differentiate(build(), cotangents="given", extensions=True).module
    values = directions(gradient, float_inputs(gradient), np.random.default_rng(8))
    compiled = mind_mlir.compile(gradient)(**values)
    for actual, expected in zip(compiled, interpret(gradient, values), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


def test_shared_weights_are_summed_inside_one_product() -> None:
    module = differentiate(perceptron(), wrt=["w"]).module
    shapes = [op.result_type.shape for op in module.operations if isinstance(op.result_type, TensorType)]
    assert (3, 7, 11) not in shapes, "a batch of weight gradients would be built, then summed"
