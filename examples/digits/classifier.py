"""The classifier and its training step in Python: what classifier.ir and step.py say, in one page.

Images are f32 ``[batch, 64]``, labels i64 ``[batch]``, scores f32 ``[batch, 10]``; parameters are w1
``[64, hidden]``, b1 ``[hidden]``, w2 ``[hidden, 10]`` and b2 ``[10]``, f32 all.
"""

from __future__ import annotations

from typing import TypeAlias

import mind_mlir
import mind_mlir.numpy as mnp

Params: TypeAlias = dict[str, mnp.Array]


def logits(p: Params, image: mnp.Array) -> mnp.Array:
    """Return the scores of the ten digits."""
    return mnp.relu(image @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def cross_entropy(scores: mnp.Array, label: mnp.Array) -> mnp.Array:
    """Return the mean cross-entropy. The scores of this network stay within +-30, far from overflow."""
    right = (scores * mnp.eye(10, dtype="f32")[label]).sum(axis=1)
    return (mnp.log(mnp.exp(scores).sum(axis=1)) - right).mean()


def loss(p: Params, image: mnp.Array, label: mnp.Array) -> mnp.Array:
    """Return what training makes small."""
    return cross_entropy(logits(p, image), label)


@mind_mlir.jit
def evaluate(p: Params, image: mnp.Array, label: mnp.Array) -> tuple[mnp.Array, mnp.Array]:
    """Return the loss and the scores of a minibatch."""
    scores = logits(p, image)
    return cross_entropy(scores, label), scores


@mind_mlir.jit
def step(p: Params, velocity: Params, image: mnp.Array, label: mnp.Array) -> tuple[mnp.Array, Params, Params]:
    """Take one step of gradient descent with momentum: loss before it, parameters and velocities after it."""
    value, slope = mind_mlir.value_and_grad(loss)(p, image, label)
    faster = {name: 0.9 * velocity[name] - 0.1 * slope[name] for name in p}
    return value, {name: p[name] + faster[name] for name in p}, faster
