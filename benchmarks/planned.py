"""What `mind_mlir.plan` says beside what happens, in processes that run a program together.

mpiexec -n 2 python -m benchmarks.planned

Each collective is one of a few bytes, which shows what the runtime takes for it, or of a million elements;
the step is one of training a perceptron of two layers with data parallelism. Each process has one thread.
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from benchmarks.command import parser, show
from benchmarks.report import Report
from mind_mlir import distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from benchmarks.report import Row

#: Rows of each process, inputs, hidden units and outputs of the perceptron.
_ROWS, _INPUTS, _HIDDEN, _OUTPUTS = 256, 512, 2048, 512
_CALLS = 30


def _loss(w: Any, v: Any, x: Any, wanted: Any) -> Any:
    error = mnp.maximum(x @ w, 0) @ v - wanted
    return mnp.mean(error * error)


def _step(w: Any, v: Any, x: Any, wanted: Any) -> Any:
    gradients = mind_mlir.grad(_loss, argnums=(0, 1))(w, v, x, wanted)
    dw, dv = (mind_mlir.all_reduce(each, "data", kind="mean") for each in gradients)
    return w - 0.01 * dw, v - 0.01 * dv


def _programs(mesh: mind_mlir.Mesh) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield functions, each with arguments."""
    for name, size in (("AllReduce, 4 bytes", 1), ("AllReduce, 4 MB", 1 << 20)):
        reduce = mind_mlir.shard_map(lambda x: mind_mlir.all_reduce(x, "data"), mesh, "", "")
        yield name, mind_mlir.jit(reduce), (np.ones(size, np.float32),)
    rng = np.random.default_rng(0)
    rows = _ROWS * mesh.size
    shapes = (_INPUTS, _HIDDEN), (_HIDDEN, _OUTPUTS), (rows, _INPUTS), (rows, _OUTPUTS)
    arguments = tuple([rng.standard_normal(shape, np.float32) * np.float32(0.03) for shape in shapes])
    step = mind_mlir.shard_map(_step, mesh, ("", "", "data", "data"), "")
    yield "a step of training", mind_mlir.jit(step), arguments


def _seconds(call: Callable[[], object]) -> float:
    """Return how long calls take, the quickest tenth of them."""
    times = []
    for _ in range(_CALLS):
        distributed.barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.quantiles(times, n=10)[0]


def measure() -> Report:
    """Return the plan of each program beside what happens."""
    count = distributed.process_count()
    rows: list[Row] = []
    for name, function, arguments in _programs(mind_mlir.Mesh({"data": count})):
        plan = mind_mlir.plan(function.lower(*arguments), threads=1)
        function(*arguments)
        before = distributed.bytes_sent()
        function(*arguments)
        sent = distributed.bytes_sent() - before
        taken = _seconds(partial(function, *arguments))
        rows.append(
            {
                "program": name,
                "planned bytes": plan.most,
                "sent": sent,
                "planned ms": plan.seconds * 1e3,
                "ms": taken * 1e3,
                "ratio": taken / plan.seconds,
            }
        )
    return Report(f"plans beside runs, {count} processes", rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = parser("planned", __doc__).parse_args(arguments)
    mind_mlir.set_num_threads(1)
    report = measure()
    return show(report, as_json=options.json) if distributed.process_index() == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
