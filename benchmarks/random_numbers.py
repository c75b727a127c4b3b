"""How fast random numbers are, beside numpy's own generator on one core."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.measure import ROUND_SECONDS, compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

_MILLION = 1 << 20


def measure(millions: float, seconds: float = ROUND_SECONDS) -> Report:
    """Time uniform and normal numbers of f32 and f64, so many millions (of 2^20) of each."""
    count = max(1, int(millions * _MILLION))
    rows = [
        _row(operation, dtype, count, seconds)
        for operation in ("rng_uniform", "rng_normal")
        for dtype in (np.dtype(np.float32), np.dtype(np.float64))
    ]
    return Report(
        f"{count} random numbers",
        rows,
        [
            f"ours on up to {mind_mlir.get_num_threads()} threads, numpy's on one: it has no more",
            "both write over memory that has been used before",
            "times are the best of alternating rounds; ratio is the median of numpy / ours",
        ],
    )


def _row(operation: str, dtype: np.dtype[Any], count: int, seconds: float) -> Row:
    name = {"float32": "f32", "float64": "f64"}[dtype.name]
    type_ = f"tensor<{name}, {count}>"
    drawn = f"%r = {operation} shape[{count}] dtype[{name}] -> {type_}"
    program = mind_mlir.parse(f"func @main() -> {type_} {{\n  {drawn}\n  return %r\n}}\n")
    ours, out = mind_mlir.compile(program), np.empty(count, dtype)
    generator: Any = np.random.default_rng(7)
    theirs = generator.random if operation == "rng_uniform" else generator.standard_normal
    times = compare(lambda: ours(seed=7, out=out), lambda: theirs(out=out, dtype=dtype), seconds=seconds)
    return {
        "numbers": f"{operation.removeprefix('rng_')} {name}",
        "ours GB/s": out.nbytes / times.ours / 1e9,
        "numpy GB/s": out.nbytes / times.theirs / 1e9,
        "ratio": times.ratio,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("random_numbers", __doc__)
    options_parser.add_argument("--millions", type=float, default=16, metavar="N")
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    if options.millions <= 0:
        options_parser.error("there is at least one number")
    return show(measure(options.millions, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
