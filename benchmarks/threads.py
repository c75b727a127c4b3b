"""What threads cost and gain: meeting, memory, arithmetic; and the constants that loops are split by.

All but the compiled programs are loops in native code, which show what the machine can do.
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.report import Report
from mind_mlir.lowering.emission import constants
from mind_mlir.profiling.native_loops import STEP, NativeLoops
from mind_mlir.runtime.threads import MOST_THREADS, SPIN_NS
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Cell, Row

ROUNDS = 7
#: Of loops over memory.
CHUNKS = 64
#: Empty loops that are timed together, and times that workers are sent to sleep.
REPEATS, NAPS = 10_000, 30
MEGABYTE = 1 << 20
#: Steps of a chunk of arithmetic.
STEPS = 5_000

_PROGRAMS = {
    "negation": '%0 = Input {{name="x"}} : {x}\n%1 = Neg (%0) : {x}\noutputs: %1\n',
    "sum of all": '%0 = Input {{name="x"}} : {x}\n%1 = Sum (%0) {{axes=[0], keepdims=false}}'
    " : tensor<f32[]>\noutputs: %1\n",
}
#: How often each goes over its input or output.
_PASSES = {"negation": 2, "sum of all": 1, "read": 1, "copy": 2, "stream": 2}


class Machine:
    """Measures with one thread and with several, turn and turn about."""

    def __init__(self, threads: int, megabytes: int) -> None:
        self._counts = (1, threads)
        self._columns = ("1 thread", f"{threads} threads")
        self._loops = NativeLoops()
        self._bytes = megabytes * MEGABYTE
        alignment = self._loops.vector_bytes
        self._memory = np.ones(2 * self._bytes + alignment, np.uint8)
        self._source = -(-self._memory.ctypes.data // alignment) * alignment

    def meeting(self) -> list[Row]:
        """Return what loops cost in which there is nothing to do, and how long two threads take to meet."""
        empty = [
            self._row(
                f"empty loop of {chunks} chunks, workers spinning",
                "us",
                self._alternate(partial(self._loops.run, "nothing", [], chunks, REPEATS)),
                1e6 / REPEATS,
            )
            for chunks in (2, 16)
        ]
        mind_mlir.set_num_threads(self._counts[1])
        asleep = statistics.median(self._after_sleep("nothing") for _ in range(NAPS))
        met = min(_seconds(lambda: self._loops.run("meet", [0], 2, REPEATS)) for _ in range(ROUNDS)) / REPEATS
        met_asleep = statistics.median(self._after_sleep("meet") for _ in range(NAPS))
        return [
            *empty,
            self._row("empty loop of 2 chunks, workers asleep", "us", ("-", asleep), 1e6),
            self._row("two threads meet, workers spinning", "us", ("-", met), 1e6),
            self._row("two threads meet, workers asleep", "us", ("-", met_asleep), 1e6),
        ]

    def memory(self) -> list[Row]:
        """Return how fast memory is read, copied, and copied past the cache."""
        steps = self._bytes // CHUNKS // (self._loops.vector_bytes * STEP)
        data = [self._source, self._source + self._bytes, steps]
        return [
            self._row(
                {"stream": "copy past the cache"}.get(name, name),
                "GB/s",
                _rates(
                    _PASSES[name] * self._bytes, self._alternate(partial(self._loops.run, name, data, CHUNKS))
                ),
            )
            for name in ("read", "copy", "stream")
        ]

    def arithmetic(self) -> Row:
        """Return what an addition or multiplication of vectors takes, where nothing waits for memory."""
        times = self._alternate(partial(self._loops.run, "compute", [0, 0, STEPS], CHUNKS))
        return self._row("vector operation", "ns", times, 1e9 / (2 * STEP * STEPS * CHUNKS))

    def programs(self) -> list[Row]:
        """Return how fast compiled programs go through memory."""
        x = np.ones(self._bytes // 4, np.float32)
        found = []
        for name, text in _PROGRAMS.items():
            program = mind_mlir.compile(mind_mlir.parse(text.format(x=f"tensor<f32[{x.size}]>")))
            rates = _rates(_PASSES[name] * self._bytes, self._alternate(partial(program, x)))
            found.append(self._row(f"compiled {name}", "GB/s", rates))
        return found

    def _alternate(self, action: Callable[[], object]) -> Sequence[float]:
        """Return the least seconds that ``action`` takes with each number of threads."""
        times: dict[int, list[float]] = {count: [] for count in self._counts}
        for turn in range(ROUNDS + 1):
            for count in self._counts:
                mind_mlir.set_num_threads(count)
                taken = _seconds(action)
                if turn:  # after the first one, everything is warm
                    times[count].append(taken)
        return [min(times[count]) for count in self._counts]

    def _after_sleep(self, body: str) -> float:
        time.sleep(5 * SPIN_NS / 1e9)
        return _seconds(lambda: self._loops.run(body, [0], 2))

    def _row(self, what: str, unit: str, cells: Sequence[Cell], scale: float = 1.0) -> Row:
        shown = [cell if isinstance(cell, str) else cell * scale for cell in cells]
        return {"what": what, "unit": unit, **dict(zip(self._columns, shown, strict=True))}


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _rates(size: int, times: Sequence[float]) -> list[float]:
    """Return gigabytes a second."""
    return [size / seconds / 1e9 for seconds in times]


def measure(threads: int, megabytes: int) -> Report:
    """Measure with 1 and with ``threads`` threads, on so many megabytes to read and as many to write."""
    before = mind_mlir.get_num_threads()
    machine = Machine(threads, megabytes)
    try:
        rows = [*machine.meeting(), *machine.memory(), machine.arithmetic(), *machine.programs()]
    finally:
        mind_mlir.set_num_threads(before)
    notes = [
        "lowering/emission/constants.py:",
        f"  WORTHWHILE_NS {constants.WORTHWHILE_NS} (compare two threads that meet),",
        f"  WAKING_NS {constants.WAKING_NS},",
        f"  CHUNK_NS {constants.CHUNK_NS} (compare the empty loop of 16),",
        "target/rates.py:",
        f"  byte_ns {REFERENCE.byte_ns} (1 / GB/s), vector_ns {REFERENCE.vector_ns};",
        f"runtime/threads.py: SPIN_NS {SPIN_NS}, how long idle workers spin",
    ]
    return Report(f"threads, {megabytes} MB", rows, notes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("threads", __doc__)
    options_parser.add_argument(
        "--threads", type=int, default=max(2, mind_mlir.get_num_threads()), metavar="N"
    )
    options_parser.add_argument("--megabytes", type=int, default=64, metavar="N")
    options = options_parser.parse_args(arguments)
    if not 2 <= options.threads <= MOST_THREADS:
        options_parser.error(f"--threads must be between 2 and {MOST_THREADS}")
    if options.megabytes < 1:
        options_parser.error("there must be some memory")
    return show(measure(options.threads, options.megabytes), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
