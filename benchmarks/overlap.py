"""Gradients that are summed while others are computed, against sums that each rank waits for: two processes.

A step of a network of 8 layers, data parallel, each process with one thread. A network between machines is
stood in for by pauses: before each exchange, so long as its bytes and a message would take. Needs mpi4py and
mpiexec.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

import mind_mlir
from benchmarks.command import child_environment, is_child, parser, show
from benchmarks.report import Report
from mind_mlir import Mesh
from mind_mlir import numpy as mnp
from mind_mlir.collectives.world import current_world

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

LAYERS = 8
#: Networks: bytes a second, and seconds that a message takes by itself.
NETWORKS = {"this machine": (0.0, 0.0), "10 Gbit/s": (1.25e9, 30e-6), "1 Gbit/s": (0.125e9, 100e-6)}
_NOTES = [
    "times: best of alternating rounds; ratio: median of apart / overlap, above 1 overlap is faster",
    "networks are pauses before each exchange, in which the core is free; this machine has its memory alone",
]


def loss(layers: Any, x: Any, y: Any) -> Any:
    """Return how far the network is from ``y``."""
    for weight, bias in layers:
        x = mnp.tanh(x @ weight + bias)
    return mnp.mean(mnp.square(x - y))


def step(layers: Any, x: Any, y: Any) -> Any:
    """Return the parameters after a step."""
    _, slopes = mind_mlir.value_and_grad(loss)(layers, x, y)
    return [
        [p - 0.1 * mind_mlir.all_reduce(slope, "data", kind="mean") for p, slope in zip(*pair, strict=True)]
        for pair in zip(layers, slopes, strict=True)
    ]


def steps(width: int, rows: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return a step of a network with overlap, and one without."""
    random = np.random.default_rng(0)
    layers = [
        [
            random.standard_normal((width, width), np.float32) / np.float32(width**0.5),
            np.zeros(width, np.float32),
        ]
        for _ in range(LAYERS)
    ]
    x, y = (random.standard_normal((2 * rows, width), np.float32) for _ in range(2))
    mapped = [
        mind_mlir.shard_map(
            step, Mesh("data=2"), ("", "data", "data"), "", threads=1, disabled_passes=disabled
        )
        for disabled in ((), ("overlap",))
    ]
    first, second = (partial(each, layers, x, y) for each in mapped)
    for one, other in zip(first(), second(), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    return first, second


def slower(network: str) -> Any:
    """Return what makes exchanges take as long as over a network, while it is entered."""
    from mind_mlir.collectives import mpi  # noqa: PLC0415 -- needs mpi4py

    rate, latency = NETWORKS[network]
    real = mpi._Channel._swap

    def swap(channel: Any, sends: Any, receives: Any, met: str) -> None:
        if rate:
            time.sleep(latency + sum(array.nbytes for each in sends for array in each) / rate)
        real(channel, sends, receives, met)

    return mock.patch.object(mpi._Channel, "_swap", swap)


def measure(widths: Sequence[int], rows: int, rounds: int) -> Report:
    """Compare both in all processes at the same time."""
    table: list[Row] = []
    for width in widths:
        both = steps(width, rows)
        for network in NETWORKS:
            times: tuple[list[float], list[float]] = ([], [])
            with slower(network):
                for turn in range(rounds):
                    for index in (0, 1) if turn % 2 == 0 else (1, 0):
                        current_world().barrier("the next round")
                        begun = time.perf_counter()
                        both[index]()
                        times[index].append(time.perf_counter() - begun)
            ratio = statistics.median(apart / over for over, apart in zip(*times, strict=True))
            table.append(
                {
                    "width": width,
                    "network": network,
                    "apart ms": min(times[1]) * 1e3,
                    "overlap ms": min(times[0]) * 1e3,
                    "ratio": ratio,
                }
            )
    return Report(f"{LAYERS} layers, {rows} rows a process, two processes of one thread", table, _NOTES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("overlap", __doc__)
    options_parser.add_argument("--widths", type=int, nargs="+", default=[256, 1024], metavar="N")
    options_parser.add_argument("--rows", type=int, default=128, help="a process")
    options_parser.add_argument("--rounds", type=int, default=15)
    options = options_parser.parse_args(arguments)
    if is_child():
        report = measure(options.widths, options.rows, options.rounds)
        return show(report, as_json=options.json) if current_world().rank == 0 else 0
    mpiexec = shutil.which("mpiexec") or str(Path(sys.executable).with_name("mpiexec"))
    given = sys.argv[1:] if arguments is None else arguments
    command = [mpiexec, "-n", "2", sys.executable, "-m", "benchmarks.overlap", *given]
    environment = child_environment(dict(os.environ))
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - our own module


if __name__ == "__main__":
    sys.exit(main())
