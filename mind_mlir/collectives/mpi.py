"""`MpiWorld`: the processes that an MPI launcher has started, on any number of machines.

Arrays go as messages of their own between the processes of a group, in the order of the program; a tag keeps
groups apart. Each collective begins with a short message to all others that says which one it is: so ranks
that disagree are told, and nobody reads what was meant otherwise. Nobody waits without looking now and then
whether that is still worth while (`mind_mlir.collectives.lookout`).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from mind_mlir.collectives.exchange import Messages, perform
from mind_mlir.collectives.lookout import Lookout
from mind_mlir.collectives.packing import bytes_of
from mind_mlir.collectives.problems import disagreement
from mind_mlir.collectives.world import is_busy
from mind_mlir.support.callbacks import deliver_in_callback

if TYPE_CHECKING:
    from mind_mlir.collectives.exchange import Meeting

#: The size of the message that says which collective a rank is at, in bytes: a digest, and text.
_HEADER, _DIGEST = 512, 16
#: So long a wait looks again and again before it sleeps in between, in seconds, and how long it sleeps. Where
#: a rank of this process computes meanwhile, which needs the core, it sleeps at once, and longer and longer.
_SPIN, _NAP, _LONGEST_NAP = 200e-6, 50e-6, 1e-3


class MpiWorld:
    """Processes that MPI connects; see `mind_mlir.collectives.world.World`."""

    def __init__(self) -> None:
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise RuntimeError("it has no threads (MPI_THREAD_MULTIPLE)")
        self.comm = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        self.sent = 0
        self._lock = threading.Lock()
        self.lookout = Lookout(self.comm.Dup())

    def perform(self, meetings: Sequence[Meeting], processes: tuple[int, ...]) -> None:
        """Do collectives of a group that these processes have the ranks of."""
        if len(processes) == 1:
            perform(meetings, None)
            return
        channel = _Channel(self, meetings, processes)
        channel.agree()
        perform(meetings, channel)

    def barrier(self, what: str) -> None:
        """Wait until all processes have come here."""
        self.wait([self.comm.Ibarrier()], what, self._others, "barrier")

    def gathered(self, value: bytes, what: str) -> list[bytes]:
        """Return what each process gives, in order."""
        sizes = np.zeros(self.size, np.int64)
        self.wait([self.comm.Iallgather(np.asarray(len(value)), sizes)], what, self._others, "sizes")
        whole = np.empty(int(sizes.sum()), np.uint8)
        ends = np.cumsum(sizes)
        places = [*sizes.tolist()], [*(ends - sizes).tolist()]
        request = self.comm.Iallgatherv(np.frombuffer(value, np.uint8), [whole, places, MPI.BYTE])
        self.wait([request], what, self._others, "values")
        return [whole[end - size : end].tobytes() for size, end in zip(sizes, ends, strict=True)]

    def _others(self) -> list[int]:
        """Return all other processes: of what all do together nobody knows who is missing."""
        return [rank for rank in range(self.size) if rank != self.rank]

    def count(self, sent: int) -> None:
        """Add to the bytes that have been sent."""
        with self._lock:
            self.sent += sent

    def wait(self, requests: list[Any], what: str, missing: Callable[[], list[int]], met: str) -> None:
        """Wait until messages are through, as long as the processes that are ``missing`` may still come.

        Where these wait for one another with the same text ``met``, which is not empty, they have come.
        """
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < self.lookout.patience:
            if MPI.Request.Testall(requests):
                return
            deliver_in_callback()
            if is_busy():
                time.sleep(min(max(_NAP, elapsed / 8), _LONGEST_NAP))
            elif elapsed > _SPIN:
                time.sleep(_NAP)
        with self.lookout.waiting(what, missing, met) as wait:
            while not MPI.Request.Testall(requests):
                deliver_in_callback()
                time.sleep(_NAP * 10)
                wait.look()


class _Channel:
    """What takes arrays between the processes of a group."""

    def __init__(self, world: MpiWorld, meetings: Sequence[Meeting], processes: Sequence[int]) -> None:
        call, first = meetings[0].call, meetings[0]
        self._keys = "\n".join([meeting.call.key for meeting in meetings])
        self._what = f"{call}, and {len(meetings) - 1} more" if len(meetings) > 1 else str(call)
        self._world, self._processes, self._own = world, processes, first.spread.own
        group = f"{call.mesh} {call.axes} {processes} {first.group}"
        top = world.comm.Get_attr(MPI.TAG_UB) or 32767
        self._tag = int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "little") % top

    def agree(self) -> None:
        """Check that the others are at the same collective.

        Raises:
            ExecutionError: E6202, they are not.
        """
        text = self._what.encode()[: _HEADER - _DIGEST]
        header = hashlib.sha256(self._keys.encode()).digest()[:_DIGEST] + text
        own = np.frombuffer(header.ljust(_HEADER, b"\0"), np.uint8)
        others = [place for place in range(len(self._processes)) if place != self._own]
        found = {place: np.empty(_HEADER, np.uint8) for place in others}
        counts = range(len(self._processes))
        self._swap(
            [[own] if place in found else [] for place in counts],
            [[found[place]] if place in found else [] for place in counts],
            met="",
        )
        for place, theirs in found.items():
            if theirs[:_DIGEST].tobytes() != header[:_DIGEST]:
                words = theirs[_DIGEST:].tobytes().rstrip(b"\0").decode(errors="replace")
                whose = [f"process {self._world.rank}", f"process {self._processes[place]}"]
                raise disagreement(whose, [self._what, words])

    def exchange(self, sends: Messages, receives: Messages) -> None:
        """Send arrays, and fill others with what is sent to this process."""
        self._world.count(sum(array.nbytes for each in sends for array in each))
        self._swap(sends, receives, met=f"{self._tag} {self._keys}")

    def _swap(self, sends: Messages, receives: Messages, met: str) -> None:
        comm, tag = self._world.comm, self._tag
        coming: list[tuple[int, Any]] = []
        for process, arrays in zip(self._processes, receives, strict=True):
            coming += [(process, comm.Irecv([bytes_of(each), MPI.BYTE], process, tag)) for each in arrays]
        going = [
            comm.Isend([bytes_of(each), MPI.BYTE], process, tag)
            for process, arrays in zip(self._processes, sends, strict=True)
            for each in arrays
        ]
        requests = [request for _, request in coming]

        def missing() -> list[int]:
            return list(dict.fromkeys(process for process, request in coming if not request.Test()))

        self._world.wait([*requests, *going], self._what, missing, met)
