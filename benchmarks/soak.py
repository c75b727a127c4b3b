"""Python threads call a few executables at once, for a while: right answers, and memory that does not grow.

python -m benchmarks.soak [--seconds 60] [--callers 16]
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.peers.programs import program
from benchmarks.peers.sampling import resident_bytes
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak; the status is 1 where a call went wrong."""
    options_parser = parser("soak", __doc__)
    options_parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    options_parser.add_argument("--callers", type=int, default=16, help="how many threads call")
    options = options_parser.parse_args(arguments)
    found = soak(options.seconds, options.callers)
    row: Row = {"calls": found.calls, "wrong": found.wrong, "growth MB": found.growth / 1e6}
    title = f"{options.callers} threads calling {len(NAMES)} executables for {options.seconds:.0f} s"
    show(Report(title, [row], ["growth is that of resident memory in the second half"]), as_json=options.json)
    return int(found.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
