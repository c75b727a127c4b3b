"""Trains the classifier of the digits with its batch shared by the ranks of a mesh.

    mpiexec -n 2 python -m examples.distributed.digits --data 8

The weights that come of it depend on the number of ranks (--data), to the last bit, and not on the number of
processes that run them. Without mpiexec, one process runs all ranks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from examples.digits import data
from examples.digits.classifier import evaluate, loss
from examples.digits.forms import BATCH, LEARNING_RATE, MOMENTUM, SHAPES
from examples.digits.train import SEED, initial
from examples.distributed import training

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def step(params: Any, velocity: Any, image: Any, label: Any) -> tuple[Any, Any, Any]:
    """Take one step, as each rank does with its part of the batch; sums over ranks make all agree."""
    value, slopes = mind_mlir.value_and_grad(loss)(params, image, label)
    mean = {name: mind_mlir.all_reduce(slope, "data", kind="mean") for name, slope in slopes.items()}
    faster = {name: MOMENTUM * velocity[name] - LEARNING_RATE * mean[name] for name in params}
    moved = {name: params[name] + faster[name] for name in params}
    return mind_mlir.all_reduce(value, "data", kind="mean"), moved, faster


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says."""
    parser = training.parser("digits", __doc__, steps=390)
    options = parser.parse_args(arguments)
    if options.data < 1 or BATCH % options.data:
        parser.error(f"--data must divide the batch of {BATCH}")
    random = np.random.default_rng(SEED)
    samples, held_out = data.split(data.load(), BATCH, random)
    params = {name: initial(shape, random) for name, shape in SHAPES.items()}
    mesh = mind_mlir.Mesh({"data": options.data})
    mapped: Callable[..., Any] = mind_mlir.shard_map(
        step, mesh, in_specs=("", "", "data", "data"), out_specs=""
    )
    each = len(samples) // BATCH

    def advance(number: int, state: Any) -> tuple[Any, Any]:
        epoch, place = divmod(number, each)
        order = np.random.default_rng([SEED, epoch]).permutation(len(samples))
        batch = samples[order[place * BATCH : (place + 1) * BATCH]]
        value, *moved = mapped(*state, batch.images, batch.labels)
        return value, moved

    begin = [params, {name: np.zeros_like(array) for name, array in params.items()}]
    params, _ = training.train(options, begin, advance)
    classify: Callable[..., Any] = evaluate
    _, scores = classify(params, held_out.images, held_out.labels)
    training.say(f"held-out accuracy {(scores.argmax(axis=1) == held_out.labels).mean():.2%}")
    training.say(f"weights {training.digest(params)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
