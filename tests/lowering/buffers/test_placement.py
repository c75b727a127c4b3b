"""Where buffers with given lifetimes lie, and how little memory they take together."""

from __future__ import annotations

import numpy as np
import pytest

from mind_mlir.lowering.buffers.placement import Lifetime, most_alive, place


def check(buffers: list[Lifetime]) -> int:
    """Place ``buffers``; fail if two that live together overlap; return how much memory they take."""
    size, offsets = place(buffers)
    placed = [(buffer, offset) for buffer, offset in zip(buffers, offsets, strict=True) if buffer.size]
    assert all(0 <= offset <= size - buffer.size for buffer, offset in placed)
    for number, (one, at) in enumerate(placed):
        for other, there in placed[:number]:
            together = one.start <= other.end and other.start <= one.end
            assert not together or at + one.size <= there or there + other.size <= at
    assert size >= most_alive(buffers)
    return size


def test_nothing_takes_no_memory() -> None:
    assert place([]) == (0, [])
    assert check([Lifetime(0, 0, 3), Lifetime(0, 1, 1)]) == 0


def test_what_is_alive_is_counted_to_the_last_moment() -> None:
    assert most_alive([Lifetime(3, 0, 1), Lifetime(5, 1, 2), Lifetime(7, 2, 3)]) == 12


def test_large_buffers_are_placed_first_where_that_takes_less() -> None:
    # In order of time, the small one takes the bottom of the hole that the large one would have fitted in.
    assert check([Lifetime(1, 1, 1), Lifetime(2, 1, 3), Lifetime(4, 2, 2)]) == 6


@pytest.mark.parametrize("seed", range(40))
def test_random_buffers(seed: int) -> None:
    draw = np.random.default_rng(seed).integers
    starts = [int(start) for start in draw(0, 40, draw(1, 60))]
    buffers = [Lifetime(64 * int(draw(0, 30)), start, start + int(draw(0, 8))) for start in starts]
    assert check(buffers) <= 1.25 * most_alive(buffers)


def test_many_buffers_are_placed_in_a_time_that_is_not_quadratic() -> None:
    buffers = [Lifetime(64 * (1 + number % 7), number, number + number % 5) for number in range(20_000)]
    size, _ = place(buffers)
    assert most_alive(buffers) <= size <= 2 * most_alive(buffers)
