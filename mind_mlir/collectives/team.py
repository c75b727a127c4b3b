"""The ranks that this process runs, each in a thread of its own, one at a time.

A rank runs until it comes to a collective, and waits there for those of its group. The last one of them that
this process has does it for all. Where all wait or are over and no collective is complete, none can ever be:
that is told with the places where they wait.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.collectives.exchange import Meeting
from mind_mlir.collectives.problems import deadlock, disagreement, failed
from mind_mlir.collectives.world import current_world, ranks_here, run_more, spread_of
from mind_mlir.ir.mesh import mesh_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.mesh import Mesh
    from mind_mlir.ir.sharding import Sharding

T = TypeVar("T")


class _Local(threading.local):
    member: tuple[Team, int] | None = None


_local = _Local()


class _Gathering:
    """A collective that ranks of this process come to.

    Attributes:
        call: What the first of them said.
        arrived: What each has brought, and where its result goes.
        error: What went wrong.
        is_over: Whether it has been done, well or not.
    """

    def __init__(self, call: CollectiveCall, first: int) -> None:
        self.call, self.first = call, first
        self.arrived: dict[int, tuple[Array, Array]] = {}
        self.error: BaseException | None = None
        self.is_over = False


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
        self._gatherings: dict[tuple[int, ...], _Gathering] = {}
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
        group = self.mesh.group(rank, call.axes)
        own = [each for each in group if each in self.ranks]
        with self._condition:
            if self.error is not None:
                raise self.error
            gathering = self._gatherings.setdefault(group, _Gathering(call, rank))
            if gathering.call.key != call.key:
                whose = [f"rank {gathering.first}", f"rank {rank}"]
                self.error = disagreement(whose, [str(gathering.call), str(call)])
                self._condition.notify_all()
                raise self.error
            gathering.arrived[rank] = operand, out
            if len(gathering.arrived) < len(own):
                self._wait(rank, gathering)
                return
            del self._gatherings[group]
            self._leave()
        try:
            self._perform(group, own, gathering)
        except BaseException as error:
            gathering.error = self.error = error
            raise
        finally:
            with self._condition:
                gathering.is_over = True
                self._active += len(own) - 1
                self._take(rank)

    def _wait(self, rank: int, gathering: _Gathering) -> None:
        self._active -= 1
        self._leave()
        self._look()
        self._condition.wait_for(lambda: gathering.is_over or self.error is not None)
        self._take(rank)
        error = gathering.error or self.error
        if error is not None:
            raise error

    def _look(self) -> None:
        """Fail where nobody is left who could complete a collective."""
        if self._active == 0 and self._gatherings and self.error is None:
            self.error = deadlock(
                [
                    f"rank {rank} waits at {each.call} for rank "
                    f"{next(other for other in group if other in self.ranks and other not in each.arrived)}"
                    for group, each in self._gatherings.items()
                    for rank in each.arrived
                ]
            )

    def _perform(self, group: tuple[int, ...], own: Sequence[int], gathering: _Gathering) -> None:
        world = current_world()
        spread, processes = spread_of(self.mesh, group, world)
        pairs = [gathering.arrived[rank] for rank in own]
        meeting = Meeting(
            gathering.call, group, spread, [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        )
        world.perform(meeting, processes)


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
        ExecutionError: E6201, the ranks cannot be spread over the processes; as `meet`.
        BaseException: What ``body`` raises first.
    """
    around = _local.member
    if around is not None and around[0].mesh == mesh:
        return [body(around[1])]
    ranks = ranks_here(mesh, current_world())
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
