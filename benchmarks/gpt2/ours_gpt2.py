"""GPT-2 by this compiler, from the PTIR programs of examples/gpt2."""

from __future__ import annotations

import time

import numpy as np

import mind_mlir
from benchmarks.gpt2.timing import LENGTH, STEPS, report, task
from examples.gpt2.model import decode_program, forward_program, loss_program


def main() -> None:
    """Compile the three programs and time them."""
    given = task()
    weights = list(given.weights.values())
    start = time.perf_counter()
    forward = mind_mlir.compile(forward_program(given.config, LENGTH))
    train = mind_mlir.compile(mind_mlir.differentiate(loss_program(given.config, LENGTH)).module)
    decode = mind_mlir.compile(decode_program(given.config, STEPS))
    made = time.perf_counter() - start
    positions = np.arange(STEPS, dtype=np.int32)
    report(
        made,
        lambda: forward(given.tokens, *weights),
        lambda: train(given.tokens, given.targets, *weights),
        lambda: decode(np.array(1, np.int32), positions, *weights),
    )


main()
