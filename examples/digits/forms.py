"""The classifier in three forms, Core IR, the surface language and Python, which learn the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import mind_mlir
from examples.digits.step import training_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Executable, Module
    from mind_mlir.ir.attributes import Array
    from mind_mlir.runtime.staged import StagedFunction

    #: Told of each stage of a compilation, and how to print it.
    Observer: TypeAlias = Callable[[str, Callable[[], str]], None]
    State: TypeAlias = dict[str, Array]

FOLDER = Path(__file__).parent
MODEL = FOLDER / "classifier.ir"
#: The parameters, and their shapes.
SHAPES = {"w1": (64, 128), "b1": (128,), "w2": (128, 10), "b2": (10,)}
PARAMETERS = tuple(SHAPES)
BATCH = 128
LEARNING_RATE = 0.1
MOMENTUM = 0.9


@dataclass(frozen=True, slots=True)
class Classifier:
    """The classifier and its training step, compiled.

    Attributes:
        evaluate: Takes parameters, images and labels; returns the loss and the logits.
        step: Takes parameters, velocities, images and labels; returns the loss, and both after the step.
        module: The training step.
        compiled: The training step as code.
    """

    evaluate: Callable[[State, Array, Array], tuple[Array, Array]]
    step: Callable[[State, State, Array, Array], tuple[Array, State, State]]
    module: Module
    compiled: Executable


def core(observer: Observer | None = None) -> Classifier:
    """Return the classifier of classifier.ir, with the training step that step.py makes of it."""
    model = mind_mlir.load(MODEL)
    evaluate = mind_mlir.compile(model)
    module = training_step(model, PARAMETERS, rate=LEARNING_RATE, momentum=MOMENTUM)
    compiled = mind_mlir.compile(module, observer=observer)

    def evaluated(parameters: State, image: Array, label: Array) -> tuple[Array, Array]:
        loss, logits = evaluate(image=image, label=label, **parameters)
        return loss, logits

    def stepped(
        parameters: State, velocities: State, image: Array, label: Array
    ) -> tuple[Array, State, State]:
        pushed = {f"velocity_{name}": velocity for name, velocity in velocities.items()}
        loss, *state = compiled(image=image, label=label, **parameters, **pushed)
        count = len(PARAMETERS)
        moved, faster = state[:count], state[count:]
        return loss, dict(zip(PARAMETERS, moved, strict=True)), dict(zip(PARAMETERS, faster, strict=True))

    return Classifier(evaluated, stepped, module, compiled)


def mind(observer: Observer | None = None) -> Classifier:
    """Return the classifier of classifier.mind."""
    program = mind_mlir.load(MODEL.with_suffix(".mind"))
    return _staged(
        mind_mlir.compile(program, function="evaluate"), mind_mlir.compile(program, function="step"), observer
    )


def jit(observer: Observer | None = None) -> Classifier:
    """Return the classifier of classifier.py."""
    from examples.digits import classifier  # noqa: PLC0415 -- the other forms need nothing of it

    return _staged(classifier.evaluate, classifier.step, observer)


def _staged(evaluate: StagedFunction, step: StagedFunction, observer: Observer | None) -> Classifier:
    zeros = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    image, label = np.zeros((BATCH, 64), np.float32), np.zeros(BATCH, np.int64)
    module = step.lower(zeros, zeros, image, label).module
    return Classifier(evaluate, step, module, mind_mlir.compile(module, observer=observer))


#: What makes the classifier, by the form it is in.
FORMS: dict[str, Callable[[Observer | None], Classifier]] = {"core": core, "mind": mind, "jit": jit}
