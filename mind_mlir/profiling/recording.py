"""What the stamps of compiled code have recorded, as spans of time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mind_mlir.lowering.profiling.stamps import HEADER_WORDS, RECORD_WORDS
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mind_mlir.ir.attributes import Array


class Interval(NamedTuple):
    """The time between the two records of a stamp.

    Attributes:
        stamp: Its number.
        thread: Which thread it is of: 0 is the one that calls.
        start: Nanoseconds since the first call.
        end: The same.
        depth: In how many other spans of its thread it is.
    """

    stamp: int
    thread: int
    start: float
    end: float
    depth: int

    @property
    def nanoseconds(self) -> float:
        """Return how long it is."""
        return self.end - self.start


@dataclass(slots=True)
class Recording:
    """Memory that stamps append to.

    Attributes:
        words: The memory.
        most: How many records fit.
    """

    words: Array
    most: int

    @classmethod
    def of(cls, most: int) -> Recording:
        """Return memory for so many records."""
        words = np.zeros(HEADER_WORDS + RECORD_WORDS * most, np.int64)
        return cls(words, most)

    @property
    def address(self) -> int:
        """Return where the memory is."""
        return int(self.words.ctypes.data)

    def clear(self) -> None:
        """Forget all records, and take new ones."""
        self.words[:HEADER_WORDS] = 0, self.most

    def close(self) -> None:
        """Take no more records."""
        self.words[1] = 0

    def run(self, call: Callable[[], object], calls: int) -> tuple[list[Interval], list[float], bool]:
        """Call something so many times and return the spans of all calls.

        Returns:
            The spans, in the order in which they ended; the nanoseconds of each call as Python sees it; and
            whether all records did fit.
        """
        self.clear()
        taken: list[float] = []
        begins: list[tuple[int, int]] = []
        for _ in range(calls):
            first, before = int(self.words[0]), time.perf_counter_ns()
            call()
            taken.append(float(time.perf_counter_ns() - before))
            begins.append((first, before))
        self.close()
        count = int(self.words[0])
        kept = min(count, self.most)
        records = self.words[HEADER_WORDS:][: RECORD_WORDS * kept].reshape(-1, RECORD_WORDS)
        return list(_spans(records, _tick(records, begins, taken))), taken, count <= self.most


def _tick(records: Array, begins: Sequence[tuple[int, int]], taken: Sequence[float]) -> float:
    """Return the nanoseconds of a tick of the clock that records have.

    They are counted from the quickest of the first calls to the quickest of the last ones, which were not
    interrupted before their first record.
    """
    seen = [number for number, (first, _) in enumerate(begins) if first < len(records)]
    third = -(-len(seen) // 3)
    if third < 1 or seen[0] == seen[-1]:
        return 1.0
    one = min(seen[:third], key=lambda number: taken[number])
    other = min(seen[-third:], key=lambda number: taken[number])
    ticks = int(records[begins[other][0], 1]) - int(records[begins[one][0], 1])
    return (begins[other][1] - begins[one][1]) / max(ticks, 1)


def _spans(records: Array, scale: float) -> Iterator[Interval]:
    """Yield the spans of records whose clock ticks once in so many nanoseconds."""
    if not len(records):
        return
    first = int(records[:, 1].min())
    threads: dict[int, int] = {int(records[0, 2]): 0}
    open_: dict[int, list[tuple[int, float]]] = {}
    for word, clock, thread in records.tolist():
        number = threads.setdefault(thread, len(threads))
        stack = open_.setdefault(number, [])
        at = (clock - first) * scale
        if word % 2 == 0:
            stack.append((word // 2, at))
        elif stack and stack[-1][0] == word // 2:
            stamp, start = stack.pop()
            yield Interval(stamp, number, start, at, len(stack))
