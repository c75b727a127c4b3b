"""What calls on Dask's workers cost, beside those of a numpy function that does the same work.

A local cluster has two worker processes, which have no cache to find code in. Functions are sent to them one
call after the other, each waits for its result, and by turns with the numpy function: so a call is Dask's
own round trip and what the function adds to it. ``map`` is the same for many calls that are sent at once.
Needs ``pip install dask distributed``.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from benchmarks.command import is_child, parser, run_child, show
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

_WORKERS = 2
#: How many batches all calls are sent in, where many are sent at once.
_ROUNDS = 20
_SHAPE = (64, 64)


def with_numpy(x: Any) -> Any:
    """Return the row sums of an activation."""
    return np.tanh(x * np.float32(0.5)).sum(axis=1)


@mind_mlir.jit
def compiled(x: Any) -> Any:
    """Return the same, compiled."""
    return mnp.tanh(x * np.float32(0.5)).sum(axis=1)


def state() -> tuple[int, bool]:
    """Return how often a worker has compiled, and whether it has loaded MLIR."""
    return mind_mlir.compilation_count(), "torch_mlir" in sys.modules


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the report."""
    options = parser("workers", __doc__)
    options.add_argument("--calls", type=int, default=1000, help="how often each function is called")
    given = options.parse_args(arguments)
    if not is_child():
        return run_child("workers", arguments)
    return show(measure(given.calls), as_json=given.json)


def measure(calls: int) -> Report:
    """Measure in a cluster of its own."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 -- which no other benchmark needs

    x = np.linspace(-1, 1, np.prod(_SHAPE), dtype=np.float32).reshape(_SHAPE)
    compiled(x)
    executable = compiled.lower(x).compile()
    executable(x)
    functions: dict[str, Callable[..., Any]] = {"jitted function": compiled, "executable": executable}
    # Workers start with this environment: none of them finds code in a cache.
    environment = {"distributed.nanny.environ": {"MIND_MLIR_CACHE": "off", "MIND_MLIR_NUM_THREADS": "1"}}
    import dask  # noqa: PLC0415 -- as above

    rows: list[Row] = []
    with (
        dask.config.set(environment),
        LocalCluster(
            n_workers=_WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        for name, function in functions.items():
            rows.append({"function": name, "calls": calls, **_compared(client, function, x, calls)})
        found = client.run(state).values()
        for row in rows:
            row["compilations on workers"] = sum(count for count, _ in found)
            row["MLIR loaded there"] = sum(loaded for _, loaded in found)
    notes = [
        f"{_WORKERS} workers; a round trip is one call, sent alone, and its result; map sends many at once",
        "times are medians; numpy's function is called by turns with ours; ratios: medians of ours / numpy's",
    ]
    return Report("calls on Dask's workers", rows, notes)


def _compared(client: Any, function: Callable[..., Any], x: Any, calls: int) -> Row:
    """Return the times of a function and of numpy's."""
    pair = (function, with_numpy)
    for each in pair:  # code is loaded by then
        client.gather(client.map(each, [x] * 4 * _WORKERS, pure=False))
    single: tuple[list[float], list[float]] = ([], [])
    for turn in range(calls):
        for place in (0, 1) if turn % 2 == 0 else (1, 0):
            start = time.perf_counter()
            client.submit(pair[place], x, pure=False).result()
            single[place].append(time.perf_counter() - start)
    batches: tuple[list[float], list[float]] = ([], [])
    for turn in range(_ROUNDS):
        for place in (0, 1) if turn % 2 == 0 else (1, 0):
            start = time.perf_counter()
            client.gather(client.map(pair[place], [x] * (calls // _ROUNDS), pure=False))
            batches[place].append((time.perf_counter() - start) / max(1, calls // _ROUNDS))
    return {
        "round trip ms": 1e3 * statistics.median(single[0]),
        "numpy ms": 1e3 * statistics.median(single[1]),
        "ratio": _ratio(*single),
        "map ms": 1e3 * statistics.median(batches[0]),
        "map ratio": _ratio(*batches),
    }


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of ratios of times that were taken one right after the other."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    # Functions of `__main__` would be sent by value.
    sys.exit(importlib.import_module("benchmarks.workers").main())
