"""Sums in a tree whose form depends on the number of leaves alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mind_mlir.collectives.tree import halves, joined, nodes_within


def test_a_node_is_the_sum_of_a_power_of_two_of_leaves_and_of_the_rest() -> None:
    assert halves((0, 8)) == ((0, 4), (4, 8))
    assert halves((0, 6)) == ((0, 4), (4, 6))
    assert halves((4, 7)) == ((4, 6), (6, 7))


@pytest.mark.parametrize("count", range(1, 14))
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_whoever_computes_its_nodes_gets_the_same_bits(count: int, kind: str) -> None:
    rng = np.random.default_rng(count)
    leaves = {(n, n + 1): (rng.standard_normal(31) * 10.0 ** rng.integers(-8, 8)) for n in range(count)}
    whole = joined(kind, leaves, (0, count))
    for parts in range(1, count + 1):
        ends = [count * part // parts for part in range(parts + 1)]
        known = {
            node: joined(kind, leaves, node)
            for first, last in itertools.pairwise(ends)
            for node in nodes_within((0, count), range(first, last))
        }
        out = np.empty(31)
        assert joined(kind, known, (0, count), out).tobytes() == whole.tobytes()
    assert all(np.isfinite(leaf).all() for leaf in leaves.values()), "leaves are not written to"


def test_of_two_zeros_the_negative_one_is_the_lesser_wherever_they_lie() -> None:
    for length in (1, 7, 33):
        zeros = {(0, 1): np.zeros(length, np.float32), (1, 2): np.full(length, -0.0, np.float32)}
        swapped = {(0, 1): zeros[1, 2], (1, 2): zeros[0, 1]}
        for known in (zeros, swapped):
            assert not np.signbit(joined("max", known, (0, 2))).any()
            assert np.signbit(joined("min", known, (0, 2))).all()
