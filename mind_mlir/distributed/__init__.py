"""The processes that run a program together.

    mpiexec -n 2 python train.py

Each process runs as many ranks of a `mind_mlir.Mesh` as there are for each. A process that nobody else was
started with is all there is.
"""

from __future__ import annotations

from mind_mlir.collectives.world import current_world
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.distributed.checkpoints import Checkpoint, latest_step, load_checkpoint, save_checkpoint
from mind_mlir.tracing.places import here

__all__ = (
    "Checkpoint",
    "barrier",
    "bytes_sent",
    "latest_step",
    "load_checkpoint",
    "process_count",
    "process_index",
    "save_checkpoint",
)


@public
def process_index() -> int:
    """Return the number of this process, from 0 on."""
    return current_world().rank


@public
def process_count() -> int:
    """Return how many processes there are."""
    return current_world().size


@public
def barrier() -> None:
    """Wait until all processes have come here.

    Raises:
        ExecutionError: E6203, one never will; E6204, one has ended.
    """
    current_world().barrier(here("a barrier"))


@public
def bytes_sent() -> int:
    """Return how many bytes this process has sent to others in collectives."""
    return current_world().sent
