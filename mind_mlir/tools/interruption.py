"""Ctrl-C ends the tools, from the first moment until the last, with 130 and no traceback.

This module loads nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TypeVar

T = TypeVar("T")

EXIT_INTERRUPTED = 130
#: Seconds after which the main thread looks for signals that came between its last look and its wait.
_MISSED = 0.1


class Interrupted(BaseException):
    """An interrupt of a running tool; click would print an empty line for a KeyboardInterrupt."""


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(EXIT_INTERRUPTED)


def leave_on_interrupt() -> None:
    """End this process at once when it is interrupted, unless it was started to ignore interrupts.

    That is for the time in which there is nothing to clean up and nobody to catch an exception.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def raising_on_interrupt() -> Iterator[None]:
    """Raise `Interrupted` instead during the block, so that what it has begun is cleaned up."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        yield
        return
    try:
        signal.signal(signal.SIGINT, _raise)
        yield
    finally:
        signal.signal(signal.SIGINT, _leave)


def interruptible(call: Callable[[], T]) -> T:
    """Return what ``call`` returns, or raise what it raises, unless a signal's handler raises before.

    Handlers run between two steps of the main thread, of which native code takes none. So it runs in another
    thread, which is left behind when the main thread is interrupted: it ends with the process, at once.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_MISSED)
    if errors:
        raise errors[0]
    return results[0]
