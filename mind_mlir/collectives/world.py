"""The processes that run one program together: one, or those that ``mpiexec`` has started."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from mind_mlir.collectives.exchange import Meeting, Spread, perform
from mind_mlir.collectives.problems import failed

if TYPE_CHECKING:
    from mind_mlir.ir.mesh import Mesh

#: What launchers of MPI tell a process: how many there are.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "MV2_COMM_WORLD_SIZE", "MPI_WORLD_SIZE")
#: Says whether to ask MPI at all: ``single`` leaves each process to itself.
VARIABLE = "MIND_MLIR_PROCESSES"


class World(Protocol):
    """The processes, and what goes between them.

    Attributes:
        rank: The number of this process.
        size: How many there are.
        sent: How many bytes this process has sent in collectives, without what checks them.
    """

    rank: int
    size: int
    sent: int

    def perform(self, meetings: Sequence[Meeting], processes: tuple[int, ...]) -> None:
        """Do collectives of a group that these processes have the ranks of, all of them together."""

    def barrier(self, what: str) -> None:
        """Wait until all processes have come here; ``what`` says where, for messages."""

    def gathered(self, value: bytes, what: str) -> list[bytes]:
        """Return what each process gives, in order; ``what`` says where, for messages."""


class SingleWorld:
    """This process alone."""

    rank, size = 0, 1

    def __init__(self) -> None:
        self.sent = 0

    def perform(self, meetings: Sequence[Meeting], processes: tuple[int, ...]) -> None:
        """Do collectives within this process."""
        perform(meetings, None)

    def barrier(self, what: str) -> None:
        """Return at once."""

    def gathered(self, value: bytes, what: str) -> list[bytes]:
        """Return what this process gives."""
        return [value]


class _State:
    lock = threading.Lock()
    world: World | None = None
    running = 0


def run_more(more: int) -> None:
    """Note that more ranks of this process run their own operations now, or fewer."""
    with _State.lock:
        _State.running += more


def is_busy() -> bool:
    """Return whether a rank of this process runs its own operations, rather than waits."""
    return _State.running > 0


def current_world() -> World:
    """Return the processes that run together with this one; MPI begins where there are any.

    Raises:
        ExecutionError: E6205, a launcher of MPI has started this process, and mpi4py or an MPI is missing.
    """
    if _State.world is None:
        with _State.lock:
            if _State.world is None:
                _State.world = _begun()
    return _State.world


def _begun() -> World:
    if os.environ.get(VARIABLE) == "single" or not is_launched():
        return SingleWorld()
    try:
        from mind_mlir.collectives.mpi import MpiWorld  # noqa: PLC0415 -- needs mpi4py

        return MpiWorld()
    except (ImportError, RuntimeError) as error:
        raise failed(
            "E6205",
            f"this process was started by an MPI launcher, and MPI cannot be used: {error}",
            "install mpi4py and an MPI (pip install 'mind-mlir[mpi]'), or set "
            f"{VARIABLE}=single to leave each process to itself",
        ) from None


def is_launched() -> bool:
    """Return whether a launcher of MPI has started this process and others."""
    return any(os.environ.get(name, "1") not in ("", "0", "1") for name in _SIZES)


def ranks_here(mesh: Mesh, world: World) -> range:
    """Return the numbers of the ranks of a mesh that this process runs (ExecutionError as `ranks_each`)."""
    each = ranks_each(mesh, world.size)
    return range(world.rank * each, (world.rank + 1) * each)


def ranks_each(mesh: Mesh, processes: int) -> int:
    """Return how many ranks of a mesh each of so many processes runs.

    Raises:
        ExecutionError: E6201, they cannot be spread evenly, each process with a box of the mesh.
    """
    if not is_even(mesh, processes):
        sizes = [str(size) for size in range(1, mesh.size + 1) if is_even(mesh, size)]
        raise failed(
            "E6201",
            f"the {mesh.size} ranks of the mesh {mesh} cannot be spread over {processes} processes",
            f"start {', '.join(sizes[:20])} processes, or use another mesh",
        )
    return mesh.size // processes


def is_even(mesh: Mesh, processes: int) -> bool:
    """Return whether so many processes can have a box of the mesh each: inner axes, and a part of one."""
    for size in mesh.axes.values():
        if processes % size:
            return size % processes == 0
        processes //= size
    return processes == 1


def spread_of(mesh: Mesh, group: tuple[int, ...], world: World) -> tuple[Spread, tuple[int, ...]]:
    """Return how the ranks of a group are spread, and the numbers of the processes that have some."""
    each = mesh.size // world.size
    processes = tuple(sorted({rank // each for rank in group}))
    numbers = {process: number for number, process in enumerate(processes)}
    owners = tuple([numbers[rank // each] for rank in group])
    return Spread(len(group), len(processes), numbers[world.rank], owners), processes
