"""Reads the files of a bundle: each whole, once, and compared with its digest before anybody uses it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from mind_mlir.code.errors import CodeError
from mind_mlir.packaging.errors import damaged
from mind_mlir.packaging.manifest import MANIFEST, MOST_BYTES, Manifest, digest_of

if TYPE_CHECKING:
    from pathlib import Path

#: How often a bundle is read that somebody replaces meanwhile.
_ATTEMPTS = 5


def read_bundle(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Return what a bundle says of itself, and its files by what they are.

    A bundle that is replaced while it is read is read again: what is returned comes from one bundle.

    Raises:
        ArtefactError: E6501, it is not as it was written.
        OSError: The system does not let it be read.
        MemoryError: There is no memory for a file.
    """
    for attempt in range(_ATTEMPTS):
        before = _identity(path)
        try:
            return _read(path)
        except CodeError as error:
            if before == _identity(path) or attempt == _ATTEMPTS - 1:
                raise damaged(path, str(error)) from None
    raise AssertionError("the last attempt returns or raises")


def is_bundle(path: Path) -> bool:
    """Return whether a path is meant as a bundle: it is a directory with a manifest."""
    return path.is_dir() and (path / MANIFEST).exists()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    if not path.exists():
        raise CodeError("there is nothing of that name")
    if not path.is_dir():
        raise CodeError("a bundle is a directory")
    manifest = Manifest.from_bytes(_contents(path / MANIFEST, MOST_BYTES, exactly=False))
    files = {}
    for role, file in manifest.files.items():
        data = _contents(path / file.name, file.size, exactly=True)
        if digest_of(data) != file.digest:
            raise CodeError(f"{file.name} was changed after it was written")
        files[role] = data
    return manifest, files


def _contents(path: Path, size: int, *, exactly: bool) -> bytes:
    """Return the bytes of a file, which has ``size`` of them, or at most so many."""
    try:
        # What is no file, such as a pipe that nobody writes to, must not be waited for.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise CodeError(f"{path.name} is missing") from None
    except OSError as error:
        raise CodeError(f"{path.name} cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CodeError(f"{path.name} is no file")
        if status.st_size > size or (exactly and status.st_size != size):
            what = f"{size}" if exactly else f"at most {size}"
            raise CodeError(f"{path.name} has {status.st_size} bytes instead of {what}")
        data = file.read(size + 1)
    if len(data) != status.st_size:
        raise CodeError(f"{path.name} was changed while it was read")
    return data
