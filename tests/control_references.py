"""What the examples of control flow compute, as loops of numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = npt.NDArray[Any]
Results: TypeAlias = tuple[Any, ...]


def heat(start: Array, rate: Array) -> Results:
    u, count = start.copy(), 0
    while True:
        flow = np.zeros_like(u)
        flow[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        u, count = u + rate * flow, count + 1
        if np.sum((rate * flow) ** 2) <= 1e-12 or count >= 5000:
            return u, count


def newton_sqrt(a: Array) -> Results:
    scale = np.sqrt(np.sum(a * a))
    y, z, identity, count = a / scale, np.eye(len(a)), np.eye(len(a)), 0
    while np.sum((identity - z @ y) ** 2) > 1e-24 and count < 100:
        t = (3 * identity - z @ y) / 2
        y, z, count = y @ t, t @ z, count + 1
    return y * np.sqrt(scale), count


def power_iteration(a: Array, start: Array) -> Results:
    x, before, count = start, 0.0, 0
    while True:
        y = a @ x
        value, x, count = x @ y, y / np.sqrt(y @ y), count + 1
        if (value - before) ** 2 <= 1e-20 or count >= 10000:
            return value, x, count
        before = value


def conjugate_gradients(a: Array, b: Array) -> Results:
    x, r, p, rr, count = np.zeros_like(b), b, b, b @ b, 0
    while rr > 1e-8 and count < 100:
        ap = a @ p
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        p, rr, count = r + (r @ r) / rr * p, r @ r, count + 1
    return x, count


def training(data: Array, labels: Array, weights: Array, rate: Array) -> Results:
    w, v = weights, np.zeros_like(weights)
    for _ in range(5):
        for first in range(0, 64, 16):
            x, y = data[first : first + 16], labels[first : first + 16]
            v = 0.9 * v - rate * ((1 / (1 + np.exp(-x @ w)) - y) @ x / 16)
            w = w + v
    z = data @ w
    return w, np.mean(np.log(1 + np.exp(z)) - labels * z)


def branch(x: Array, threshold: Array) -> Results:
    square = x @ x
    return (x / square if square > threshold else x * np.exp(square),)


def nested_loops(x: Array, rounds: Array) -> Results:
    y, total = float(x), 0.0
    for i in range(int(rounds)):
        for _ in range(i + 1):
            y = y * 0.5 if y > 1 else 1.3 * y * y + 0.5
        total += y
    return (total,)


def irreducible(x: Array, turns: Array) -> Results:
    count, shrinks = 0, np.sum(x) > 0
    while True:
        if shrinks:
            x, count = x * 0.5, count + 1
        x, count, shrinks = 0.25 - x * x, count + 1, True
        if count >= turns:
            return x, count


def _heat_arguments() -> dict[str, Array]:
    start = np.random.default_rng(0).uniform(0, 1, (18, 18))
    return {"start": start, "rate": np.array(0.2)}


def _definite(size: int, shift: float) -> Array:
    half = np.random.default_rng(size).standard_normal((size, size))
    return np.asarray(half @ half.T / size + shift * np.eye(size))


def _training_arguments() -> dict[str, Array]:
    random = np.random.default_rng(3)
    data = random.standard_normal((64, 5))
    labels = (data @ random.standard_normal(5) > 0).astype(np.float64)
    return {"data": data, "labels": labels, "weights": random.standard_normal(5), "rate": np.array(0.3)}


#: By the name of the example: its numpy rule, arguments, and what its gradient is taken with respect to.
EXAMPLES: dict[str, tuple[Callable[..., Results], dict[str, Array], tuple[str, ...]]] = {
    "heat": (heat, _heat_arguments(), ("start", "rate")),
    "newton_sqrt": (newton_sqrt, {"a": _definite(6, 0.5)}, ("a",)),
    "power_iteration": (
        power_iteration,
        {"a": np.diag(np.arange(12.0)) + _definite(12, 0.1), "start": np.linspace(1, 2, 12)},
        ("a",),
    ),
    "conjugate_gradients": (
        conjugate_gradients,
        {"a": _definite(24, 6.0), "b": np.random.default_rng(5).standard_normal(24)},
        ("a", "b"),
    ),
    "training": (training, _training_arguments(), ("weights", "rate")),
    "branch": (branch, {"x": np.linspace(-0.4, 0.5, 9), "threshold": np.array(2.0)}, ("x",)),
    "nested_loops": (nested_loops, {"x": np.array(0.3), "rounds": np.array(7)}, ("x",)),
    "irreducible": (irreducible, {"x": np.array([0.3, -0.2, 0.7]), "turns": np.array(9)}, ("x",)),
}
