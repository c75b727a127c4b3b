"""Evict from a full cache the entries used least recently, and what killed processes have left."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.cache.envelope import KEY_DIGITS
from mind_mlir.cache.files import ENTRY, TEMPORARY
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A file that has been in the making for longer is nobody's any more.
_ABANDONED_NS = 3600 * 10**9
#: Clocks differ by less; what is dated further in the future was dated by one that was wrong.
_AHEAD_NS = 3600 * 10**9
#: What is left where something had to go: else the next entry would have something go again.
_LEFT = 7 / 8
_ENTRY_NAME = re.compile(rf"[0-9a-f]{{{KEY_DIGITS}}}{re.escape(ENTRY)}")
_TEMPORARY_NAME = re.compile(rf"\.[\w.]{{1,16}}-\d+-[0-9a-f]{{16}}{re.escape(TEMPORARY)}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CacheFile:
    """A file of a cache.

    Attributes:
        path: Where it is.
        size: Its bytes.
        used_ns: When it was last used, in nanoseconds since 1970, give or take a minute.
        is_entry: Whether it is called as entries are; else it is one in the making.
    """

    path: Path
    size: int
    used_ns: int
    is_entry: bool

    @property
    def key(self) -> str:
        """Return the key that it is called by."""
        return self.path.name.removesuffix(ENTRY)


def files_of(directory: Path) -> Iterator[CacheFile]:
    """Yield the files of a cache in ``directory``, in no order; what others have put there is none of them.

    Raises:
        OSError: The directory cannot be read.
    """
    with os.scandir(directory) as found:
        for each in found:
            is_entry = _ENTRY_NAME.fullmatch(each.name) is not None
            if not is_entry and not _TEMPORARY_NAME.fullmatch(each.name):
                continue
            with suppress(OSError):  # somebody else has just removed it
                if each.is_dir(follow_symlinks=False):
                    continue
                status = each.stat(follow_symlinks=False)
                yield CacheFile(Path(each.path), status.st_size, status.st_mtime_ns, is_entry)


def remove(files: list[CacheFile]) -> list[CacheFile]:
    """Remove files; return those that could be."""
    removed = []
    for file in files:
        with suppress(OSError):
            file.path.unlink()
            removed.append(file)
    return removed


def remove_least_used(directory: Path, limit: int, now_ns: int) -> None:
    """Remove the entries used least recently where they have more than ``limit`` bytes together.

    Args:
        directory: The cache. What cannot be read or removed stays.
        limit: In bytes.
        now_ns: The time of the file system, which need not be this machine's.
    """
    try:
        files = list(files_of(directory))
    except OSError:
        return
    files = [_dated(file, now_ns) for file in files]
    entries = [file for file in files if file.is_entry]
    remove([file for file in files if not file.is_entry and now_ns - file.used_ns > _ABANDONED_NS])
    total = sum(file.size for file in entries)
    if total <= limit:
        return
    entries.sort(key=lambda file: (file.used_ns, file.path.name))
    for file in entries:
        if total <= limit * _LEFT:
            return
        total -= file.size
        remove([file])


def _dated(file: CacheFile, now_ns: int) -> CacheFile:
    """Return a file, dated now where it was dated in the future: so it ages from now on."""
    if file.used_ns <= now_ns + _AHEAD_NS:
        return file
    with suppress(OSError):
        os.utime(file.path, ns=(now_ns, now_ns), follow_symlinks=False)
    return replace(file, used_ns=now_ns)
