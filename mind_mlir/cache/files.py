"""Files of a cache: only what nobody else can have written is read, and files appear whole or not at all.

Nothing here needs a lock, and so file systems of networks will do; nothing maps a file, which another process
may cut short.
"""

from __future__ import annotations

import functools
import mmap
import operator
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from mind_mlir.cache.envelope import HEADER_BYTES, content, content_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from pathlib import Path

#: How files of entries end, and those that are being written.
ENTRY, TEMPORARY = ".code", ".tmp"

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _flags(*names: str) -> int:
    """Return those of the flags that this system has."""
    return functools.reduce(operator.or_, (getattr(os, name, 0) for name in names))


# No link is followed, and nothing waits for whoever has the other end of a pipe.
_READ = _flags("O_RDONLY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
_CREATE = _flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_CLOEXEC", "O_NOFOLLOW", "O_BINARY")


def trouble(status: os.stat_result) -> str | None:
    """Return why a file or directory is not to be trusted, or None where nobody else can write to it."""
    if not hasattr(os, "geteuid"):
        return None  # of Windows, where caches lie in the profile of their user
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & _OTHERS_WRITE:
        return "others may write to it"
    return None


def directory_trouble(directory: Path) -> str | None:
    """Return why a directory holds no cache that is read, or None where it does or will.

    Raises:
        OSError: Nothing can be said about it.
    """
    try:
        status = directory.stat()
    except FileNotFoundError:
        return None
    return trouble(status) if stat.S_ISDIR(status.st_mode) else "it is no directory"


def file_trouble(path: Path) -> str | None:
    """Return why nothing is read from a file, or None where it is (OSError: nothing can be said about it)."""
    status = path.lstat()
    return trouble(status) if stat.S_ISREG(status.st_mode) else "it is no regular file"


def read_entry(path: Path, key: str) -> tuple[memoryview, os.stat_result] | None:
    """Return the content of the entry of ``key`` at ``path``, and what the file is; None where there is none.

    The content is aligned as `mind_mlir.target.abi` says, and in memory that belongs to it alone.

    Raises:
        OSError: It cannot be read.
        MemoryError: It does not fit into the memory.
    """
    with os.fdopen(os.open(path, _READ), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or trouble(status):
            return None
        start = file.read(HEADER_BYTES)
        size = content_bytes(start or b"", key)
        if size is None or status.st_size != HEADER_BYTES + size:
            return None
        # Pages of our own: they are aligned, and go back to the system with the last view of them.
        entry = memoryview(mmap.mmap(-1, HEADER_BYTES + size))
        entry[:HEADER_BYTES] = start
        if not _fill(file, entry[HEADER_BYTES:]):
            return None
    found = content(entry, key)
    return None if found is None else (found.toreadonly(), status)


def _fill(file: FileIO, room: memoryview) -> bool:
    """Read ``file`` until ``room`` is full; return whether it has that many bytes left."""
    at = 0
    while at < len(room):
        count = file.readinto(room[at:])
        if not count:
            return False
        at += count
    return True


def write_whole(directory: Path, name: str, parts: Iterable[bytes | memoryview]) -> os.stat_result:
    """Write a file under a name of its own, and rename it; return what it then is.

    Raises:
        OSError: It cannot be written; nothing is left of it.
    """
    temporary = directory / f".{name[:16]}-{os.getpid()}-{os.urandom(8).hex()}{TEMPORARY}"
    descriptor = os.open(temporary, _CREATE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
            file.flush()
            status = os.fstat(file.fileno())
        temporary.replace(directory / name)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return status
