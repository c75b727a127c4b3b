"""A square matrix product in f32 on one thread, against numpy in the same run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import is_child, numpy_kernels, parser, run_child, show
from benchmarks.measure import READING, ROUND_SECONDS, compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

_PROGRAM = """\
%0 = Input {{name="a"}} : tensor<f32[{n}, {n}]>
%1 = Input {{name="b"}} : tensor<f32[{n}, {n}]>
%2 = MatMul (%0, %1) : tensor<f32[{n}, {n}]>
outputs: %2
"""

_NOTES = [
    READING,
    "compile ms: parse to native code, after the first compilation has loaded MLIR",
]


def measure(sizes: Sequence[int], seconds: float = ROUND_SECONDS) -> Report:
    """Compare an ``n x n x n`` product with ``numpy.matmul`` for every size, in this process."""
    mind_mlir.compile(mind_mlir.parse(_PROGRAM.format(n=1)))
    notes = [*_NOTES, f"numpy {np.__version__}, kernels for {numpy_kernels()}"]
    return Report("f32 matrix product, one thread", [_row(size, seconds) for size in sizes], notes)


def _row(n: int, seconds: float) -> Row:
    start = time.perf_counter()
    function = mind_mlir.compile(mind_mlir.parse(_PROGRAM.format(n=n)))
    compile_seconds = time.perf_counter() - start
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    (ours,) = function(a, b)
    np.testing.assert_allclose(ours, a @ b, rtol=1e-4, atol=1e-5 * n)
    result = compare(lambda: function(a, b), lambda: np.matmul(a, b), seconds=seconds)
    work = 2 * n**3 / 1e9
    return {
        "size": f"{n}x{n}x{n}",
        "ours ms": result.ours * 1e3,
        "numpy ms": result.theirs * 1e3,
        "ours GFLOP/s": work / result.ours,
        "numpy GFLOP/s": work / result.theirs,
        "ratio": result.ratio,
        "compile ms": compile_seconds * 1e3,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("matmul", __doc__)
    options_parser.add_argument("--sizes", type=int, nargs="+", default=[512], metavar="N")
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    if not is_child():
        return run_child("matmul", arguments)
    return show(measure(options.sizes, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
