"""Machine code that a thread of its own makes while the process goes on.

LLVM works there without the interpreter lock. The thread takes no other lock: whoever holds one may wait.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from mind_mlir.cores import usable_cores
from mind_mlir.speed_ups import went_well

if TYPE_CHECKING:
    from collections.abc import Callable

#: Held while native code is begun that is there once in a process.
making = threading.RLock()
_running: list[threading.Thread] = []
#: Signals that a fault raises in the thread itself.
_FAULTS = ("SIGILL", "SIGBUS", "SIGFPE", "SIGSEGV")


class Ahead:
    """Work that may be done already when it is waited for."""

    def __init__(self, work: Callable[[], object]) -> None:
        """Begin ``work`` if there is a core for it. The caller holds `making`.

        Args:
            work: Takes no lock, and may be done again.
        """
        self._work = work
        self._done = False
        self._thread: threading.Thread | None = None
        if usable_cores() < 2:
            return
        # One that ends with the process would do so in LLVM: daemon threads start threads of their kind.
        thread = threading.Thread(target=self._run, name="mind-mlir", daemon=False)
        # The process may have no more threads or memory, or is about to end.
        if not went_well(thread.start):
            return
        _running[:] = [thread, *(each for each in _running if each.is_alive())]
        self._thread = thread

    def wait(self) -> None:
        """Return when the work has been done; any number of threads may call this."""
        if self._thread is not None:
            self._thread.join()
            return
        with making:  # one does it, the others wait, and so does a fork
            if not self._done:
                self._work()
                self._done = True

    def leave(self) -> None:
        """Have the work done without waiting for it, unless there is no thread that could do it."""
        if self._thread is None:
            self.wait()

    def _run(self) -> None:
        # Python handles signals in the main thread, which is to notice them.
        if hasattr(signal, "pthread_sigmask"):  # not on Windows
            faults = {getattr(signal, name) for name in _FAULTS}
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
        self._work()


def _before_fork() -> None:
    """Wait for the threads: a child has none of them, and would have LLVM's locks as they left them."""
    making.acquire()
    for thread in _running:
        thread.join()


if hasattr(os, "register_at_fork"):
    _after = {"after_in_parent": making.release, "after_in_child": making.release}
    os.register_at_fork(before=_before_fork, **_after)
