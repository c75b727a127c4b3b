"""Calls of compiled code that Ctrl-C ends: a program may well loop for ever."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: Seconds after which the main thread looks for signals that came between its last look and its wait.
_MISSED = 0.1


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
