"""Sounds as features, and the best ways through tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library


def _log_mel(lib: Library, sound: Any, mel: Any) -> Any:
    """Return 80 features of frames of 25 ms, 10 ms apart."""
    width, step = 400, 160
    first = np.arange(0, sound.shape[0] - width + 1, step)
    frames = sound[first[:, None] + np.arange(width)] * np.hanning(width).astype(np.float32)
    spectrum = lib.rfft(lib.np.pad(frames, ((0, 0), (0, 112))))
    power = lib.np.abs(spectrum) ** 2
    return lib.np.log(power @ mel + 1e-6)


def _mel(random: Generator, size: int) -> tuple[Any, ...]:
    mel = np.maximum(0, 1 - abs(np.arange(257)[:, None] / 3.2 - np.arange(80)) / 2).astype(np.float32)
    return random.standard_normal(size, np.float32), mel


def _warp(lib: Library, one: Any, other: Any) -> Any:
    """Return the least cost to warp a sequence to another, by diagonals from the lower left."""
    rows, columns = one.shape[0], other.shape[0]
    far = 1e9
    cost = ((one[:, None, :] - other[None, :, :]) ** 2).sum(axis=-1)
    row = np.arange(rows)
    column = np.arange(rows + columns - 1)[:, None] - row
    inside = (column >= 0) & (column < columns)
    skewed = lib.np.where(inside, cost[row, np.clip(column, 0, columns - 1)], far)

    def diagonal(carried: Any, step: Any) -> Any:
        last, before = carried
        down = lib.np.concatenate([edge, last[:-1]])
        across = lib.np.concatenate([edge, before[:-1]])
        best = lib.np.minimum(lib.np.minimum(last, down), across)
        return (lib.np.minimum(best + step, far), last), None

    edge = lib.np.full(1, far, dtype=np.float32)
    nothing = lib.np.full(rows, far, dtype=np.float32)
    start = lib.np.concatenate([skewed[0, :1], nothing[1:]])
    (found, _), _ = lib.scan(diagonal, (start, nothing), skewed[1:])
    return found[-1]


def _warp_in_loops(one: Any, other: Any) -> Any:
    rows, columns = one.shape[0], other.shape[0]
    table = np.full((rows + 1, columns + 1), np.float32(1e9))
    table[0, 0] = 0
    for i in range(rows):
        for j in range(columns):
            cost = np.float32(0)
            for k in range(one.shape[1]):
                cost += (one[i, k] - other[j, k]) ** 2
            table[i + 1, j + 1] = cost + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return table[rows, columns]


def _viterbi(lib: Library, start: Any, moves: Any, seen: Any) -> Any:
    def ahead(score: Any, row: Any) -> Any:
        ways = score[:, None] + moves
        return ways.max(axis=0) + row, ways.argmax(axis=0).astype(np.int32)

    def back(state: Any, row: Any) -> Any:
        state = row[state]
        return state, state

    score, ways = lib.scan(ahead, start + seen[0], seen[1:])
    last = lib.np.argmax(score).astype(np.int32)
    _, path = lib.scan(back, last, ways[::-1])
    return score.max(), lib.np.concatenate([path[::-1], last[None]])


def _viterbi_in_loops(start: Any, moves: Any, seen: Any) -> Any:
    steps, states = seen.shape
    score, ways = start + seen[0], np.zeros((steps, states), np.int32)
    for step in range(1, steps):
        found = np.empty_like(score)
        for state in range(states):
            best = 0
            for other in range(states):
                if score[other] + moves[other, state] > score[best] + moves[best, state]:
                    best = other
            found[state], ways[step, state] = score[best] + moves[best, state] + seen[step, state], best
        score = found
    path = np.empty(steps, np.int32)
    path[-1] = np.argmax(score)
    for step in range(steps - 1, 0, -1):
        path[step - 1] = ways[step, path[step]]
    return score.max(), path


def _alignment(lib: Library, one: Any, other: Any) -> Any:
    """Return how well two sequences agree at best (Needleman and Wunsch), by diagonals."""
    rows, columns = one.shape[0], other.shape[0]
    row, far = np.arange(rows + 1), -1_000_000
    edge = lib.np.full(1, far, dtype=np.int32)

    def diagonal(number: Any, carried: Any) -> Any:
        last, before = carried
        column = number - row
        same = one[np.maximum(row - 1, 0)] == other[lib.np.clip(column - 1, 0, columns - 1)]
        match = lib.np.concatenate([edge, before[:-1]]) + lib.np.where(same, 2, -1)
        gap = lib.np.maximum(last, lib.np.concatenate([edge, last[:-1]])) - 2
        found = lib.np.where((row == 0) | (column == 0), -2 * number, lib.np.maximum(match, gap))
        return lib.np.where((column < 0) | (column > columns), far, found).astype(np.int32), last

    nothing = lib.np.full(rows + 1, far, dtype=np.int32)
    start = lib.np.where(row == 0, 0, nothing).astype(np.int32)
    found, _ = lib.fori_loop(1, rows + columns + 1, diagonal, (start, nothing))
    return found[-1]


def _alignment_in_loops(one: Any, other: Any) -> Any:
    table = np.zeros((one.shape[0] + 1, other.shape[0] + 1), np.int32)
    for i in range(one.shape[0] + 1):
        for j in range(other.shape[0] + 1):
            if i == 0 or j == 0:
                table[i, j] = -2 * (i + j)
            else:
                match = table[i - 1, j - 1] + (2 if one[i - 1] == other[j - 1] else -1)
                table[i, j] = max(match, max(table[i - 1, j], table[i, j - 1]) - 2)
    return table[-1, -1]


PROGRAMS = [
    Unseen(name="log_mel", inputs=_mel, small=1600, usual=48_000, code=_log_mel),
    Unseen(
        name="warp",
        inputs=lambda random, n: (
            random.random((n, 13), np.float32),
            random.random((n + n // 4, 13), np.float32),
        ),
        small=11,
        usual=400,
        code=_warp,
        judge=_warp_in_loops,
        loops=_warp_in_loops,
    ),
    Unseen(
        name="viterbi",
        inputs=lambda random, n: (
            random.random(64, np.float32),
            random.random((64, 64), np.float32),
            random.random((n, 64), np.float32),
        ),
        small=9,
        usual=500,
        code=_viterbi,
        judge=_viterbi_in_loops,
        loops=_viterbi_in_loops,
    ),
    Unseen(
        name="alignment",
        inputs=lambda random, n: (
            random.integers(0, 4, n, dtype=np.int8),
            random.integers(0, 4, n + 7, dtype=np.int8),
        ),
        small=9,
        usual=500,
        code=_alignment,
        judge=_alignment_in_loops,
        loops=_alignment_in_loops,
    ),
]
