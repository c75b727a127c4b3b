"""Offsets for buffers with known lifetimes, so that those that never live together may share memory.

No placement is smaller than what lives at the same time. Finding the smallest is NP-hard; two strategies come
close, one where the other does not: first in order of time, each buffer in the smallest hole, which takes
n log n, and where that is not the bound already, the largest buffers first, each as low as it fits.
"""

from __future__ import annotations

import bisect
import heapq
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The second strategy takes a time quadratic in the number of buffers: it is for so many of them.
_FEW = 512


class Lifetime(NamedTuple):
    """A buffer to be placed: its size in bytes, and its first and its last moment."""

    size: int
    start: int
    end: int


def place(buffers: Sequence[Lifetime]) -> tuple[int, list[int]]:
    """Return how much memory ``buffers`` take together, and the offset of each; empty ones lie anywhere."""
    size, offsets = _in_order(buffers)
    if size == most_alive(buffers) or len(buffers) > _FEW:
        return size, offsets
    other, others = _by_size(buffers)
    return (other, others) if other < size else (size, offsets)


def most_alive(buffers: Sequence[Lifetime]) -> int:
    """Return the largest sum of the sizes of buffers that live at one moment, which no placement is below."""
    changes = [(start, size) for size, start, _ in buffers] + [(end + 1, -size) for size, _, end in buffers]
    most = alive = 0
    for _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def _in_order(buffers: Sequence[Lifetime]) -> tuple[int, list[int]]:
    free = _FreeList()
    live: list[tuple[int, int, int]] = []  # (end, offset, size), a heap
    offsets = [0] * len(buffers)
    for number in sorted(range(len(buffers)), key=lambda number: buffers[number].start):
        size, start, end = buffers[number]
        while live and live[0][0] < start:
            _, offset, length = heapq.heappop(live)
            free.give(offset, length)
        if size:
            offsets[number] = free.take(size)
            heapq.heappush(live, (end, offsets[number], size))
    return free.size, offsets


def _by_size(buffers: Sequence[Lifetime]) -> tuple[int, list[int]]:
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int]] = []  # (offset, number) by offset
    total = 0
    for number in sorted(range(len(buffers)), key=lambda number: -buffers[number].size):
        size, start, end = buffers[number]
        if not size:
            break
        at = 0
        for offset, other in placed:
            length, first, last = buffers[other]
            if first <= end and start <= last:
                if offset - at >= size:
                    break
                at = max(at, offset + length)
        offsets[number] = at
        bisect.insort(placed, (at, number))
        total = max(total, at + size)
    return total, offsets


@dataclass(slots=True)
class _FreeList:
    """Free ranges of an arena that grows at its end; best fit, neighbours are merged."""

    size: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)  # (offset, size) by offset

    def take(self, size: int) -> int:
        """Return the offset of ``size`` bytes that are free now."""
        fitting = [(length, offset) for offset, length in self.ranges if length >= size]
        if fitting:
            length, offset = min(fitting)
            self.ranges.remove((offset, length))
            if length > size:
                bisect.insort(self.ranges, (offset + size, length - size))
            return offset
        offset = self.size
        if self.ranges and sum(self.ranges[-1]) == self.size:
            offset, _ = self.ranges.pop()
        self.size = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        """Take back ``size`` bytes at ``offset``."""
        at = bisect.bisect(self.ranges, (offset, size))
        if at < len(self.ranges) and self.ranges[at][0] == offset + size:
            size += self.ranges.pop(at)[1]
        if at and sum(self.ranges[at - 1]) == offset:
            at -= 1
            before, length = self.ranges.pop(at)
            offset, size = before, size + length
        self.ranges.insert(at, (offset, size))
