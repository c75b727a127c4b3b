"""Compares GPT-2, compiled, with its numpy reference in f64.

    python -m benchmarks.gpt2.check [layers]

Prints the largest error of the logits and of each weight's gradient, relative to the largest magnitude in
the array, and how many decoded tokens are equal. Takes minutes at the full size.
"""

from __future__ import annotations

import sys

import numpy as np

import mind_mlir
from benchmarks.gpt2.timing import LENGTH, STEPS
from examples.gpt2.model import Config, decode_program, forward_program, loss_program
from examples.gpt2.reference import Array, decoded, logits, random_weights
from examples.gpt2.reference_gradient import gradients

#: What errors may be.
BOUND = 1e-4


def error(found: Array, expected: Array) -> float:
    """Return the largest error relative to the largest magnitude."""
    return float(np.abs(found.reshape(expected.shape) - expected).max() / np.abs(expected).max())


def main(layers: int) -> int:
    """Compare; return the exit status."""
    config, rng = Config(layers=layers), np.random.default_rng(1)
    weights = random_weights(config)
    exact = {name: array.astype(np.float64) for name, array in weights.items()}
    tokens, targets = rng.integers(0, config.vocabulary, (2, LENGTH)).astype(np.int32)
    forward = mind_mlir.compile(forward_program(config, LENGTH))
    worst = error(np.asarray(forward(tokens, *weights.values())[0]), logits(config, exact, tokens))
    print(f"forward: {worst:.2e}")
    train = mind_mlir.compile(mind_mlir.differentiate(loss_program(config, LENGTH)).module)
    _, *found = train(tokens, targets, *weights.values())
    expected = gradients(config, exact, tokens, targets)
    slopes = [error(array, expected[name]) for name, array in zip(weights, found, strict=True)]
    print(f"{len(slopes)} gradients: {max(slopes):.2e}")
    decode = mind_mlir.compile(decode_program(config, STEPS))
    (chosen,) = decode(np.array(1, np.int32), np.arange(STEPS, dtype=np.int32), *weights.values())
    same = int((chosen == decoded(config, exact, 1, STEPS)).sum())
    print(f"decoded tokens that are equal: {same} of {STEPS}")
    return int(max(worst, *slopes) > BOUND or same < STEPS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else Config().layers))
