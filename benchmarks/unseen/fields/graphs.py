"""Graphs as lists of edges, and as matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library


def _edges(random: Generator, nodes: int, count: int) -> tuple[Any, Any]:
    found = random.integers(0, nodes, (2, count), dtype=np.int32)
    return found[0], found[1]


def _ranks(random: Generator, size: int) -> tuple[Any, ...]:
    source, target = _edges(random, size, 8 * size)
    leaving = np.maximum(np.bincount(source, minlength=size), 1).astype(np.float32)
    return source, target, leaving


def _pagerank(lib: Library, source: Any, target: Any, leaving: Any) -> Any:
    count = leaving.shape[0]

    def step(_: Any, rank: Any) -> Any:
        sent = (rank / leaving)[source]
        return 0.15 / count + 0.85 * lib.np.zeros_like(rank).at[target].add(sent)

    return lib.fori_loop(0, 10, step, lib.np.full(count, 1 / count, dtype=np.float32))


def _pagerank_in_loops(source: Any, target: Any, leaving: Any) -> Any:
    count = leaving.shape[0]
    rank = np.full(count, np.float32(1 / count))
    for _ in range(10):
        sent = rank / leaving
        rank = np.full(count, np.float32(0.15 / count))
        for edge in range(source.shape[0]):
            rank[target[edge]] += np.float32(0.85) * sent[source[edge]]
    return rank


def _triangles(lib: Library, adjacent: Any) -> Any:
    return lib.np.sum((adjacent @ adjacent) * adjacent) / 6


def _adjacent(random: Generator, size: int) -> tuple[Any, ...]:
    found = np.triu(random.random((size, size)) < 0.1, 1)
    return ((found | found.T).astype(np.float32),)


def _spread_labels(lib: Library, source: Any, target: Any, labels: Any) -> Any:
    """Let each node take the label that most of its neighbours have, five times."""

    def step(_: Any, labels: Any) -> Any:
        votes = lib.np.zeros((labels.shape[0], 16), dtype=np.int32).at[target, labels[source]].add(1)
        return lib.np.argmax(votes, axis=1).astype(np.int32)

    return lib.fori_loop(0, 5, step, labels)


def _spread_labels_in_loops(source: Any, target: Any, labels: Any) -> Any:
    for _ in range(5):
        votes = np.zeros((labels.shape[0], 16), np.int32)
        for edge in range(source.shape[0]):
            votes[target[edge], labels[source[edge]]] += 1
        found = np.empty_like(labels)
        for node in range(labels.shape[0]):
            found[node] = np.argmax(votes[node])
        labels = found
    return labels


def _convolution(lib: Library, source: Any, target: Any, norm: Any, features: Any, w: Any) -> Any:
    sums = lib.segment_sum(features[source] * norm[:, None], target, features.shape[0])
    return lib.np.maximum(sums @ w, 0)


def _convolution_inputs(random: Generator, size: int) -> tuple[Any, ...]:
    norm = random.random(8 * size, np.float32)
    return (
        *_edges(random, size, 8 * size),
        norm,
        random.standard_normal((size, 64), np.float32),
        random.standard_normal((64, 32), np.float32),
    )


def _shortest(lib: Library, length: Any) -> Any:
    """Return the lengths of the shortest ways of up to four edges."""
    for _ in range(2):
        length = (length[:, :, None] + length[None, :, :]).min(axis=1)
    return length


def _shortest_in_loops(length: Any) -> Any:
    count = length.shape[0]
    for _ in range(2):
        found = np.full_like(length, np.float32(np.inf))
        for i in range(count):
            for k in range(count):
                for j in range(count):
                    found[i, j] = min(found[i, j], length[i, k] + length[k, j])
        length = found
    return length


def _sparse_power(lib: Library, values: Any, rows: Any, columns: Any, x: Any) -> Any:
    """Multiply a vector by a sparse matrix again and again, which makes it the greatest eigenvector."""

    def step(_: Any, x: Any) -> Any:
        y = lib.segment_sum(values * x[columns], rows, x.shape[0])
        return y / lib.np.sqrt((y * y).sum())

    return lib.fori_loop(0, 5, step, x)


def _sparse_power_in_loops(values: Any, rows: Any, columns: Any, x: Any) -> Any:
    for _ in range(5):
        y = np.zeros_like(x)
        for place in range(values.shape[0]):
            y[rows[place]] += values[place] * x[columns[place]]
        x = y / np.sqrt((y * y).sum())
    return x


def _sparse(random: Generator, size: int) -> tuple[Any, ...]:
    rows, columns = _edges(random, size, 9 * size)
    return random.random(9 * size), np.sort(rows), columns, random.random(size)


PROGRAMS = [
    Unseen(
        name="pagerank",
        inputs=_ranks,
        small=23,
        usual=20_000,
        code=_pagerank,
        judge=_pagerank_in_loops,
        loops=_pagerank_in_loops,
    ),
    Unseen(name="triangles", inputs=_adjacent, small=31, usual=512, code=_triangles),
    Unseen(
        name="spread_labels",
        inputs=lambda random, n: (*_edges(random, n, 8 * n), random.integers(0, 16, n, dtype=np.int32)),
        small=23,
        usual=10_000,
        code=_spread_labels,
        judge=_spread_labels_in_loops,
        loops=_spread_labels_in_loops,
    ),
    Unseen(name="graph_convolution", inputs=_convolution_inputs, small=17, usual=4096, code=_convolution),
    Unseen(
        name="shortest_ways",
        inputs=lambda random, n: (random.random((n, n), np.float32),),
        small=13,
        usual=192,
        code=_shortest,
        loops=_shortest_in_loops,
    ),
    Unseen(
        name="sparse_power",
        inputs=_sparse,
        small=13,
        usual=20_000,
        code=_sparse_power,
        judge=_sparse_power_in_loops,
        loops=_sparse_power_in_loops,
        bound=1e-10,
    ),
]
