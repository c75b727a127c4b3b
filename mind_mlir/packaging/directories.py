"""Directories that appear whole or not at all, and take the place of the one that was there before."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from typing import TYPE_CHECKING

from mind_mlir.outputs.errors import OutputError
from mind_mlir.support.interrupts import allowed, held

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: What Linux calls giving two files each other's names at once, and the directory that paths start from.
_EXCHANGE, _HERE = 2, -100


def replace_directory(
    path: Path, files: Mapping[str, bytes], may_replace: Callable[[Path], bool], reason: str
) -> None:
    """Write a directory of files beside ``path`` and give it that name: no reader sees half of it.

    A symbolic link stays one; what it refers to is replaced.

    Args:
        path: Its name.
        files: What is in it.
        may_replace: Whether a directory that is there may be replaced; an empty one may.
        reason: Why not, where it may not.

    Raises:
        OutputError: It cannot be written; what was there before is still there.
    """
    try:
        if not os.fspath(path):
            raise OSError(errno.EINVAL, "the name is empty")
        target = path.resolve()
        if os.path.lexists(target) and not (target.is_dir() and (_is_empty(target) or may_replace(target))):
            raise OSError(errno.EEXIST, reason)
        _replace(target, files)
    except ValueError as error:  # a NUL character in the path
        raise OutputError(path, OSError(errno.EINVAL, str(error))) from error
    except OSError as error:
        raise OutputError(path, error) from error


def _is_empty(directory: Path) -> bool:
    return next(directory.iterdir(), None) is None


def _replace(target: Path, files: Mapping[str, bytes]) -> None:
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    with held():  # nothing comes between the temporary directory and its removal
        try:
            temporary.mkdir()
            with allowed():
                for name, data in files.items():
                    (temporary / name).write_bytes(data)
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            try:
                temporary.rename(target)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                _exchange(temporary, target)
        finally:
            # What is left here is what was there before, or what could not be finished.
            shutil.rmtree(temporary, ignore_errors=True)


def _exchange(new: Path, old: Path) -> None:
    """Give two directories each other's names: at once where the system can, or else one after the other."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        paths = [word for path in (new, old) for word in (_HERE, ctypes.c_char_p(os.fsencode(path)))]
        if call(*paths, _EXCHANGE) == 0:
            return
        if ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    aside = new.with_name(f"{new.name}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)
