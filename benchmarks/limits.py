"""How far workloads are from what the machine can do: multiply-adds a second, and bytes of memory a second.

Limits are measured by loops in native code, in turn with the workloads, and with as many threads: products
against multiply-adds in registers, what reduces against the faster way to read memory, all else against the
faster way to copy it. What computes much for each byte has its own limit: with data in the second-level
cache it takes as long as it takes to compute.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.peers.programs import program
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Report
from mind_mlir.profiling.native_loops import STEP, NativeLoops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.peers.workloads import Workload
    from benchmarks.report import Row

USUAL = (
    *("mm512", "mm1024", "mm2048", "mm_vector", "ew_chain", "softmax", "layernorm"),
    *("sum_axis0", "sum_axis1", "mean_all", "transpose"),
)
ROUNDS = 9
#: Workloads along rows, and the bytes of so few rows of them that they stay in the second-level cache.
_ROWS, _CACHED = ("ew_chain", "softmax", "layernorm"), 1 << 18
_ROUND_SECONDS = 0.03
_CHUNKS, _STEPS = 64, 20_000


class Limits:
    """What native loops reach: each method returns a rate, of 1e9 operations or bytes a second."""

    def __init__(self, megabytes: int) -> None:
        self._loops = NativeLoops()
        self._bytes = megabytes << 20
        alignment = self._loops.vector_bytes
        self._memory = np.ones(2 * self._bytes + alignment, np.uint8)
        self._source = -(-self._memory.ctypes.data // alignment) * alignment

    def compute(self) -> float:
        """Multiply and add in registers, f32."""
        taken = _seconds(partial(self._loops.run, "fma", [0, 0, _STEPS], _CHUNKS))
        return 2 * self._loops.vector_bytes / 4 * STEP * _STEPS * _CHUNKS / taken / 1e9

    def read(self) -> float:
        """Read memory, with or without asking for what is ahead."""
        return max(self._rate("read", 1), self._rate("ask", 1))

    def copy(self) -> float:
        """Copy memory, through the caches or past them."""
        return max(self._rate("copy", 2), self._rate("stream", 2))

    def _rate(self, loop: str, passes: int) -> float:
        steps = self._bytes // _CHUNKS // (self._loops.vector_bytes * STEP)
        data = [self._source, self._source + self._bytes, steps]
        return passes * self._bytes / _seconds(partial(self._loops.run, loop, data, _CHUNKS)) / 1e9


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _limit(workload: Workload) -> tuple[str, float]:
    """Return which limit ``workload`` has, and how much of it a call does: operations, or bytes."""
    inputs = workload.inputs()
    moved = sum(array.nbytes for array in inputs.values())
    if workload.kind == "product" and inputs["b"].shape[-1] > 1:
        *outer, rows, depth = inputs["a"].shape
        return "compute", 2.0 * math.prod(outer) * rows * depth * inputs["b"].shape[-1]
    results = sum(array.size for array in workload.expected()) * next(iter(inputs.values())).itemsize
    return ("read" if results < moved // 16 else "copy"), moved + results


def measure(workloads: Sequence[str], threads: Sequence[int], megabytes: int, rounds: int) -> Report:
    """Return for each workload and number of threads its rate, that of its limit, and the ratio of both."""
    before = mind_mlir.get_num_threads()
    rows: list[Row] = []
    limits = Limits(megabytes)
    try:
        for name in workloads:
            inputs = list(WORKLOADS[name].inputs().values())
            compiled = mind_mlir.compile(program(WORKLOADS[name]))
            limit, work = _limit(WORKLOADS[name])
            row: Row = {"workload": name, "limit": limit, "cached (1)": ""}
            if name in _ROWS:
                mind_mlir.set_num_threads(1)
                row["cached (1)"] = _cached_rate(WORKLOADS[name], work, rounds)
            for count in threads:
                mind_mlir.set_num_threads(count)
                rates = _rates(partial(compiled, *inputs), work, getattr(limits, limit), rounds)
                ours, best = (max(each) for each in rates)
                share = statistics.median(one / other for one, other in zip(*rates, strict=True))
                row |= {f"rate ({count})": ours, f"best ({count})": best, f"share ({count})": share}
            rows.append(row)
    finally:
        mind_mlir.set_num_threads(before)
    notes = [
        "rates: GFLOP/s of products, GB/s of all else, the best of the rounds; in brackets the threads",
        "share: median of the rounds' ratios; memory that fits the last cache can be faster than its limit",
        "cached: the rate of a few of the rows, which stay in the second-level cache: that of computing",
    ]
    return Report("workloads and their limits", rows, notes)


def _cached_rate(workload: Workload, work: float, rounds: int) -> float:
    """Return the rate of some rows of ``workload``, which does ``work`` with all: the best of the rounds."""
    inputs = workload.inputs()
    rows = inputs["x"]
    inputs["x"] = rows[: max(1, _CACHED // rows[0].nbytes)].copy()
    compiled = mind_mlir.compile(program(workload, inputs))
    call = partial(compiled, *inputs.values())
    calls = max(1, int(_ROUND_SECONDS / max(_seconds(call), 1e-6)))
    taken = min(_seconds(call) for _ in range(calls * rounds))
    return work * len(inputs["x"]) / len(rows) / taken / 1e9


def _rates(
    call: Callable[[], object], work: float, limit: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """Return the rates of ``call`` and of ``limit``, one a round, in turn."""
    call()
    calls = max(1, int(_ROUND_SECONDS / max(_seconds(call), 1e-6)))
    ours, best = [], []
    for _ in range(rounds):
        best.append(limit())
        ours.append(max(work / _seconds(call) / 1e9 for _ in range(calls)))
    return ours, best


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("limits", __doc__)
    options_parser.add_argument("--only", default=",".join(USUAL), metavar="A,B", help="workloads")
    options_parser.add_argument("--threads", default="1,2", metavar="1,2")
    options_parser.add_argument("--megabytes", type=int, default=64, help="to read, and as many to write")
    options_parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = options_parser.parse_args(arguments)
    threads = [int(each) for each in options.threads.split(",")]
    report = measure(options.only.split(","), threads, options.megabytes, options.rounds)
    return show(report, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
