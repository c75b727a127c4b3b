"""The training loop of the digits as one compiled function, against the same steps called from Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import is_child, parser, run_child, show
from benchmarks.measure import ROUND_SECONDS, compare
from benchmarks.report import Report
from examples.digits import data
from examples.digits.forms import BATCH, LEARNING_RATE, MODEL, MOMENTUM, PARAMETERS
from examples.digits.loop import training_loop
from examples.digits.step import training_step
from examples.digits.train import SEED, initial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row
    from mind_mlir.ir.attributes import Array

_NOTES = [
    "times: best of alternating rounds; ratio: median of steps / loop, above 1 the loop is faster",
    "both gather minibatches from one order of the samples, the loop with Gather, Python with numpy",
]


def measure(epochs: Sequence[int], seconds: float = ROUND_SECONDS) -> Report:
    """Compare the loop with the steps for every number of epochs, in this process."""
    samples = data.load()
    step_module = training_step(mind_mlir.load(MODEL), PARAMETERS, rate=LEARNING_RATE, momentum=MOMENTUM)
    rows = [_row(samples, step_module, count, seconds) for count in epochs]
    return Report("training loop of the digits, one thread", rows, _NOTES)


def _row(samples: data.Samples, step_module: mind_mlir.Module, epochs: int, seconds: float) -> Row:
    random = np.random.default_rng(SEED)
    steps = epochs * (len(samples) // BATCH)
    usable = len(samples) // BATCH * BATCH
    order = np.concatenate([random.permutation(len(samples))[:usable] for _ in range(epochs)])
    loop = mind_mlir.compile(training_loop(step_module, len(samples), steps))
    step = mind_mlir.compile(step_module)
    weights = [p for p in step.parameters[2:] if p.name in PARAMETERS]
    state = {p.name: initial(p.type.extents, random) for p in weights}
    state |= {p.name: np.zeros(p.type.extents, np.float32) for p in step.parameters[2:] if p not in weights}

    def in_one() -> tuple[Array, ...]:
        return loop(images=samples.images, labels=samples.labels, order=order, **state)

    def by_steps() -> tuple[Array, ...]:
        now, total = dict(state), np.zeros((), np.float32)
        for start in range(0, len(order), BATCH):
            batch = samples[order[start : start + BATCH]]
            loss, *moved = step(image=batch.images, label=batch.labels, **now)
            now = dict(zip(now, moved, strict=True))
            total = np.asarray(total + loss)
        return total, *now.values()

    for ours, theirs in zip(in_one(), by_steps(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    result = compare(in_one, by_steps, seconds=seconds)
    return {
        "steps": steps,
        "loop us a step": result.ours / steps * 1e6,
        "Python us a step": result.theirs / steps * 1e6,
        "ratio": result.ratio,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("training_loop", __doc__)
    options_parser.add_argument("--epochs", type=int, nargs="+", default=[1, 10], metavar="N")
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    if not is_child():
        return run_child("training_loop", arguments)
    return show(measure(options.epochs, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
