"""Reads the files of a bundle: each whole, once, and compared with its digest before anybody uses it."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from mind_mlir.image.errors import CodeError
from mind_mlir.packaging.errors import damaged
from mind_mlir.packaging.manifest import MANIFEST, MOST_BYTES, Manifest, digest_of

if TYPE_CHECKING:
    from pathlib import Path

#: How often a bundle is read that somebody replaces meanwhile.
_ATTEMPTS = 50


def read_bundle(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Return what a bundle says of itself, and its files by what they are.

    A bundle that is replaced while it is read is read again: what is returned comes from one bundle.

    Raises:
        ArtefactError: E6501, it is not as it was written.
        MemoryError: There is no memory for a file.
    """
    for attempt in range(_ATTEMPTS):
        try:
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise damaged(path, "there is nothing of that name") from None
        except NotADirectoryError:
            raise damaged(path, "a bundle is a directory") from None
        except (OSError, ValueError) as error:  # such as a NUL character in the path
            raise damaged(path, getattr(error, "strerror", None) or str(error)) from None
        try:
            return _read(directory)
        except CodeError as error:
            if attempt == _ATTEMPTS - 1 or not _is_replaced(path, directory):
                raise damaged(path, str(error)) from None
        finally:
            os.close(directory)
    raise AssertionError("the last attempt returns or raises")


def _is_replaced(path: Path, directory: int) -> bool:
    """Return whether ``path`` is another directory now than that which is open."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(directory))
    except OSError:
        return True


def _read(directory: int) -> tuple[Manifest, dict[str, bytes]]:
    """Return what is in an open directory: its files are those of one bundle, whatever takes its name."""
    manifest = Manifest.from_bytes(_contents(directory, MANIFEST, MOST_BYTES, exactly=False))
    files = {}
    for role, file in manifest.files.items():
        data = _contents(directory, file.name, file.size, exactly=True)
        if digest_of(data) != file.digest:
            raise CodeError(f"{file.name} was changed after it was written")
        files[role] = data
    return manifest, files


def _contents(directory: int, name: str, size: int, *, exactly: bool) -> bytes:
    """Return the bytes of a file, which has ``size`` of them, or at most so many."""
    try:
        # What is no file, such as a pipe that nobody writes to, must not be waited for.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=directory)
    except FileNotFoundError:
        raise CodeError(f"{name} is missing") from None
    except OSError as error:
        raise CodeError(f"{name} cannot be read: {error.strerror}") from None
    with contextlib.ExitStack() as open_files:
        open_files.callback(os.close, descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CodeError(f"{name} is no file")
        if status.st_size > size or (exactly and status.st_size != size):
            what = f"{size}" if exactly else f"at most {size}"
            raise CodeError(f"{name} has {status.st_size} bytes instead of {what}")
        try:
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(size + 1)
        except OSError as error:
            raise CodeError(f"{name} cannot be read: {error.strerror}") from None
    if len(data) != status.st_size:
        raise CodeError(f"{name} was changed while it was read")
    return data
