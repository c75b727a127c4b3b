"""Find how much memory this process may use: the machine's, or less by control groups and limits.

Where a control group has no more, the kernel ends the process; it refuses nothing before.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from mind_mlir.support.control_groups import SYSTEM, groups_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Where the memory of the machine is not known.
_ASSUMED_MEMORY = 1 << 33
_KB = 1 << 10
#: What files of the versions of control groups are called: limits, and what is used.
_LIMITS: Mapping[int, tuple[str, ...]] = {1: ("memory.limit_in_bytes",), 2: ("memory.max", "memory.high")}
_USED: Mapping[int, str] = {1: "memory.usage_in_bytes", 2: "memory.current"}
#: Pages of files that the kernel takes back before it ends anybody, by their word in ``memory.stat``.
_RECLAIMED: Mapping[int, str] = {1: "total_inactive_file", 2: "inactive_file"}
#: Limits of the process on its addresses and its data.
_RESOURCES = ("RLIMIT_AS", "RLIMIT_DATA")


def memory_limit(system: Path = SYSTEM) -> int:
    """Return how many bytes this process may use at most.

    Args:
        system: The root of the file system that says it.
    """
    limits = [limit for *_, limit in _limited_groups(system)]
    return min((_physical(), *limits, *_resource_limits()))


def memory_left(system: Path = SYSTEM) -> int | None:
    """Return how many bytes more may be used before the kernel ends a process; None where nothing says it.

    Which groups there are is found once in a process.
    """
    left = []
    for version, folder, limit in _limited_groups(system):
        used = _number(text_of(folder / _USED[version]))
        if used is not None:
            reclaimed = _field(text_of(folder / "memory.stat"), _RECLAIMED[version]) or 0
            left.append(limit - used + reclaimed)
    available = _field(text_of(system / "proc/meminfo"), "MemAvailable:")
    if available is not None:
        left.append(available * _KB)
    return max(0, min(left)) if left else None


@functools.cache
def _limited_groups(system: Path) -> tuple[tuple[int, Path, int], ...]:
    """Return the groups that limit memory, as versions, folders and numbers of bytes."""
    return tuple(
        (version, folder, limit)
        for version, folder in groups_of(system, "memory")
        for limit in _group_limits(version, folder)
    )


def _group_limits(version: int, folder: Path) -> Iterator[int]:
    found = [_number(text_of(folder / name)) for name in _LIMITS[version]]
    limits = [each for each in found if each]
    # Version 1 says a number where there is no limit: one that no machine has.
    if limits and min(limits) < _physical():
        yield min(limits)


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _ASSUMED_MEMORY


def _resource_limits() -> Iterator[int]:
    try:
        import resource  # noqa: PLC0415 -- Windows has none
    except ImportError:
        return
    for name in _RESOURCES:
        kind = getattr(resource, name, None)
        limit = resource.RLIM_INFINITY if kind is None else resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit


def _field(text: str, name: str) -> int | None:
    """Return the number behind a word at the beginning of a line."""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == name:
            return _number(rest.split()[0]) if rest.split() else None
    return None


def _number(text: str) -> int | None:
    """Return a number; None for ``max``, and where there is none."""
    word = text.strip()
    return int(word) if word.isascii() and word.isdecimal() else None
