"""Builds the training step: loss, gradients and momentum update as one module."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import mind_mlir
from mind_mlir import Builder
from mind_mlir.ir.module import Return

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir import Module
    from mind_mlir.ir.value import Value


def training_step(model: Module, parameters: Sequence[str], *, rate: float, momentum: float) -> Module:
    """Return a module that computes one step of stochastic gradient descent with momentum.

        velocity' = momentum * velocity - rate * gradient
        parameter' = parameter + velocity'

    Args:
        model: A module whose first output is the loss.
        parameters: Names of the inputs to train.
        rate: The learning rate.
        momentum: How much of its velocity a parameter keeps.

    Returns:
        A module with the inputs of ``model`` and ``velocity_<name>`` for each parameter; its outputs are the
        loss, the new parameters and the new velocities.
    """
    gradient = mind_mlir.differentiate(first_output(model), wrt=parameters).module
    builder = Builder()
    values: dict[int, Value] = {}
    for operation in gradient.operations:
        values[operation.value_id] = builder.copy(operation, [values[v] for v in operation.operands])
    inputs = {str(op.attributes["name"]): values[op.value_id] for op in gradient.inputs}
    loss, *slopes = (values[output] for output in gradient.outputs)

    moved, velocities = [], []
    for name, slope in zip(parameters, slopes, strict=True):
        parameter = inputs[name]
        dtype = parameter.type.dtype
        velocity = builder.input(f"velocity_{name}", parameter.type)
        kept = builder.emit("Mul", velocity, builder.constant(momentum, dtype))
        push = builder.emit("Mul", slope, builder.constant(rate, dtype))
        velocities.append(builder.emit("Sub", kept, push))
        moved.append(builder.emit("Add", parameter, velocities[-1]))
    return mind_mlir.canonicalize(mind_mlir.verify(builder.build([loss, *moved, *velocities])))


def first_output(module: Module) -> Module:
    """Return ``module`` with its first output only."""
    return module.with_body(replace(module.body, terminator=Return(module.outputs[:1])))
