"""Machine code that a thread of its own makes while the process goes on.

LLVM works there without the interpreter lock. The thread takes no other lock: whoever holds one may wait.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from _thread import start_new_thread
from typing import TYPE_CHECKING

from mind_mlir.support.interrupts import at_end
from mind_mlir.support.resources import usable_cores
from mind_mlir.support.speed_ups import went_well

if TYPE_CHECKING:
    from collections.abc import Callable

#: Held while native code is begun that is there once in a process.
making = threading.RLock()
#: Signals that a fault raises in the thread itself.
_FAULTS = ("SIGILL", "SIGBUS", "SIGFPE", "SIGSEGV")


class Ahead:
    """Work that may be done already when it is waited for: whoever comes first does it, others wait.

    Attributes:
        has_thread: Whether there is a thread that does it.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        """Begin ``work`` if there is a core for it. The caller holds `making`.

        Args:
            work: Takes no lock, and may be done again where it has raised.
        """
        self._work = work
        self._turn = threading.Lock()
        self._done = False
        _begun.add(self)
        # Not by threading.Thread, whose start never returns where the thread finds no memory to begin with.
        # The process may have no more threads, or is about to end.
        self.has_thread = usable_cores() > 1 and went_well(lambda: start_new_thread(self._run, ()))

    def wait(self) -> None:
        """Return when the work has been done; any number of threads may call this."""
        if self._done:
            return
        with self._turn:
            if not self._done:
                self._work()
                self._done = True

    def leave(self) -> None:
        """Have the work done without waiting for it, unless there is no thread that could do it."""
        if not self.has_thread:
            self.wait()

    def _run(self) -> None:
        # Python handles signals in the main thread, which is to notice them.
        if hasattr(signal, "pthread_sigmask"):  # not on Windows
            faults = {getattr(signal, name) for name in _FAULTS}
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
        went_well(self.wait)  # who waits for it does it again otherwise, and is told why


_begun: weakref.WeakSet[Ahead] = weakref.WeakSet()


def finish() -> None:
    """Have done what has been begun: threads are not to be in LLVM when the process ends or forks."""
    with making:
        for each in tuple(_begun):
            went_well(each.wait)


def _before_fork() -> None:
    """Wait for the threads: a child has none of them, and would have LLVM's locks as they left them."""
    making.acquire()
    finish()


if hasattr(os, "register_at_fork"):
    _after = {"after_in_parent": making.release, "after_in_child": making.release}
    os.register_at_fork(before=_before_fork, **_after)
at_end.append(finish)
