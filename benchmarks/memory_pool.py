"""What it saves that outputs come from a pool: large ones written to used memory, and to fresh memory."""

from __future__ import annotations

import resource
import sys
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.measure import ROUND_SECONDS, compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

_MB = 1 << 20


def measure(megabytes: Sequence[float], seconds: float = ROUND_SECONDS) -> Report:
    """Time ``x + x`` with outputs of so many megabytes, from the pool and from fresh memory."""
    return Report(
        "outputs from the pool, and in fresh memory of numpy",
        [_row(size, seconds) for size in megabytes],
        [
            "times are the best of alternating rounds; ratio is the median of fresh / pool",
            "fresh: the caller gives a new array of numpy.empty for each call; up to 32 MB",
            "the C library, too, uses the memory of the last one again, as long as there is one at a time",
        ],
    )


def _row(megabytes: float, seconds: float) -> Row:
    count = int(megabytes * _MB) // 4
    type_ = f"tensor<f32[{count}]>"
    program = f'%x = Input {{name="x"}} : {type_}\n%y = Add (%x, %x) : {type_}\noutputs: %y\n'
    function = mind_mlir.compile(mind_mlir.parse(program))
    x = np.arange(count, dtype=np.float32)
    np.testing.assert_array_equal(function(x)[0], x + x)
    fresh = partial(_in_fresh_memory, function, x)
    times = compare(lambda: function(x), fresh, seconds=seconds)
    return {
        "MB": megabytes,
        "pool us": times.ours * 1e6,
        "faults a call": _faults(lambda: function(x)),
        "fresh us": times.theirs * 1e6,
        "faults a call, fresh": _faults(fresh),
        "ratio": times.ratio,
    }


def _in_fresh_memory(function: mind_mlir.Executable, x: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    function(x, out=np.empty_like(x))


def _faults(call: Callable[[], object], calls: int = 10) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        call()
    return round((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("memory_pool", __doc__)
    options_parser.add_argument("--megabytes", type=float, nargs="+", default=[16, 64, 256], metavar="N")
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    if min(options.megabytes) <= 0:
        options_parser.error("an output has at least one element")
    return show(measure(options.megabytes, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
