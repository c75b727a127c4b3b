"""A program of which one process fails in the way that its argument says; `test_failures.py` runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mind_mlir
from mind_mlir import Mesh, distributed, shard_map

ME = distributed.process_index()
X = np.ones((4, 3000), np.float32)


def reduced(mesh: Mesh, axis: str, kind: str = "sum") -> Any:
    """Return a function that reduces along an axis of a mesh."""
    return shard_map(lambda x: mind_mlir.all_reduce(x, axis, kind=kind), mesh, axis, "")


MESH = Mesh({"data": distributed.process_count()})
ALL, HIGHEST = reduced(MESH, "data"), reduced(MESH, "data", "max")


def raises() -> None:
    """Raise what nobody catches."""
    raise ValueError("what one process raises")


def catches() -> None:
    """Go on elsewhere after an error that others do not have."""
    try:
        HIGHEST(X)
    except mind_mlir.ExecutionError:
        distributed.barrier()


def stops() -> None:
    """Stand still for 3 seconds."""
    subprocess.Popen(["/bin/sh", "-c", f"sleep 3; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)


def waits_in_a_ring() -> None:
    """Wait, as one of four, for the next one in another group than that one does."""
    reduced(Mesh("a=2,b=2"), "ab"[ME in (1, 2)])(X)


def goes_on() -> None:
    """Reduce for ever."""
    while True:
        ALL(X)


#: What the last process does, and what the first.
FAILURES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "raise": (raises, list),
    "exit": (lambda: sys.exit(3), list),
    "early": (lambda: sys.exit(0), distributed.barrier),
    "gone": (lambda: os._exit(4), list),
    "killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), list),
    "kind": (lambda: HIGHEST(X), list),
    "caught": (catches, list),
    "order": (distributed.barrier, list),
    "groups": (waits_in_a_ring, waits_in_a_ring),
    "stopped": (stops, list),
    "interrupted": (goes_on, goes_on),
}

ALL(X)
sys.stdout.write(f"now {time.time()}\n")
sys.stdout.flush()
FAILURES[sys.argv[1]][0 if ME else 1]()
ALL(X)
sys.stdout.write("went on\n")
