"""Machine learning beside the usual layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library


def _normal(random: Generator, *shape: int) -> Any:
    return random.standard_normal(shape, np.float32)


def _squares(one: Any, other: Any) -> Any:
    return (one * one).sum(axis=1)[:, None] - 2 * one @ other.T + (other * other).sum(axis=1)


def _k_means(lib: Library, points: Any, centers: Any) -> Any:
    count = centers.shape[0]
    nearest = lib.np.argmin(_squares(points, centers), axis=1)
    sums = lib.segment_sum(points, nearest, count)
    sizes = lib.segment_sum(lib.np.ones_like(points[:, 0]), nearest, count)
    return sums / lib.np.maximum(sizes, 1)[:, None]


def _neighbours(lib: Library, queries: Any, points: Any, values: Any) -> Any:
    """Return means over the 10 nearest points, weighted by distance."""
    distances, where = lib.top_k(-_squares(queries, points), 10)
    weights = 1 / (lib.np.sqrt(lib.np.maximum(-distances, 0)) + 1e-3)
    return (values[where] * weights).sum(axis=1) / weights.sum(axis=1)


def _gru_loss(lib: Library, weights: Any, inputs: Any, wanted: Any) -> Any:
    w, u, b = weights
    size = u.shape[0]

    def cell(h: Any, x: Any) -> Any:
        xs, hs = x @ w + b, h @ u
        gates = 1 / (1 + lib.np.exp(-(xs[:, : 2 * size] + hs[:, : 2 * size])))
        z, r = gates[:, :size], gates[:, size:]
        new = lib.np.tanh(xs[:, 2 * size :] + r * hs[:, 2 * size :])
        return z * h + (1 - z) * new, None

    h, _ = lib.scan(cell, lib.np.zeros((inputs.shape[1], size), dtype=np.float32), inputs)
    return ((h - wanted) ** 2).mean()


def _gru(lib: Library, w: Any, u: Any, b: Any, inputs: Any, wanted: Any) -> Any:
    assert lib.value_and_grad
    return lib.value_and_grad(lambda weights: _gru_loss(lib, weights, inputs, wanted))((w, u, b))


def _gru_by_hand(w: Any, u: Any, b: Any, inputs: Any, wanted: Any) -> Any:
    size = u.shape[0]
    h = np.zeros((inputs.shape[1], size), np.float32)
    tape = []
    for x in inputs:
        xs, hs = x @ w + b, h @ u
        gates = 1 / (1 + np.exp(-(xs[:, : 2 * size] + hs[:, : 2 * size])))
        z, r = gates[:, :size], gates[:, size:]
        new = np.tanh(xs[:, 2 * size :] + r * hs[:, 2 * size :])
        tape.append((x, h, hs, z, r, new))
        h = z * h + (1 - z) * new
    dw, du, db = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    dh = 2 * (h - wanted) / h.size
    for x, last, hs, z, r, new in reversed(tape):
        dn = dh * (1 - z) * (1 - new * new)
        dz, dr = dh * (last - new) * z * (1 - z), dn * hs[:, 2 * size :] * r * (1 - r)
        dx, dhs = np.concatenate([dz, dr, dn], axis=1), np.concatenate([dz, dr, dn * r], axis=1)
        dw, du, db = dw + x.T @ dx, du + last.T @ dhs, db + dx.sum(axis=0)
        dh = dh * z + dhs @ u.T
    return ((h - wanted) ** 2).mean(), (dw, du, db)


def _likelihood(lib: Library, x: Any, y: Any) -> Any:
    """Return the logarithm of the likelihood of points under a Gaussian process."""
    count = x.shape[0]
    kernel = lib.np.exp(-0.5 * ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=-1))
    factor = lib.cholesky(kernel + 0.1 * lib.np.eye(count))
    alpha = lib.solve_lower(factor, y[:, None])[:, 0]
    logs = lib.np.log((factor * lib.np.eye(count)).sum(axis=1)).sum()
    return -0.5 * (alpha * alpha).sum() - logs - 0.5 * count * np.log(2 * np.pi)


def _trees(lib: Library, rows: Any, feature: Any, threshold: Any, leaf: Any) -> Any:
    """Return the sums of what 64 trees of depth 6 say of rows."""
    tree, row = np.arange(feature.shape[0])[None, :], np.arange(rows.shape[0])[:, None]
    node = lib.np.zeros((rows.shape[0], feature.shape[0]), dtype=np.int32)
    for _ in range(6):
        above = rows[row, feature[tree, node]] > threshold[tree, node]
        node = 2 * node + 1 + above.astype(np.int32)
    return leaf[tree, node - 63].sum(axis=1)


def _forest(random: Generator, size: int) -> tuple[Any, ...]:
    return (
        _normal(random, size, 32),
        random.integers(0, 32, (64, 63), dtype=np.int32),
        _normal(random, 64, 63),
        _normal(random, 64, 64),
    )


def _trees_in_loops(rows: Any, feature: Any, threshold: Any, leaf: Any) -> Any:
    found = np.zeros(rows.shape[0], np.float32)
    for row in range(rows.shape[0]):
        for tree in range(feature.shape[0]):
            node = 0
            for _ in range(6):
                above = rows[row, feature[tree, node]] > threshold[tree, node]
                node = 2 * node + (2 if above else 1)
            found[row] += leaf[tree, node - 63]
    return found


def _poses(lib: Library, first: Any, second: Any, points: Any) -> Any:
    """Return points under pairs of transformations, a small matrix each."""
    return ((first @ second) @ points[:, :, None])[:, :, 0]


def _entropy(lib: Library, x: Any, w: Any, labels: Any) -> Any:
    def loss(w: Any) -> Any:
        scores = x @ w
        shifted = scores - scores.max(axis=1, keepdims=True)
        logs = shifted - lib.np.log(lib.np.exp(shifted).sum(axis=1, keepdims=True))
        return -lib.np.take_along_axis(logs, labels[:, None], axis=1).mean()

    assert lib.value_and_grad
    return lib.value_and_grad(loss)(w)


def _entropy_by_hand(x: Any, w: Any, labels: Any) -> Any:
    scores = x @ w
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    row = np.arange(len(labels))
    loss = -np.log(chances[row, labels]).mean()
    chances[row, labels] -= 1
    return loss, x.T @ chances / np.float32(len(labels))


def _regression(lib: Library, x: Any, y: Any) -> Any:
    return lib.np.linalg.solve(x.T @ x, x.T @ y)


PROGRAMS = [
    Unseen(
        name="k_means",
        inputs=lambda random, n: (_normal(random, n, 32), _normal(random, 64, 32)),
        small=101,
        usual=20_000,
        code=_k_means,
    ),
    Unseen(
        name="neighbours",
        inputs=lambda random, n: (_normal(random, n // 4, 32), _normal(random, n, 32), _normal(random, n)),
        small=52,
        usual=2048,
        code=_neighbours,
        bound=1e-3,
    ),
    Unseen(
        name="gru_gradient",
        inputs=lambda random, n: (
            _normal(random, 32, 3 * n) / 8,
            _normal(random, n, 3 * n) / 8,
            _normal(random, 3 * n),
            _normal(random, 40, 16, 32),
            _normal(random, 16, n),
        ),
        small=5,
        usual=64,
        code=_gru,
        judge=_gru_by_hand,
    ),
    Unseen(
        name="gaussian_process",
        inputs=lambda random, n: (random.random((n, 3)) * 4, random.random(n)),
        small=11,
        usual=300,
        code=_likelihood,
        bound=1e-9,
    ),
    Unseen(
        name="trees",
        inputs=_forest,
        small=7,
        usual=2000,
        code=_trees,
        loops=_trees_in_loops,
    ),
    Unseen(
        name="poses",
        inputs=lambda random, n: (_normal(random, n, 4, 4), _normal(random, n, 4, 4), _normal(random, n, 4)),
        small=7,
        usual=20_000,
        code=_poses,
    ),
    Unseen(
        name="cross_entropy",
        inputs=lambda random, n: (
            _normal(random, n, 256),
            _normal(random, 256, 1000) / 16,
            random.integers(0, 1000, n, dtype=np.int32),
        ),
        small=5,
        usual=256,
        code=_entropy,
        judge=_entropy_by_hand,
    ),
    Unseen(
        name="regression",
        inputs=lambda random, n: (random.standard_normal((n, 6)), random.standard_normal((n, 2))),
        small=13,
        usual=20_000,
        code=_regression,
        bound=1e-9,
    ),
]
