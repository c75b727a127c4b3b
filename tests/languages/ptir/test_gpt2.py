"""GPT-2, written in PTIR, against numpy: forward, loss, gradients, and the decode loop with its cache."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import mind_mlir
from examples.gpt2.model import Config, decode_program, forward_program, loss_program
from examples.gpt2.reference import Array, Weights, decoded, logits, loss, random_weights
from examples.gpt2.reference_gradient import gradients

CONFIG = Config(layers=2, width=32, heads=4, vocabulary=101, context=24)
LENGTH = 19


@pytest.fixture(scope="module")
def weights() -> Weights:
    """Larger than a model starts with, so that attention and GELU leave their linear parts."""
    found = random_weights(CONFIG, seed=3)
    return {name: array * np.float32(6 if array.ndim > 1 else 1) for name, array in found.items()}


@pytest.fixture(scope="module")
def exact(weights: Weights) -> Weights:
    return {name: array.astype(np.float64) for name, array in weights.items()}


def tokens_of(seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, CONFIG.vocabulary, LENGTH).astype(np.int32)


def close(found: Array, expected: Array) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * scale)


def test_forward(weights: Weights, exact: Weights) -> None:
    tokens = tokens_of(1)
    found = mind_mlir.compile(forward_program(CONFIG, LENGTH))(tokens, *weights.values())
    close(np.asarray(found).reshape(LENGTH, -1), logits(CONFIG, exact, tokens))


def test_loss_and_gradients(weights: Weights, exact: Weights) -> None:
    tokens, targets = tokens_of(1), tokens_of(2)
    gradient = mind_mlir.differentiate(loss_program(CONFIG, LENGTH))
    value, *found = mind_mlir.compile(gradient.module)(tokens, targets, *weights.values())
    assert float(value) == pytest.approx(loss(CONFIG, exact, tokens, targets), rel=1e-6)
    expected = gradients(CONFIG, exact, tokens, targets)
    assert len(found) == len(expected)
    for name, array in zip(weights, found, strict=True):
        close(array, expected[name])


def test_the_reference_gradient_is_that_of_the_loss(exact: Weights) -> None:
    tokens, targets = tokens_of(1), tokens_of(2)
    found, rng, step = gradients(CONFIG, exact, tokens, targets), np.random.default_rng(5), 1e-6
    for name in exact:
        direction = rng.standard_normal(exact[name].shape)
        ends = [
            loss(CONFIG, {**exact, name: exact[name] + signed * direction}, tokens, targets)
            for signed in (step, -step)
        ]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert np.sum(found[name] * direction) == pytest.approx(slope, rel=1e-5, abs=1e-8), name


def test_decoding(weights: Weights, exact: Weights) -> None:
    positions = np.arange(LENGTH, dtype=np.int32)
    decode = mind_mlir.compile(decode_program(CONFIG, LENGTH))
    (found,) = decode(np.array(7, np.int32), positions, *weights.values())
    np.testing.assert_array_equal(found, decoded(CONFIG, exact, 7, LENGTH))
    copied = re.findall(r"memref\.copy .* to memref<([0-9x]+)xf32", decode.as_text("bufferized"))
    sizes = {math.prod(map(int, shape.split("x"))) for shape in copied}
    assert max(sizes) <= CONFIG.width * LENGTH, "the loop reads the weights where they are"
