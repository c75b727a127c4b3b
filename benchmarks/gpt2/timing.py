"""What every framework's process does: draws the same weights, times its three functions, prints one line."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from examples.gpt2.model import Config
from examples.gpt2.reference import Array, Weights, random_weights

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH = 128
STEPS = 64


@dataclass(frozen=True, slots=True)
class Task:
    """What is run.

    Attributes:
        config: The model.
        weights: Its weights.
        tokens: si32[128].
        targets: si32[128].
        threads: How many to use.
    """

    config: Config
    weights: Weights
    tokens: Array
    targets: Array
    threads: int


def task() -> Task:
    """Return the task that the command line asks for."""
    threads, layers = map(int, sys.argv[1:3])
    config, rng = Config(layers=layers), np.random.default_rng(1)
    tokens, targets = rng.integers(0, config.vocabulary, (2, LENGTH)).astype(np.int32)
    return Task(config, random_weights(config), tokens, targets, threads)


def least(run: Callable[[], Any], times: int = 5) -> float:
    """Return the least number of seconds that ``run`` takes, once it has run."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def report(
    make: float, forward: Callable[[], Any], train: Callable[[], Any], decode: Callable[[], Any]
) -> None:
    """Time the functions and print what the parent reads."""
    seconds = {
        "compile s": make,
        "forward s": least(forward),
        "training step s": least(train),
        "token ms": 1e3 * least(decode, 3) / STEPS,
    }
    print(json.dumps(seconds))
