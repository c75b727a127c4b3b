"""Count the cores that this process may use: of the machine's, those that Linux control groups leave it.

A container with two cores of time on a machine of 64 may run on all of them, so affinity does not tell:
64 threads would use up the time of a period at once, and stand still for the rest of it.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

from mind_mlir.support.control_groups import SYSTEM, groups_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def usable_cores() -> int:
    """Return the number of cores that the calling thread may run on, or has the time of if that is less."""
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
        return min(cores, quota_cores() or cores)
    return os.cpu_count() or 1


@functools.cache
def quota_cores() -> int | None:
    """Return how many cores' worth of time this process gets, rounded up; None where nothing limits it.

    That is read once in a process.
    """
    return read_quota(SYSTEM)


def read_quota(system: Path) -> int | None:
    """Return what `quota_cores` does, for a file system whose root is ``system``."""
    limits = [-(-quota // period) for quota, period in _limits(system) if quota > 0 and period > 0]
    return max(1, min(limits)) if limits else None


def _limits(system: Path) -> Iterator[tuple[int, int]]:
    """Yield quotas and periods in microseconds, those of all groups that the process is in."""
    for version, folder in groups_of(system, "cpu"):
        if version == 1:
            files = (folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")
            yield from _pair([text_of(file).strip() for file in files])
        else:
            yield from _pair(text_of(folder / "cpu.max").split())


def _pair(words: list[str]) -> Iterator[tuple[int, int]]:
    """Yield a quota and its period; nothing where there is no quota, which is ``max`` or -1."""
    if len(words) == 2 and all(word.isascii() and word.isdecimal() for word in words):
        yield int(words[0]), int(words[1])
