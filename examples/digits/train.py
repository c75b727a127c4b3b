"""The training loop: everything that is computed here runs in two compiled functions."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from examples.digits import data
from examples.digits.forms import BATCH, FORMS, SHAPES, Classifier
from examples.digits.progress import progress
from mind_mlir.support.stages import suffix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from examples.digits.forms import State
    from mind_mlir.ir.attributes import Array

SEED = 7
WANTED_ACCURACY = 0.95


@dataclass(slots=True)
class Trainer:
    """The classifier in training.

    Attributes:
        classifier: Its forward pass and its training step.
        parameters: The weights and biases, by name.
        velocities: The momentum of each parameter, by its name.
        step_seconds: How long each step took.
    """

    classifier: Classifier
    parameters: State
    velocities: State
    step_seconds: list[float]

    @classmethod
    def start(cls, classifier: Classifier, random: np.random.Generator) -> Trainer:
        """Begin with random weights and zero biases."""
        parameters = {name: initial(shape, random) for name, shape in SHAPES.items()}
        velocities = {name: np.zeros_like(array) for name, array in parameters.items()}
        return cls(classifier, parameters, velocities, [])

    def step(self, batch: data.Samples) -> float:
        """Take one step, and return the loss before it."""
        start = time.perf_counter()
        loss, self.parameters, self.velocities = self.classifier.step(
            self.parameters, self.velocities, batch.images, batch.labels
        )
        self.step_seconds.append(time.perf_counter() - start)
        return float(loss)

    def epoch(self, samples: data.Samples) -> float:
        """Take one step for each minibatch and return the mean loss."""
        return float(np.mean([self.step(batch) for batch in samples.minibatches(BATCH)]))

    def accuracy(self, samples: data.Samples) -> float:
        """Return the share of samples, in full minibatches, whose largest logit is the right one."""
        hits = []
        for batch in samples.minibatches(BATCH):
            _, logits = self.classifier.evaluate(self.parameters, batch.images, batch.labels)
            hits.append(np.argmax(logits, axis=1) == batch.labels)
        return float(np.mean(hits))


def initial(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return what a parameter of ``shape`` begins with: random weights, f32, and zero biases."""
    if len(shape) == 1:
        return np.zeros(shape, np.float32)
    spread = np.float32(np.sqrt(2 / shape[0]))  # keeps the variance of what a Relu layer passes on
    return random.standard_normal(shape, dtype=np.float32) * spread


def dump_to(folder: Path) -> Callable[[str, Callable[[], str]], None]:
    """Return an observer that writes each stage's form to a numbered file in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0

    def observe(stage: str, text: Callable[[], str]) -> None:
        nonlocal count
        path = folder / f"{count:02d}-{stage}{suffix(stage)}"
        path.write_text(text().rstrip() + "\n", encoding="utf-8")
        count += 1

    return observe


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, report, and return 0 if the classifier is good enough, else 1."""
    parser = argparse.ArgumentParser(prog="python -m examples.digits", description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--form", choices=FORMS, default="core", help="how the classifier is written")
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="folder for the dumps and the weights"
    )
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    random = np.random.default_rng(SEED)
    training, held_out = data.split(data.load(), BATCH, random)
    observe = dump_to(options.output)
    classifier = FORMS[options.form](observe)
    try:
        observe("asm", lambda: classifier.compiled.as_text("asm"))
    except mind_mlir.UnsupportedError as error:  # no disassembler here: the demo goes on without
        print(error)
    trainer = Trainer.start(classifier, random)
    _print_compilation(classifier, options.output)

    with progress(options.epochs) as report:
        for epoch in range(1, options.epochs + 1):
            loss = trainer.epoch(training[random.permutation(len(training))])
            report(epoch, loss, trainer.accuracy(training))

    accuracy = trainer.accuracy(training)
    best, typical = min(trainer.step_seconds), float(np.median(trainer.step_seconds))
    print(
        f"{len(trainer.step_seconds)} steps of {BATCH} images: median {typical * 1e3:.3f} ms, "
        f"best {best * 1e3:.3f} ms a step"
    )
    _save(trainer.parameters, options.output / "weights")
    print(f"training accuracy {accuracy:.2%}, held-out accuracy {trainer.accuracy(held_out):.2%}")
    if accuracy <= WANTED_ACCURACY:
        print(f"FAILED: the training accuracy is not above {WANTED_ACCURACY:.0%}")
        return 1
    return 0


def _save(parameters: State, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, array in parameters.items():
        np.save(folder / f"{name}.npy", array)
    print(f"the trained weights are in {folder}/")


def _print_compilation(classifier: Classifier, folder: Path) -> None:
    timings = classifier.compiled.timings
    stages = ", ".join(f"{stage} {seconds * 1e3:.1f}" for stage, seconds in timings.items())
    total, count = sum(timings.values()), len(classifier.module.operations)
    print(f"training step: {count} operations, compiled in {total * 1e3:.0f} ms ({stages})")
    print(f"every stage of it is in {folder}/")
