"""Nothing grows: neither with calls, by Python threads that share a few executables, nor with compilations.

python -m benchmarks.soak [--seconds 60] [--callers 16]
python -m benchmarks.soak --compiles 10000
"""

from __future__ import annotations

import itertools
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.peers.programs import program
from benchmarks.peers.sampling import resident_bytes
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Report
from mind_mlir import Builder, DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row
    from mind_mlir import Module
    from mind_mlir.ir.value import Value

#: What is called: small and large, of one nest and of many, with and without run-time checks.
NAMES = (
    "scalar_call",
    "mm256",
    "bmm",
    "softmax",
    "mean_all",
    "attention",
    "mlp_train_small",
    "mlp_fwd",
)


#: The share of compilations that are warm-up, and that of each place where they are looked at.
_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the calls.

    Attributes:
        calls: How many there were.
        wrong: How many gave other bits than the first, or raised an exception.
        growth: By how many bytes the resident memory grew over the second half of the time.
    """

    calls: int
    wrong: int
    growth: int


def soak(seconds: float, callers: int = 16, names: Sequence[str] = NAMES) -> Outcome:
    """Let ``callers`` threads call the executables of ``names`` for so long."""
    calls = [_checked(name) for name in names]
    counts, wrong = [0] * callers, [0] * callers
    begin = time.monotonic()

    def work(number: int) -> None:
        while time.monotonic() - begin < seconds:
            wrong[number] += not calls[(number + counts[number]) % len(calls)]()
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 2)
    half = resident_bytes()
    for thread in threads:
        thread.join()
    return Outcome(sum(counts), sum(wrong), resident_bytes() - half)


def _checked(name: str) -> Callable[[], bool]:
    """Return what calls a workload and says whether its results are those of the first call."""
    workload = WORKLOADS[name]
    executable, inputs = mind_mlir.compile(program(workload)), workload.inputs()
    expected = [output.tobytes() for output in executable(**inputs)]

    def call() -> bool:
        try:
            return [output.tobytes() for output in executable(**inputs)] == expected
        except mind_mlir.MindError:
            return False

    return call


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some compilations in a row.

    Attributes:
        first: The number of the first one.
        seconds: Median processor time of one, with a call of what it gives.
        resident: Resident memory after the last.
    """

    first: int
    seconds: float
    resident: int


def soak_compiler(count: int) -> list[Stretch]:
    """Compile ``count`` small programs, no two alike, and call each; return their start, middle and end."""
    length = max(1, round(count * _SHARE))
    stretches = []
    number = itertools.count()
    for first in (length, (count - length) // 2, count - length):
        while (current := next(number)) < first:
            _compile(current)
        times = [_compile(current), *(_compile(next(number)) for _ in range(length - 1))]
        stretches.append(Stretch(first, statistics.median(times), resident_bytes()))
    return stretches


def _compile(number: int) -> float:
    """Compile and call a program; return the processor time that it took."""
    module = small_program(number)
    x = np.ones((8, 8), np.float32)
    start = time.process_time()
    mind_mlir.compile(module)(x)
    return time.process_time() - start


def small_program(number: int) -> Module:
    """Return one of several kinds of programs, with a constant of its own."""
    b = Builder()
    x = b.input("x", TensorType(DType.F32, (8, 8)))
    scaled = b.emit("Mul", x, b.constant(1.0 + number, DType.F32))
    last: Sequence[Callable[[], Value]] = (
        lambda: scaled,
        lambda: b.emit("MatMul", scaled, x),
        lambda: b.emit("Sum", b.emit("Exp", scaled), axes=(1,), keepdims=True),
        lambda: b.emit("Transpose", scaled, permutation=(1, 0)),
    )
    return b.build([last[number % len(last)]()])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak; the status is 1 where a call went wrong."""
    options_parser = parser("soak", __doc__)
    options_parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    options_parser.add_argument("--callers", type=int, default=16, help="how many threads call")
    options_parser.add_argument("--compiles", type=int, help="compile so many programs instead")
    options = options_parser.parse_args(arguments)
    if options.compiles:
        rows: list[Row] = [
            {"from": each.first, "ms": each.seconds * 1e3, "resident MB": each.resident / 1e6}
            for each in soak_compiler(options.compiles)
        ]
        title = f"compiling {options.compiles} small programs"
        return show(Report(title, rows, ["ms of processor time, the median"]), as_json=options.json)
    found = soak(options.seconds, options.callers)
    row: Row = {"calls": found.calls, "wrong": found.wrong, "growth MB": found.growth / 1e6}
    title = f"{options.callers} threads calling {len(NAMES)} executables for {options.seconds:.0f} s"
    show(Report(title, [row], ["growth is that of resident memory in the second half"]), as_json=options.json)
    return int(found.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
