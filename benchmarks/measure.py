"""Timing that survives a noisy machine: alternating rounds, the best time and the median ratio."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Rounds per comparison; each round times both candidates, one right after the other.
ROUNDS = 15

#: How to read a table of comparisons.
READING = (
    "times are the best of alternating rounds; ratio is the median of numpy / ours, above 1 ours is faster"
)

#: Seconds that one candidate runs in one round.
ROUND_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two candidates, timed in the same rounds.

    Attributes:
        ours: Best seconds for one call of the compiled function.
        theirs: Best seconds for one call of the other candidate.
        ratio: Median over the rounds of theirs / ours; above 1, ours is faster.
    """

    ours: float
    theirs: float
    ratio: float


def seconds_per_call(
    call: Callable[[], object], calls: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the mean seconds of one of ``calls`` calls in a row."""
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls


def calls_for(
    call: Callable[[], object], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> int:
    """Return how many calls take about ``seconds``; warms the caches up on the way."""
    call()
    calls = 1
    while (taken := seconds_per_call(call, calls, clock) * calls) < seconds / 4:
        calls *= 2
    return max(1, round(calls * seconds / taken))


def compare(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int = ROUNDS,
    seconds: float = ROUND_SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Time two candidates in alternating rounds.

    The order changes from round to round, so that neither always runs after the other has filled the caches
    or lowered the clock.
    """
    candidates = (ours, theirs)
    counts = [calls_for(call, seconds, clock) for call in candidates]
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for index in (0, 1) if turn % 2 == 0 else (1, 0):
            times[index].append(seconds_per_call(candidates[index], counts[index], clock))
    ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
    return Comparison(min(times[0]), min(times[1]), ratio)
