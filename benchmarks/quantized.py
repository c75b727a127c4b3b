"""How fast products with weights of few bits are, beside those of f32 and bf16 and the speed of memory."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from benchmarks.command import parser, show
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

#: Results and summed elements of the products of models.
SHAPES = ((4096, 4096), (4096, 11008), (5632, 2048), (32000, 2048))
#: Bytes of weights that are read in turn, more than a cache holds.
_MEGABYTES = 160
_FORMATS = ("q8_0", "q4_0")


def measure(
    shapes: Sequence[tuple[int, int]], rows: int, threads: int, megabytes: float, rounds: int
) -> Report:
    """Time products of so many rows, each in turn with as many weights as make ``megabytes``."""
    rng = np.random.default_rng(7)
    speed = _memory(threads, megabytes, rounds)
    found = []
    for results, depth in shapes:
        x = rng.standard_normal((rows, depth)).astype(np.float32)
        w = rng.standard_normal((results, depth)).astype(np.float32)
        for name, weights, function in _candidates(w, threads):
            found.append(_row(name, (x, weights), function, speed, megabytes, rounds))
    return Report(
        f"products of {rows} rows, {threads} threads",
        found,
        [
            f"memory is read at {speed:.1f} GB/s by a sum",
            "times are the best of all rounds, over weights that no cache holds all of",
        ],
    )


def _candidates(w: Any, threads: int) -> list[tuple[str, tuple[Any, ...], Callable[..., Any]]]:
    """Return products by name: their weights, and what multiplies them."""
    plain = mind_mlir.jit(lambda x, w: x @ w.T, threads=threads)
    short = mind_mlir.jit(lambda x, w: x.astype("bfloat16") @ w.T, threads=threads)
    found: list[tuple[str, tuple[Any, ...], Callable[..., Any]]] = [
        ("f32", (w,), plain),
        ("bf16", (w.astype(ml_dtypes.bfloat16),), short),
    ]
    for name in _FORMATS:
        weights = mind_mlir.encode_weights(w, format=name)
        for activations in ("float", "int8"):
            function = mind_mlir.jit(_quantized(name, activations), threads=threads)
            found.append((f"{name}, {activations}", weights, function))
    return found


def _quantized(name: Any, activations: Any) -> Callable[..., Any]:
    return lambda x, *of: mnp.quantized_matmul(x, *of, format=name, activations=activations)


def _row(
    name: str,
    operands: tuple[Any, tuple[Any, ...]],
    function: Callable[..., Any],
    speed: float,
    megabytes: float,
    rounds: int,
) -> Row:
    x, weights = operands
    size = sum(each.nbytes for each in weights)
    copies = [tuple(each.copy() for each in weights) for _ in range(max(1, round(megabytes * 1e6 / size)))]
    seconds = _best(lambda number: function(x, *copies[number]), len(copies), rounds)
    results = weights[0].shape[0]
    return {
        "results x depth": f"{results} x {x.shape[1]}",
        "weights": name,
        "ms": seconds * 1e3,
        "GB/s": size / seconds / 1e9,
        "of memory": size / seconds / 1e9 / speed,
        "GFLOP/s": 2 * x.shape[0] * x.shape[1] * results / seconds / 1e9,
    }


def _best(call: Callable[[int], object], count: int, rounds: int) -> float:
    """Return the least mean seconds of a call in any round over ``count`` of them."""
    call(0)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for number in range(count):
            call(number)
        best = min(best, (time.perf_counter() - start) / count)
    return best


def _memory(threads: int, megabytes: float, rounds: int) -> float:
    """Return how many gigabytes a second a sum reads."""
    array = np.ones(max(1, int(megabytes * 1e6 / 4)), np.float32)
    total = mind_mlir.jit(lambda x: x.sum(), threads=threads)
    return array.nbytes / _best(lambda _: total(array), 1, rounds) / 1e9


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("quantized", __doc__)
    options_parser.add_argument("--shapes", nargs="+", default=[f"{n}x{k}" for n, k in SHAPES], metavar="NxK")
    options_parser.add_argument("--rows", type=int, default=1)
    options_parser.add_argument("--threads", type=int, default=1)
    options_parser.add_argument("--megabytes", type=float, default=_MEGABYTES)
    options_parser.add_argument("--rounds", type=int, default=8)
    options = options_parser.parse_args(arguments)
    shapes = [tuple(map(int, each.split("x"))) for each in options.shapes]
    report = measure(
        [(n, k) for n, k in shapes], options.rows, options.threads, options.megabytes, options.rounds
    )
    return show(report, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
