"""`Lookout`: whether a process that waits for others may still be served by them.

A thread of each process answers questions: where it waits, and for whom. Who has waited for a while asks
those that it waits for, those that they wait for, and so on. Where none of them runs, nobody can go on, and
that is an error with the places of all. The thread looks after the processes of this machine, too: when one
is gone, this one says so and ends.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from mpi4py import MPI

from mind_mlir.collectives.problems import ENDED, deadlock, failed
from mind_mlir.collectives.world import is_busy
from mind_mlir.support.callbacks import deliver_in_callback

#: How often the thread looks, and the tags of questions and answers.
_PERIOD, _ASK, _ANSWER = 0.05, 1, 2
#: Processes that none could go on have been seen so often, without a step of any of them.
_TIMES = 4
#: So long may a process take to answer: the interpreter lock may be held for a while, as by a compilation.
_SILENCE = 60.0
#: The code that a process ends with whose fellow is gone.
LOST = 75


class Lookout:
    """What a process says of itself, and finds out about others.

    Attributes:
        patience: So long a wait goes on before others are asked, in seconds.
    """

    patience = 0.5

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._lock = threading.Lock()
        self._waits: dict[int, Wait] = {}
        self._steps = 0
        self._over = self._ending = False
        self._asked = 0
        mine = (socket.gethostname(), os.getpid())
        self._fellows = {
            rank: each[1]
            for rank, each in enumerate(comm.allgather(mine))
            if each[0] == mine[0] and rank != self.rank
        }
        threading.Thread(target=self._serve, name="mind_mlir.lookout", daemon=True).start()
        atexit.register(self._end)
        self._hook, sys.excepthook = sys.excepthook, self._raised

    @contextmanager
    def waiting(self, what: str, missing: Callable[[], list[int]]) -> Iterator[Wait]:
        """Say in the block that this thread waits at ``what`` for the processes that are ``missing``."""
        wait = Wait(self, what, missing)
        with self._lock:
            self._waits[id(wait)] = wait
        try:
            yield wait
        finally:
            with self._lock:
                del self._waits[id(wait)]
                self._steps += 1

    def status(self) -> dict[str, Any]:
        """Return what this process tells others that ask."""
        with self._lock:
            waits = [[each.what, each.others] for each in self._waits.values()]
            steps, over = self._steps, self._ending
        return {"over": over, "runs": not waits or is_busy(), "steps": steps, "waits": waits}

    def ask(self, rank: int) -> dict[str, Any]:
        """Return what another process says of itself.

        Raises:
            ExecutionError: E6204, it does not answer.
        """
        if rank == self.rank:
            return self.status()
        with self._lock:
            number = self._asked = self._asked + 1
        self._comm.send((number, self.rank), dest=rank, tag=_ASK)
        answer = self._comm.irecv(source=rank, tag=_ANSWER + number % 1000)
        begun = time.monotonic()
        while time.monotonic() - begun < _SILENCE:
            deliver_in_callback()
            is_there, found = answer.test()
            if is_there:
                return cast("dict[str, Any]", found)
            time.sleep(0.002)
        raise failed(
            "E6204",
            f"process {rank} has not answered for {_SILENCE:.0f} seconds",
            "see what has become of it: it may have been stopped, or its machine be lost",
        )

    def _serve(self) -> None:
        """Answer questions, and look after the processes of this machine, until the process ends."""
        state = MPI.Status()
        while not self._over:
            try:
                while self._comm.Iprobe(tag=_ASK, status=state):
                    number, rank = self._comm.recv(source=state.Get_source(), tag=_ASK)
                    self._comm.send(self.status(), dest=rank, tag=_ANSWER + number % 1000)
            except MPI.Exception:
                return
            for rank, pid in self._fellows.items():
                if not _is_there(pid):
                    self._lose(rank, pid)
            time.sleep(_PERIOD)

    def _lose(self, rank: int, pid: int) -> None:
        sys.stderr.write(
            f"error[E6204]: process {rank} (pid {pid}) has ended without a word; "
            f"process {self.rank} of {self.size} ends, too\n"
        )
        sys.stderr.flush()
        os._exit(LOST)

    def _raised(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show what nobody has caught, and end all processes: others would wait for this one."""
        self._hook(kind, error, trace)
        sys.stderr.write(f"process {self.rank} of {self.size} ends by this, and all others with it\n")
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    def _end(self) -> None:
        """Wait until all processes end, and answer meanwhile that this one is over."""
        with self._lock:
            self._ending = True
        request = self._comm.Ibarrier()
        while not request.Test():
            time.sleep(_PERIOD / 10)
        self._over = True


class Wait:
    """A wait of a thread.

    Attributes:
        what: The collective.
        others: The processes that were missing when that was last looked at.
    """

    def __init__(self, watch: Lookout, what: str, missing: Callable[[], list[int]]) -> None:
        self._watch, self.what, self._missing = watch, what, missing
        self.others = missing()
        self._next, self._times = 0.0, 0
        self._seen: dict[int, dict[str, Any]] | None = None

    def look(self) -> None:
        """Ask now and then whether those who are missing may still come.

        Raises:
            ExecutionError: E6203, they never will.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 0.1
        self.others = self._missing()
        found: dict[int, dict[str, Any]] = {}
        asked = [self._watch.rank]
        for rank in asked:
            found[rank] = status = self._watch.ask(rank)
            if status["runs"] and not status["over"]:
                self._seen = None
                return
            if not status["over"]:
                others = [other for _, missing in status["waits"] for other in missing]
                asked += [other for other in dict.fromkeys(others) if other not in asked]
        if found != self._seen:
            self._seen, self._times = found, 0
        self._times += 1
        if self._times >= _TIMES and self.others:
            raise deadlock(_described(found))


def _described(found: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Return where processes are."""
    words = []
    for rank, status in found.items():
        if status["over"]:
            words.append(f"process {rank} {ENDED}")
        for what, missing in [] if status["over"] else status["waits"]:
            names = ", ".join(map(str, missing))
            words.append(f"process {rank} waits at {what} for process {names}")
    return words


def _is_there(pid: int) -> bool:
    """Return whether a process of this machine runs: one that waits for its parent does no more."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in (b"Z", b"X")
