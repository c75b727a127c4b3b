"""`Lookout`: whether a process that waits for others may still be served by them.

A thread of each process answers questions: where it waits, and for whom. Who has waited for a while asks
those that it waits for, those that they wait for, and so on. Where none of them runs, nobody can go on, and
that is an error with the places of all. The thread looks after the processes of this machine, too: when one
is gone, this one says so and ends.
"""

from __future__ import annotations

import atexit
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, cast

from mpi4py import MPI

from mind_mlir.collectives.problems import ENDED, deadlock, failed
from mind_mlir.collectives.world import is_busy
from mind_mlir.support.callbacks import deliver_in_callback

#: How often the thread looks, and the tags of questions and answers.
_PERIOD, _ASK, _ANSWER = 0.05, 1, 2
#: That none can go on has been seen so often, without a step of any of them.
_TIMES = 4
#: So long may a process take to answer: the interpreter lock may be held for a while, as by a compilation.
_SILENCE = 60.0
#: Launchers that end all may not pass on what was written just before, in seconds.
_PASSED_ON = 0.1
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
    def waiting(self, what: str, missing: Callable[[], list[int]], met: str) -> Iterator[Wait]:
        """Say in the block that this thread waits at ``what`` for the processes that are ``missing``.

        Where these wait for one another with the same text ``met``, they wait for messages on their way.
        """
        wait = Wait(self, what, missing, met)
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
            waits = [[each.what, each.others, each.met] for each in self._waits.values()]
            steps, over = self._steps, self._ending
            looks = sum(each.looks for each in self._waits.values())
        runs = not waits or is_busy()
        return {"over": over, "runs": runs, "steps": steps, "waits": waits, "looks": looks}

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
        state, poll = MPI.Status(), select.poll()
        fellows = {rank: (pid, _descriptor(pid)) for rank, pid in self._fellows.items()}
        for _, descriptor in fellows.values():
            if descriptor != -1:
                poll.register(descriptor, select.POLLIN)
        while not self._over:
            try:
                while self._comm.Iprobe(tag=_ASK, status=state):
                    number, rank = self._comm.recv(source=state.Get_source(), tag=_ASK)
                    self._comm.send(self.status(), dest=rank, tag=_ANSWER + number % 1000)
            except MPI.Exception:
                return
            ended = dict(poll.poll(1e3 * _PERIOD))
            for rank, (pid, descriptor) in fellows.items():
                if descriptor in ended or descriptor == -1:
                    self._lose(rank, pid)

    def _lose(self, rank: int, pid: int) -> None:
        sys.stderr.write(
            f"error[E6204]: process {rank} (pid {pid}) has ended without a word; "
            f"process {self.rank} of {self.size} ends, too\n"
        )
        sys.stderr.flush()
        os._exit(LOST)

    def _raised(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show what nobody has caught, and end all processes: others would wait for this one."""
        if self._hook is sys.__excepthook__:  # which writes it in pieces, between those of others
            sys.stderr.write("".join(traceback.format_exception(kind, error, trace)))
        else:
            self._hook(kind, error, trace)
        sys.stderr.write(f"process {self.rank} of {self.size} ends by this, and all others with it\n")
        sys.stderr.flush()
        time.sleep(_PASSED_ON)
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
        met: Says what they have met at, where they have; else it is empty.
        looks: How often this was looked at.
    """

    def __init__(self, watch: Lookout, what: str, missing: Callable[[], list[int]], met: str) -> None:
        self._watch, self.what, self._missing, self.met = watch, what, missing, met
        self.others = missing()
        self.looks = 0
        self._next, self._times = 0.0, 0
        self._seen: dict[int, dict[str, Any]] = {}
        self._looks: dict[int, int] = {}

    def look(self) -> None:
        """Ask now and then whether those who are missing may still come.

        Raises:
            ExecutionError: E6203, they never will.
        """
        self.looks += 1
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 0.1
        self.others = self._missing()
        found: dict[int, dict[str, Any]] = {}
        asked = [self._watch.rank]
        for rank in asked:
            found[rank] = status = self._watch.ask(rank)
            if status["runs"] and not status["over"]:
                self._seen = {}
                return
            if not status["over"]:
                others = [other for _, missing, _ in status["waits"] for other in missing]
                asked += [other for other in dict.fromkeys(others) if other not in asked]
        if _are_served(found) or not self.others:
            self._seen = {}
            return
        # One that has not looked since may find that what it waits for is there.
        looks = {rank: status.pop("looks") for rank, status in found.items()}
        if found != self._seen:
            self._seen, self._looks, self._times = found, looks, 0
        elif all(found[rank]["over"] or looks[rank] > self._looks[rank] for rank in found):
            self._looks = looks
            self._times += 1
        if self._times >= _TIMES:
            raise deadlock(_described(found))


def _are_served(found: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return whether one of these processes waits for others that have met it, and so goes on."""
    met = {rank: {each for _, _, each in status["waits"]} for rank, status in found.items()}
    return any(
        each and others and all(each in met[other] for other in others)
        for status in found.values()
        for _, others, each in status["waits"]
        if not status["over"]
    )


def _described(found: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Return where processes are."""
    words = []
    for rank, status in found.items():
        if status["over"]:
            words.append(f"process {rank} {ENDED}")
        for what, missing, _ in [] if status["over"] else status["waits"]:
            names = ", ".join(map(str, missing))
            words.append(f"process {rank} waits at {what} for process {names}")
    return words


def _descriptor(pid: int) -> int:
    """Return what can be read from once a process of this machine has ended; -1 where it has."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1
