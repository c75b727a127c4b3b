"""`Gathering`: a collective that ranks of one process come to, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.collectives.exchange import Meeting
from mind_mlir.collectives.problems import disagreement

if TYPE_CHECKING:
    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.collectives.exchange import Spread
    from mind_mlir.ir.attributes import Array

    #: Returns an array of some shape and dtype, with no particular contents.
    New: TypeAlias = Callable[[tuple[int, ...], Any], Array]

#: What gives all ranks of a group the same result: one array is enough for those of a process.
_ALIKE = ("AllReduce", "AllGather")


class Gathering:
    """A collective that ranks of this process come to, or several that are done together: a bucket.

    Attributes:
        calls: What the first of them said.
        waiting: The ranks that wait for it.
        error: What went wrong.
        is_over: Whether it has been done, well or not.
    """

    def __init__(self, group: tuple[int, ...], own: Sequence[int], call: CollectiveCall) -> None:
        """Begin with what the first rank of ``own``, those of a group that this process has, comes with."""
        self.group, self._own, self._bucket, self._count = group, own, call.bucket, call.members
        self.calls: list[CollectiveCall] = []
        self._first = -1
        self._brought: dict[int, list[tuple[Array, Array | None]]] = {}
        self._results: list[list[Array]] = []
        self.waiting: list[int] = []
        self.error: BaseException | None = None
        self.is_over = False

    def is_next(self, rank: int, call: CollectiveCall) -> bool:
        """Return whether ``rank`` comes to this one now: it has not been here, or lacks some of a bucket."""
        brought = self._brought.get(rank)
        if brought is None:
            return True
        return self._bucket is not None and self._bucket == call.bucket and len(brought) < self._count

    def add(self, rank: int, call: CollectiveCall, operand: Array, out: Array | None) -> int:
        """Take what a rank brings, and where its result goes if that is known; return which member it is.

        Raises:
            ExecutionError: E6202, another rank is at another collective.
        """
        brought = self._brought.setdefault(rank, [])
        member = len(brought)
        if member == len(self.calls):
            self._first = rank
            self.calls.append(call)
        if self.calls[member].key != call.key:
            whose = [f"rank {self._first}", f"rank {rank}"]
            raise disagreement(whose, [str(self.calls[member]), str(call)])
        brought.append((operand, out))
        return member

    def keep(self, rank: int, copy: Array) -> None:
        """Have a copy of what a rank has brought last in its place."""
        self._brought[rank][-1] = copy, None

    @property
    def missing(self) -> list[int]:
        """Return the ranks of this process that have not brought all yet."""
        return [rank for rank in self._own if len(self._brought.get(rank, ())) < self._count]

    def meetings(self, spread: Spread, new: New) -> list[Meeting]:
        """Return what is to be done; results of which nobody has said where they go lie in ``new`` arrays."""
        found = []
        for member, call in enumerate(self.calls):
            pairs = [self._brought[rank][member] for rank in self._own]
            outs = [out for _, out in pairs if out is not None]
            if not outs:
                count = 1 if call.opcode in _ALIKE else len(pairs)
                outs = [new(call.result_shape, call.dtype.numpy) for _ in range(count)]
                self._results.append(outs)
            found.append(Meeting(call, self.group, spread, [pair[0] for pair in pairs], outs))
        return found

    def end(self, error: BaseException | None) -> None:
        """Note that it has been done, well or not; what ranks have brought is not needed any more."""
        self.error, self.is_over = error, True
        self._brought.clear()

    def result(self, rank: int, member: int) -> Array:
        """Return the result of a rank, where it did not say where that goes."""
        results = self._results[member]
        return results[0] if len(results) == 1 else results[self._own.index(rank)]
