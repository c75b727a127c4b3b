"""The ranks that this process runs, each in a thread of its own, one at a time.

A rank runs until it comes to a collective, and waits there for those of its group. The last one of them that
this process has does it for all. Where all wait or are over and no collective is complete, none can ever be:
that is told with the places where they wait.

Where a program has a collective started and finished apart (`mind_mlir.passes.overlap`), a rank leaves a copy
of what it brings, and goes on. When the last one has come, the lane of the group does it: with memory of its
own, so that whatever becomes of the ranks meanwhile, nobody writes to what is theirs.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mind_mlir.collectives.gathering import Gathering
from mind_mlir.collectives.lanes import lane_of, wait_for
from mind_mlir.collectives.problems import deadlock, failed
from mind_mlir.collectives.world import current_world, ranks_here, run_more, spread_of
from mind_mlir.diagnostics import ExecutionError
from mind_mlir.ir.mesh import mesh_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.collectives.gathering import New
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.mesh import Mesh
    from mind_mlir.ir.sharding import Sharding

T = TypeVar("T")


class _Local(threading.local):
    member: tuple[Team, int] | None = None


_local = _Local()
#: Held while ranks run, where there are several processes.
_calls = threading.Lock()


class Team:
    """The ranks of a mesh that this process runs, during one call.

    Attributes:
        mesh: The mesh.
        ranks: Their numbers.
        error: What the first of them raised that did.
    """

    def __init__(self, mesh: Mesh, ranks: range) -> None:
        self.mesh, self.ranks = mesh, ranks
        self._condition = threading.Condition()
        self._running: int | None = None
        self._active = len(ranks)
        self._gatherings: dict[tuple[int, ...], list[Gathering]] = {}
        self._started: dict[int, tuple[Gathering, int]] = {}
        self._tokens = count(1)
        self.error: BaseException | None = None

    def begin(self, rank: int) -> None:
        """Wait until no other rank runs."""
        with self._condition:
            self._take(rank)

    def end(self, error: BaseException | None) -> None:
        """Let another rank run: this one is over, with what it has raised, if anything."""
        with self._condition:
            self._leave()
            self._active -= 1
            if error is not None:
                self.fail(error)
            self._look()
            self._condition.notify_all()

    def fail(self, error: BaseException) -> None:
        """End all ranks that wait, or come to a collective later."""
        with self._condition:
            self.error = self.error or error
            self._condition.notify_all()

    def _take(self, rank: int) -> None:
        self._condition.wait_for(lambda: self._running is None)
        self._running = rank
        run_more(1)

    def _leave(self) -> None:
        self._running = None
        run_more(-1)
        self._condition.notify_all()

    def meet(self, rank: int, call: CollectiveCall, operand: Array, out: Array) -> None:
        """Do a collective with the others of the group of ``rank``, whose result is written to ``out``."""
        with self._condition:
            gathering, _ = self._come(rank, call, operand, out)
            if gathering.missing:
                self._wait(rank, gathering)
                return
            self._leave()
        self._perform(gathering)
        with self._condition:
            self._take(rank)
        if gathering.error is not None:
            raise gathering.error

    def start(self, rank: int, call: CollectiveCall, operand: Array, new: New) -> int:
        """Have a collective done, for which ``operand`` is copied; return what `finish` takes."""
        token = next(self._tokens)
        with self._condition:
            gathering, member = self._come(rank, call, operand, None)
            self._started[token] = gathering, member
            complete = not gathering.missing
            self._active += complete  # what does it, in the place of the ranks that are going to wait
        if complete and len(spread_of(self.mesh, gathering.group, current_world())[1]) == 1:
            self._perform(gathering, new, more=-1)
            return token
        copy = new(call.shape, call.dtype.numpy)
        np.copyto(copy, operand)
        gathering.keep(rank, copy)
        if complete:
            lane_of(gathering.group).put(partial(self._perform, gathering, new, more=-1))
        return token

    def finish(self, rank: int, token: int, out: Array) -> None:
        """Wait for a collective that has been started, and write its result to ``out``."""
        if token not in self._started:
            raise failed("E6201", "the end of a collective comes without its start", "start it before")
        gathering, member = self._started.pop(token)
        with self._condition:
            if not gathering.is_over:
                self._wait(rank, gathering)
        if gathering.error is not None:
            raise gathering.error
        np.copyto(out, gathering.result(rank, member))

    def _come(
        self, rank: int, call: CollectiveCall, operand: Array, out: Array | None
    ) -> tuple[Gathering, int]:
        """Return the gathering that a rank comes to with a collective, and which of its members that is."""
        if self.error is not None:
            raise self.error
        group = self.mesh.group(rank, call.axes)
        waiting = self._gatherings.setdefault(group, [])
        found = next((each for each in waiting if each.is_next(rank, call)), None)
        if found is None:
            found = Gathering(group, [each for each in group if each in self.ranks], call)
            waiting.append(found)
        try:
            member = found.add(rank, call, operand, out)
        except ExecutionError as error:
            self.fail(error)
            raise
        if not found.missing:
            waiting.remove(found)
        return found, member

    def _wait(self, rank: int, gathering: Gathering) -> None:
        self._active -= 1
        gathering.waiting.append(rank)
        self._leave()
        self._look()
        try:
            wait_for(self._condition, lambda: gathering.is_over or self.error is not None)
        finally:
            self._take(rank)
        error = gathering.error or self.error
        if error is not None:
            raise error

    def _look(self) -> None:
        """Fail where nobody is left who could complete a collective."""
        waiting = [each for found in self._gatherings.values() for each in found if each.waiting]
        if self._active == 0 and waiting and self.error is None:
            self.error = deadlock(
                [
                    f"rank {rank} waits at {each.calls[0]} for rank {each.missing[0]}"
                    for each in waiting
                    for rank in each.waiting
                ]
            )
            self._condition.notify_all()

    def _perform(self, gathering: Gathering, new: New = np.empty, more: int = 0) -> None:
        """Do a collective that all have come to; what goes wrong is kept for those who wait."""
        error: BaseException | None = None
        try:
            world = current_world()
            spread, processes = spread_of(self.mesh, gathering.group, world)
            if more == 0:
                lane_of(gathering.group).drain()
            world.perform(gathering.meetings(spread, new), processes)
        except BaseException as raised:
            error = raised
        with self._condition:
            gathering.end(error)
            self.error = self.error or error
            self._active += len(gathering.waiting) + more
            self._look()
            self._condition.notify_all()


@contextmanager
def _as_member(team: Team, rank: int) -> Iterator[None]:
    before, _local.member = _local.member, (team, rank)
    try:
        yield
    finally:
        _local.member = before


def current_rank() -> tuple[Mesh, int] | None:
    """Return the mesh and the number of the rank that this thread runs, if it runs one."""
    return None if _local.member is None else (_local.member[0].mesh, _local.member[1])


def first_rank(mesh: Mesh) -> int:
    """Return the rank that this thread runs, or else the first one that this process has."""
    if _local.member is not None and _local.member[0].mesh == mesh:
        return _local.member[1]
    return ranks_here(mesh, current_world()).start


def position(mesh: str, axes: str) -> int:
    """Return the place in its group of the rank that this thread runs.

    Raises:
        ExecutionError: E6201, it runs none of that mesh.
    """
    return mesh_of(mesh).position(_member_of(mesh, "AxisIndex")[1], axes)


def part(mesh: str, sharding: Sharding, shape: Sequence[int]) -> tuple[slice, ...]:
    """Return which part of an array is that of the rank that this thread runs (E6201 as `position`)."""
    return sharding.part(mesh_of(mesh), _member_of(mesh, "TakePart")[1], shape)


def meet(call: CollectiveCall, operand: Array, out: Array) -> None:
    """Do a collective as the rank that this thread runs; its result is written to ``out``.

    Raises:
        ExecutionError: E6202, ranks do different collectives; E6203, they wait for one another; E6204, a
            process has ended. Its message has the places of both.
    """
    team, rank = _member_of(str(call.mesh), str(call))
    team.meet(rank, call, operand, out)


def start(call: CollectiveCall, operand: Array, new: New = np.empty) -> int:
    """Have a collective done as the rank that this thread runs, which goes on meanwhile; return its token.

    Copies and results lie in ``new`` arrays.

    Raises:
        ExecutionError: E6201, it runs none of that mesh; E6202, as `meet`.
    """
    team, rank = _member_of(str(call.mesh), str(call))
    return team.start(rank, call, operand, new)


def finish(mesh: str, token: int, out: Array) -> None:
    """Wait for a collective that has been started, whose result is written to ``out``.

    Raises:
        ExecutionError: As `meet`.
    """
    team, rank = _member_of(mesh, "the end of a collective")
    team.finish(rank, token, out)


def _member_of(mesh: str, what: str) -> tuple[Team, int]:
    if _local.member is None:
        raise failed("E6201", f"{what} runs on no mesh", "call it within a program of its mesh")
    if str(_local.member[0].mesh) != mesh:
        raise failed(
            "E6201",
            f"a program of the mesh {mesh} is called by a rank of the mesh {_local.member[0].mesh}",
            "use one mesh for all parts of a program",
        )
    return _local.member


def run_ranks(mesh: Mesh, body: Callable[[int], T]) -> list[T]:
    """Return what ``body`` returns for each rank of a mesh that this process has, in order.

    A rank that calls this again, for the same mesh, runs ``body`` for itself alone.

    Raises:
        ExecutionError: E6201, the ranks cannot be spread over the processes; E6202, another thread calls this
            meanwhile, and there are several processes; as `meet`.
        BaseException: What ``body`` raises first.
    """
    around = _local.member
    if around is not None and around[0].mesh == mesh:
        return [body(around[1])]
    world = current_world()
    ranks = ranks_here(mesh, world)
    with _one_thread() if world.size > 1 and around is None else nullcontext():
        return _run_team(mesh, ranks, body)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Refuse a second thread: its collectives would come in another order in each process."""
    if not _calls.acquire(blocking=False):
        raise failed(
            "E6202",
            "two threads of this process call functions of a mesh at the same time",
            "call them from one thread: all processes must come to the same collectives in the same order",
        )
    try:
        yield
    finally:
        _calls.release()


def _run_team(mesh: Mesh, ranks: range, body: Callable[[int], T]) -> list[T]:
    team = Team(mesh, ranks)
    if len(ranks) == 1:
        team.begin(ranks[0])
        try:
            with _as_member(team, ranks[0]):
                return [body(ranks[0])]
        finally:
            team.end(None)
    results: dict[int, T] = {}

    def run(rank: int) -> None:
        error: BaseException | None = None
        team.begin(rank)
        try:
            with _as_member(team, rank):
                results[rank] = body(rank)
        except BaseException as raised:
            error = raised
        finally:
            team.end(error)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(run, rank), daemon=True)
        for rank in ranks
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException as error:  # an interrupt: ranks end where they meet next
        team.fail(error)
        raise
    if team.error is not None:
        raise team.error
    return [results[rank] for rank in ranks]
