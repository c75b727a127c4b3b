"""What the stamps of compiled code have recorded, as spans of time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mind_mlir.ir.attributes import Array

#: Words of a record: twice the number of its stamp, one more at its end; the clock; the thread.
RECORD_WORDS = 3
#: The words before the records: how many there are, and how many fit.
HEADER_WORDS = 2


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
        start = time.perf_counter_ns()
        taken = []
        for _ in range(calls):
            before = time.perf_counter_ns()
            call()
            taken.append(float(time.perf_counter_ns() - before))
        end = time.perf_counter_ns()
        self.close()
        count = int(self.words[0])
        kept = min(count, self.most)
        records = self.words[HEADER_WORDS:][: RECORD_WORDS * kept].reshape(-1, RECORD_WORDS)
        return list(_spans(records, end - start)), taken, count <= self.most


def _spans(records: Array, nanoseconds: int) -> Iterator[Interval]:
    """Yield the spans of records that were taken within so many nanoseconds."""
    if not len(records):
        return
    first, last = int(records[:, 1].min()), int(records[:, 1].max())
    scale = nanoseconds / max(last - first, 1)
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
