"""Where the tools write: standard output, and files that appear whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from mind_mlir.interrupts import allowed, held

if TYPE_CHECKING:
    from collections.abc import Callable

#: The path that stands for standard output.
STDOUT = "-"


class OutputError(click.ClickException):
    """An output could not be written."""

    exit_code = 1

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write '{path}': {error.strerror or error}")


def write_output(text: str, path: str | None) -> None:
    """Write ``text`` to file ``path``, or to standard output where that is None or ``-``.

    Raises:
        OutputError: The file cannot be written; what was there before is still there.
    """
    if not text.endswith("\n"):
        text += "\n"
    if path is None or path == STDOUT:
        sys.stdout.write(text)
    else:
        write_file(Path(path), text.encode())


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` by way of a temporary file beside it, so that no reader sees half of it.

    Raises:
        OutputError: The file cannot be written; what was there before is still there.
    """
    replace_file(path, lambda file: file.write(data))


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a temporary file and give it the name ``path``; see `write_file`."""
    try:
        if _is_special(path):
            with path.open("wb") as file:
                write(file)
            return
        target = path.resolve()  # a symbolic link stays one
        temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
        with held():  # nothing comes between the temporary file and its removal
            try:
                with temporary.open("xb") as file, allowed():
                    write(file)
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except ValueError as error:  # a NUL character in the path
        raise OutputError(path, OSError(errno.EINVAL, str(error))) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(path, error) from error


def _is_special(path: Path) -> bool:
    """Return whether ``path`` is a device, pipe or the like, which must be written to and not replaced."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)


def make_directory(path: Path) -> None:
    """Create directory ``path`` and its parents where they are missing.

    Raises:
        OutputError: It cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(path, error) from error


def use_color(stream: object) -> bool:
    """Return whether to colour what goes to ``stream``: only on a terminal, and never under ``NO_COLOR``."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return isinstance(stream, io.TextIOBase) and stream.isatty()


def silence_stdout() -> None:
    """Point standard output at nothing, after its reader has gone away.

    Without this the interpreter reports, at exit, that it could not flush what is still buffered.
    """
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # replaced by something that is not a file
    with Path(os.devnull).open("wb") as devnull:
        os.dup2(devnull.fileno(), descriptor)
