"""The standard streams of the process: they may be closed, full, or made for another encoding than ours."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, TextIO, cast

from mind_mlir.outputs.errors import STANDARD_OUTPUT, OutputError, ReaderGoneError

#: Name, how to open the stand-in of a stream that is closed, and the stream's mode. The stand-ins of standard
#: input and output are open the wrong way round: to use them is an error, as with the GNU tools.
_STREAMS = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def prepare_streams() -> None:
    """Make the standard streams of the process safe to use.

    - A stream that was closed gets a stand-in. Its descriptor is occupied too: else the next file to be
      opened would get that number, and with it what libraries write to the stream.
    - Writing to standard output raises `OutputError` or `ReaderGoneError` once, and nothing at exit.
    - Text on standard output is UTF-8 in every locale, as it is in files: readers of IR take nothing else.
    - Writing to standard error never fails: there would be nowhere left to say so.
    """
    for descriptor, (name, flags, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            stand_in = open(_occupy(descriptor, flags), mode, encoding="utf-8", closefd=False)  # noqa: SIM115 -- a descriptor that lives as long as the process
            setattr(sys, name, stand_in)
            setattr(sys, f"__{name}__", stand_in)
    sys.stdout = _checked(sys.stdout, sys.__stdout__, "utf-8", _refuse)
    sys.stderr = _checked(sys.stderr, sys.__stderr__, sys.stderr.encoding, lambda _: None)


def _occupy(descriptor: int, flags: int) -> int:
    opened = os.open(os.devnull, flags)
    try:
        os.fstat(descriptor)
    except OSError:  # it is free
        os.dup2(opened, descriptor)
        os.close(opened)
        return descriptor
    return opened


def _checked(stream: TextIO, original: object, encoding: str, fail: Callable[[OSError], None]) -> TextIO:
    """Return a stream to the same descriptor that calls ``fail`` for its first error."""
    if stream is not original or not isinstance(stream, io.TextIOWrapper):
        return stream  # somebody put another one there
    checked = _Checked(getattr(stream.buffer, "raw", stream.buffer), fail)
    return io.TextIOWrapper(
        cast(
            "BinaryIO", checked if stream.write_through else io.BufferedWriter(checked)
        ),  # as under python -u
        encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _refuse(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
        raise ReaderGoneError from error
    raise OutputError(STANDARD_OUTPUT, error) from error


class _Checked(io.RawIOBase):
    """A raw stream that reports the first error in its own way; what is written after that is lost."""

    def __init__(self, raw: Any, fail: Callable[[OSError], None]) -> None:
        self._raw = raw
        self._fail = fail
        self._failed = False

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = rest.nbytes
        while rest and not self._failed:  # what is written at once may be a part: nobody above asks
            try:
                written = self._raw.write(rest)
                if written is None:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                rest = rest[written:]
            except OSError as error:
                self._failed = True
                self._fail(error)
            except BaseException:  # an interrupt: nobody waits for the rest, and at exit it would block again
                self._failed = True
                raise
        return size

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        return bool(self._raw.isatty())


def use_color(stream: object) -> bool:
    """Return whether to colour what goes to ``stream``: only on a terminal, and never under ``NO_COLOR``."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return isinstance(stream, io.TextIOBase) and stream.isatty()
