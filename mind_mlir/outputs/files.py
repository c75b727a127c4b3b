"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mind_mlir.outputs.errors import OutputError, ReaderGoneError
from mind_mlir.support.interrupts import allowed, held

if TYPE_CHECKING:
    from collections.abc import Callable

#: Paths that name a descriptor of this process. What that refers to must be continued, not replaced.
_DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")

#: Why a file beside the output cannot be made, or cannot take its name: the directory is not ours to change,
#: or the output is a mount point. The output itself may still be written to.
_NOT_REPLACEABLE = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV))


def write_file(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path``; see `replace_file`."""
    replace_file(path, lambda file: file.write(data))


def replace_file(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path`` and give it that name: no reader sees half of it.

    - The new file has the permissions of the one that it replaces, and its owner where we may set that. A
      file that may not be written to is not replaced.
    - A symbolic link stays one; what it refers to is replaced.
    - Devices, pipes and the descriptors of this process (``/dev/stdout``) are written to as they are.
    - A file that can be written to but not replaced, such as a mount point, is written to once all of the
      output is there.

    Raises:
        OutputError: The file cannot be written; what was there before is still there.
        ReaderGoneError: The reader of a pipe went away.
    """
    try:
        if not os.fspath(path):
            raise OSError(errno.EINVAL, "the name is empty")
        _write(Path(path), write)
    except ValueError as error:  # a NUL character in the path
        raise OutputError(path, OSError(errno.EINVAL, str(error))) from error
    except BrokenPipeError as error:
        raise ReaderGoneError from error
    except OSError as error:
        raise OutputError(path, error) from error


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    descriptor = _DESCRIPTOR.fullmatch(os.fspath(path))
    if descriptor is not None:
        number = 1 if descriptor[1] else 2 if descriptor[2] else int(descriptor[3] or descriptor[4])
        sys.stdout.flush()
        with os.fdopen(os.dup(number), "wb") as file:
            write(file)
        return
    before = _status(path)
    if before is not None and not stat.S_ISREG(before.st_mode):
        with path.open("wb") as file:
            write(file)
        return
    target = path.resolve()  # a symbolic link stays one
    if before is None:
        _replace(target, None, write)
        return
    _existing(target).close()  # what may not be written to is not replaced either
    try:
        _replace(target, before, write)
    except OSError as error:
        if error.errno not in _NOT_REPLACEABLE:
            raise
        _overwrite(target, write)


def _status(path: Path) -> os.stat_result | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return status


def _replace(target: Path, before: os.stat_result | None, write: Callable[[BinaryIO], object]) -> None:
    # Only then may others read it while it is being written, when they may read what comes of it.
    permissions = 0o666 if before is None else 0o600
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with held():  # nothing comes between the temporary file and its removal
        try:
            with os.fdopen(os.open(temporary, flags, permissions), "wb") as file, allowed():
                write(file)
            if before is not None:
                _take_over(temporary, before)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _take_over(file: Path, before: os.stat_result) -> None:
    """Give ``file`` owner and permissions of the file it is going to replace."""
    own = file.stat()
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(PermissionError):  # not ours to give away: it stays ours
            os.chown(file, before.st_uid, before.st_gid)
    file.chmod(stat.S_IMODE(before.st_mode))


def _overwrite(target: Path, write: Callable[[BinaryIO], object]) -> None:
    whole = io.BytesIO()
    write(whole)
    with _existing(target) as file:
        file.write(whole.getbuffer())
        file.truncate()


def _existing(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY), "wb")


def make_directory(path: Path) -> None:
    """Create directory ``path`` and its parents where they are missing.

    Raises:
        OutputError: It cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except ValueError as error:  # a NUL character in the path
        raise OutputError(path, OSError(errno.EINVAL, str(error)), verb="create directory") from error
    except OSError as error:
        raise OutputError(path, error, verb="create directory") from error
