"""States that go on: automata, filters, chains, and elimination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library


def _life(lib: Library, cells: Any) -> Any:
    """Return Conway's game of life on a torus after 20 steps."""
    around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]

    def step(_: Any, now: Any) -> Any:
        count = sum(lib.np.roll(lib.np.roll(now, i, axis=0), j, axis=1) for i, j in around)
        return ((count == 3) | ((now == 1) & (count == 2))).astype(np.uint8)

    return lib.fori_loop(0, 20, step, cells)


def _filter_bank(lib: Library, sounds: Any) -> Any:
    """Return channels of sound through a filter of two poles and two zeros."""

    def step(state: Any, sample: Any) -> Any:
        first, second = state
        heard = 0.2 * sample + first
        return (0.4 * sample + 0.9 * heard + second, 0.2 * sample - 0.3 * heard), heard

    silence = lib.np.zeros(sounds.shape[1], dtype=np.float32)
    return lib.scan(step, (silence, silence), sounds)[1]


def _particles(lib: Library, places: Any, noise: Any, seen: Any, shift: Any) -> Any:
    """Return means of particles that move, are weighed by what is seen, and drawn anew."""
    count = places.shape[0]

    def step(now: Any, given: Any) -> Any:
        moved = now * 0.95 + given[:-2] * 0.3
        sums = lib.np.cumsum(lib.np.exp(-0.5 * (moved - given[-2]) ** 2))
        drawn = lib.np.searchsorted(sums / sums[-1], (lib.np.arange(count) + given[-1]) / count)
        kept = moved[lib.np.minimum(drawn, count - 1)]
        return kept, kept.mean()

    given = lib.np.concatenate([noise, seen[:, None], shift[:, None]], axis=1)
    return lib.scan(step, places, given)[1]


def _chain(lib: Library, chances: Any) -> Any:
    """Return the chances of a Markov chain after 64 steps."""
    for _ in range(6):
        chances = chances @ chances
        chances = chances / chances.sum(axis=1, keepdims=True)
    return chances


def _eliminated(lib: Library, matrix: Any) -> Any:
    """Return both factors of a matrix in one (LU), without pivots."""
    count = matrix.shape[0]
    place = np.arange(count)

    def step(k: Any, a: Any) -> Any:
        row = a[k]
        factor = lib.np.where(place > k, a[:, k] / row[k], 0.0)
        below = a - factor[:, None] * lib.np.where(place >= k, row, 0.0)
        return below + factor[:, None] * (place == k)

    return lib.fori_loop(0, count - 1, step, matrix)


def _moves(random: Generator, size: int) -> tuple[Any, ...]:
    chances = random.random((size, size))
    return (chances / chances.sum(axis=1, keepdims=True),)


def _ising(lib: Library, spins: Any, chances: Any) -> Any:
    """Turn spins of a magnet (Metropolis), on black squares and then on white ones; return all sums."""
    place = np.arange(spins.shape[0])
    black = (place[:, None] + place) % 2 == 0

    def half(spins: Any, chance: Any, mask: Any) -> Any:
        around = sum(lib.np.roll(spins, step, axis) for step in (1, -1) for axis in (0, 1))
        turned = chance < lib.np.exp(-0.88 * (spins * around).astype(np.float32))
        return lib.np.where(mask & turned, -spins, spins)

    def sweep(spins: Any, chance: Any) -> Any:
        spins = half(half(spins, chance[0], black), chance[1], ~black)
        return spins, spins.sum(dtype=np.int32)

    return lib.scan(sweep, spins, chances)


PROGRAMS = [
    Unseen(
        name="life",
        inputs=lambda random, n: (random.integers(0, 2, (n, n)).astype(np.uint8),),
        small=13,
        usual=256,
        code=_life,
    ),
    Unseen(
        name="filter_bank",
        inputs=lambda random, n: (random.standard_normal((n, 64), np.float32),),
        small=17,
        usual=4000,
        code=_filter_bank,
    ),
    Unseen(
        name="particle_filter",
        inputs=lambda random, n: (
            random.standard_normal(n),
            random.standard_normal((20, n)),
            random.standard_normal(20),
            random.random(20),
        ),
        small=37,
        usual=4096,
        code=_particles,
        bound=1e-6,
    ),
    Unseen(name="markov_chain", inputs=_moves, small=13, usual=200, code=_chain, bound=1e-10),
    Unseen(
        name="elimination",
        inputs=lambda random, n: (random.random((n, n)) + n * np.eye(n),),
        small=11,
        usual=200,
        code=_eliminated,
        bound=1e-10,
    ),
    Unseen(
        name="ising",
        inputs=lambda random, n: (
            random.choice(np.array([-1, 1], np.int8), (n, n)),
            random.random((5, 2, n, n), np.float32),
        ),
        small=8,
        usual=256,
        code=_ising,
    ),
]
