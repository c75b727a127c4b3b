"""`Store`: a directory of entries, each a file that is called as its key.

Any number of processes may use it at once, on any file system that renames files as a whole. Whatever is
wrong with a file or the directory, there is no entry then; nothing here raises because of it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mind_mlir.cache.envelope import HEADER_BYTES, header
from mind_mlir.cache.files import ENTRY, directory_trouble, read_entry, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: An entry is marked as used when it was so long before last: a write for each use would cost more than it
#: tells.
_MARKED_EVERY_NS = 60 * 10**9
#: The directory is looked through when this process has added such a part of the limit to it.
_SHARE = 16
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = b"""Signature: 8a477f597d28d172789f06886806bc55
# Compiled code of mind-mlir, which it makes anew where it is missing. See https://bford.info/cachedir/
"""


class Store:
    """A directory of entries.

    Attributes:
        directory: Where it is; it is made when the first entry is written.
        limit: How many bytes the entries may have together; those used least recently go first.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        """Use ``directory``; nothing is read or written yet."""
        self.directory, self.limit = directory, limit
        # How many bytes this process has added since it last looked for what to remove.
        self._added: int | None = None

    def path_of(self, key: str) -> Path:
        """Return where the entry of a key is."""
        return self.directory / f"{key}{ENTRY}"

    def get(self, key: str) -> memoryview | None:
        """Return the content of the entry of ``key``, or None where there is none.

        It is read-only, and aligned as `mind_mlir.target.abi` says.
        """
        path = self.path_of(key)
        try:
            if directory_trouble(self.directory):
                return None
            found = read_entry(path, key)
        except (OSError, MemoryError):
            return None
        if found is None:
            return None
        content, status = found
        self._mark(path, status)
        return content

    def put(self, key: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Keep a content, in parts that stand one behind the other; return whether that went well.

        An entry of the same key is replaced.
        """
        size = HEADER_BYTES + sum(memoryview(part).nbytes for part in parts)
        if size > self.limit:
            return False
        pieces = [header(key, parts), *parts]
        try:
            self._make_directory()
            if directory_trouble(self.directory):
                return False
            status = write_whole(self.directory, self.path_of(key).name, pieces)
        except (OSError, MemoryError):
            return False
        if self._added is None or self._added + size > self.limit // _SHARE:
            from mind_mlir.cache.removal import remove_least_used  # noqa: PLC0415 -- who reads removes nothing

            remove_least_used(self.directory, self.limit, status.st_mtime_ns)
            self._added = 0
        self._added += size
        return True

    def _make_directory(self) -> None:
        if self.directory.is_dir():
            return
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self.directory.mkdir(mode=0o700)
            # Programs that make backups know it by this file.
            write_whole(self.directory, _TAG, [_TAG_TEXT])

    def _mark(self, path: Path, status: os.stat_result) -> None:
        """Mark an entry as used now."""
        if abs(time.time_ns() - status.st_mtime_ns) > _MARKED_EVERY_NS:
            with suppress(OSError):
                os.utime(path)
