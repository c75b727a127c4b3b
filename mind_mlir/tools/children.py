"""Functions in processes of their own, which may crash or hang there."""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_BYTES = 1 << 16


class CrashedError(Exception):
    """The process that a function ran in was ended by a signal, whose name this is."""


def in_child(work: Callable[[], object], seconds: float) -> Any:
    """Return what ``work`` returns in a fork of this process, whose output nobody sees.

    Args:
        work: Returns what pickles, and raises nothing.
        seconds: How long it may take.

    Raises:
        CrashedError: A signal has ended the process.
        TimeoutError: It has taken longer; the process is gone.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(work, reading, writing)
    os.close(writing)
    try:
        data = _received(reading, time.monotonic() + seconds)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(reading)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        raise CrashedError(signal.Signals(-code).name)
    return pickle.loads(data)  # noqa: S301 -- our own child wrote it


def _answer(work: Callable[[], object], reading: int, writing: int) -> None:
    """Do the work of the child, which ends here."""
    code = 1
    faulthandler.disable()  # a crash is an answer, which the parent has words for
    try:
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(work(), pipe)
        code = 0
    finally:
        os._exit(code)  # nothing of the parent's is to be cleaned up here


def _received(reading: int, end: float) -> bytes:
    """Return all that comes until the other end is closed."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(reading, _BYTES)
        if not part:
            return b"".join(parts)
        parts.append(part)
