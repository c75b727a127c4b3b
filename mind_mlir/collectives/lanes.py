"""Threads that do collectives while the ranks of this process go on computing, one for each group.

What a lane is given it does in order, so that all processes of a group do the same one after the other. A
thread for all groups would not do: two processes may have begun with collectives of different groups, and
each would wait for the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from mind_mlir.support.callbacks import deliver_in_callback

#: So long a wait goes on before it looks for interrupts, in seconds.
_PERIOD = 0.05


class Lane:
    """The thread of a group; it begins with the first job."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._condition = threading.Condition()
        self._left = 0
        self._begun = False

    def put(self, job: Callable[[], None]) -> None:
        """Have ``job`` done, which raises nothing, behind all others."""
        with self._condition:
            self._left += 1
            if not self._begun:
                self._begun = True
                threading.Thread(target=self._serve, name="mind_mlir.lane", daemon=True).start()
        self._jobs.put(job)

    def drain(self) -> None:
        """Wait until all jobs have been done."""
        with self._condition:
            wait_for(self._condition, lambda: not self._left)

    def _serve(self) -> None:
        while True:
            self._jobs.get()()
            with self._condition:
                self._left -= 1
                self._condition.notify_all()


_LANES: dict[tuple[int, ...], Lane] = {}


def lane_of(group: tuple[int, ...]) -> Lane:
    """Return the lane of the group of some ranks."""
    return _LANES.setdefault(group, Lane())


def wait_for(condition: threading.Condition, predicate: Callable[[], bool]) -> None:
    """Wait for a condition, which this thread holds, or for an interrupt.

    Raises:
        KeyboardInterrupt: There is one.
    """
    while not condition.wait_for(predicate, _PERIOD):
        deliver_in_callback()
