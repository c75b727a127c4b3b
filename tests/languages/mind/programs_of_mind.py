"""What the programs in examples/*.mind compute, in numpy, and arguments for them."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Tree: TypeAlias = dict[str, Any]


def drawn(random: np.random.Generator, *shape: int) -> Array:
    """Return small random numbers."""
    return random.standard_normal(shape) / 2


# mlp.mind


def mlp_params(random: np.random.Generator, inputs: int = 3, hidden: int = 8, outputs: int = 2) -> Tree:
    """Return ``Params``."""
    return {
        "w1": drawn(random, inputs, hidden),
        "b1": drawn(random, hidden),
        "w2": drawn(random, hidden, outputs),
        "b2": drawn(random, outputs),
    }


def mlp_predict(p: Tree, x: Array) -> Array:
    """Return what ``predict`` does."""
    return np.asarray(np.maximum(x @ p["w1"] + p["b1"], 0) @ p["w2"] + p["b2"])


def mlp_gradient(p: Tree, x: Array, y: Array) -> tuple[float, Tree]:
    """Return the loss and its gradient, by the chain rule."""
    hidden = np.maximum(x @ p["w1"] + p["b1"], 0)
    error = mlp_predict(p, x) - y
    out = 2 * error / error.size
    back = out @ p["w2"].T * (hidden > 0)
    slope = {"w1": x.T @ back, "b1": back.sum(0), "w2": hidden.T @ out, "b2": out.sum(0)}
    return float(np.mean(error**2)), slope


def mlp_step(s: Tree, x: Array, y: Array, rate: float) -> tuple[float, Tree]:
    """Return what ``step`` does."""
    value, slope = mlp_gradient(s["params"], x, y)
    velocity = {name: slope[name] + 0.9 * old for name, old in s["velocity"].items()}
    params = {name: old - rate * velocity[name] for name, old in s["params"].items()}
    return value, {"params": params, "velocity": velocity}


def mlp_train(s: Tree, x: Array, y: Array, rate: float, epochs: int) -> tuple[float, Tree]:
    """Return what ``train`` does."""
    mean = 0.0
    for _ in range(epochs):
        losses = []
        for rows, wanted in zip(x, y, strict=True):
            value, s = mlp_step(s, rows, wanted, rate)
            losses.append(value)
        mean = float(np.mean(losses))
    return mean, s


# heat.mind


def diffuse(u: Array, rate: float, steps: int) -> Array:
    """Return what ``diffuse`` does."""
    for _ in range(steps):
        u = u + rate * laplacian(u)
    return u


def laplacian(u: Array) -> Array:
    """Return the neighbours' sum less four times the point; 0 on the edge."""
    result = np.zeros_like(u)
    for row in range(1, u.shape[0] - 1):
        for column in range(1, u.shape[1] - 1):
            around = u[row - 1, column] + u[row + 1, column] + u[row, column - 1] + u[row, column + 1]
            result[row, column] = around - 4 * u[row, column]
    return result


def settle(u: Array, rate: float, tolerance: float) -> tuple[Array, int]:
    """Return what ``settle`` does."""
    steps, moved = 0, math.inf
    while moved > tolerance:
        change = rate * laplacian(u)
        u, steps, moved = u + change, steps + 1, float(np.sum(change**2))
    return u, steps


# power_iteration.mind


def symmetric(values: Array, random: np.random.Generator) -> Array:
    """Return a symmetric matrix with these eigenvalues."""
    basis, _ = np.linalg.qr(random.standard_normal((len(values), len(values))))
    return np.asarray(basis @ np.diag(values) @ basis.T)


# transformer.mind


def transformer_model(random: np.random.Generator) -> Tree:
    """Return a ``Model`` of 11 tokens, texts of 5, width 8, 2 heads of 4, and 12 inner features."""
    return {
        "tokens": drawn(random, 11, 8),
        "positions": drawn(random, 5, 8),
        "first": _block(random),
        "second": _block(random),
        "last": _norm(random),
    }


def _norm(random: np.random.Generator) -> Tree:
    return {"gain": 1 + drawn(random, 8) / 4, "shift": drawn(random, 8) / 4}


def _block(random: np.random.Generator) -> Tree:
    attention = {name: drawn(random, 2, 8, 4) for name in ("query", "key", "value")}
    return {
        "before_attention": _norm(random),
        "attention": {**attention, "output": drawn(random, 2, 4, 8)},
        "before_perceptron": _norm(random),
        "perceptron": {
            "up": drawn(random, 8, 12),
            "up_bias": drawn(random, 12),
            "down": drawn(random, 12, 8),
            "down_bias": drawn(random, 8),
        },
    }


def transformer_logits(p: Tree, text: Array) -> Array:
    """Return what ``logits`` does, one text and one head at a time."""
    result = []
    for tokens in text:
        x = p["tokens"][tokens] + p["positions"]
        for name in ("first", "second"):
            x = x + _attend(p[name]["attention"], _normalize(p[name]["before_attention"], x))
            x = x + _think(p[name]["perceptron"], _normalize(p[name]["before_perceptron"], x))
        result.append(_normalize(p["last"], x) @ p["tokens"].T)
    return np.stack(result)


def _normalize(p: Tree, x: Array) -> Array:
    spread = np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return np.asarray((x - x.mean(axis=1, keepdims=True)) / spread * p["gain"] + p["shift"])


def _attend(p: Tree, x: Array) -> Array:
    result = np.zeros_like(x)
    for query, key, value, output in zip(p["query"], p["key"], p["value"], p["output"], strict=True):
        for here in range(len(x)):
            scores = (x[: here + 1] @ key) @ (x[here] @ query) / math.sqrt(query.shape[1])
            weights = np.exp(scores) / np.exp(scores).sum()
            result[here] += weights @ (x[: here + 1] @ value) @ output
    return result


def _think(p: Tree, x: Array) -> Array:
    inner = x @ p["up"] + p["up_bias"]
    erf = np.vectorize(math.erf)(inner / math.sqrt(2))
    return np.asarray((inner * (1 + erf) / 2) @ p["down"] + p["down_bias"])


def transformer_loss(p: Tree, text: Array, following: Array) -> float:
    """Return what ``loss`` does."""
    scores = transformer_logits(p, text)
    likelihood = scores - np.log(np.exp(scores).sum(axis=2, keepdims=True))
    return float(-np.mean(np.take_along_axis(likelihood, following[:, :, None], axis=2)))
