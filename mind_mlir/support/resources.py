"""Find how many cores and how much memory this process may use: the machine's, or what limits leave it.

A container with two cores of time on a machine of 64 may run on all of them, so affinity does not tell:
64 threads would use up the time of a period at once, and stand still for the rest of it. Where a control
group has no more memory, the kernel ends the process; it refuses nothing before.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: The root of the file system at hand.
SYSTEM = Path("/")


def groups_of(system: Path, controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the groups that this process is in, and those around them, as versions and folders.

    Args:
        system: The root of a file system.
        controller: What the groups limit, such as ``cpu``. A folder need not be there: a container may see
            the outermost one alone.
    """
    mounted = system / "sys/fs/cgroup"
    # Where nothing says which groups those are, a container still shows its own as the outermost.
    named = text_of(system / "proc/self/cgroup") or f"0::/\n1:{controller}:/"
    for line in named.splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", None, "")
        if controllers == "":
            for folder in _around(mounted, path):
                yield 2, folder
        elif controllers is not None and controller in controllers.split(","):
            for name in dict.fromkeys((controllers, controller)):
                for folder in _around(mounted / name, path):
                    yield 1, folder


def text_of(path: Path) -> str:
    """Return what a file holds; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _around(mounted: Path, path: str) -> Iterator[Path]:
    group = PurePosixPath(path.lstrip("/"))
    for each in (group, *group.parents):
        yield mounted / each


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
