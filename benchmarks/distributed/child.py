"""What every process does that is measured: it works when its parent says so, and says how long that took."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.attributes import Array

TASKS = ("gpt2", "product", "gathered product")
RATE = 3e-4
_WARM = 1


def arguments() -> argparse.Namespace:
    """Return what the parent asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--folder", type=Path, help="where each process says which one it is")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--port", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--length", type=int)
    parser.add_argument("--size", type=int)
    return parser.parse_args()


def tokens(options: argparse.Namespace) -> Array:
    """Return the tokens of a step, i32[batch, length + 1]."""
    shape = (options.batch, options.length + 1)
    return np.random.default_rng(1).integers(0, 50257, shape).astype(np.int32)


def factors(options: argparse.Namespace) -> list[Array]:
    """Return the two factors of a product, f32[size, size]."""
    random = np.random.default_rng(1)
    return [random.standard_normal((options.size, options.size), np.float32) for _ in range(2)]


def serve(
    options: argparse.Namespace, rank: int, barrier: Callable[[], object], run: Callable[[], object]
) -> None:
    """Run as often as the parent says; each has a processor of its own."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
    for _ in range(_WARM):
        run()
    barrier()
    (options.folder / f"{rank}.new").write_text(str(os.getpid()))
    (options.folder / f"{rank}.new").rename(options.folder / str(rank))
    while rank or sys.stdin.readline():
        barrier()
        start = time.perf_counter()
        run()
        barrier()
        if not rank:
            sys.stdout.write(f"took {time.perf_counter() - start}\n")
            sys.stdout.flush()
