"""Ctrl-C ends the tools, from the first moment until the last, with 130 and no traceback.

This module loads nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

EXIT_INTERRUPTED = 130


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
