"""Measures a constant of the schedules: workloads with it at several values, in turn, relative to its own.

    python -m benchmarks.sweep CHUNK_BYTES 32768 65536 131072

The constants are those of `mind_mlir/lowering/emission/constants.py`, those of products in
`contraction/costs.py` beside it, and the rates of this machine, such as ``byte_ns``; workloads are those of
`benchmarks.peers`, by default some that a constant of that kind matters for.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import mind_mlir
import mind_mlir.lowering.schedule
from benchmarks.command import parser, show
from benchmarks.measure import ROUNDS, calls_for, seconds_per_call
from benchmarks.peers.programs import program
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Report
from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.schedule.contraction import costs
from mind_mlir.target import NATIVE, named, named_target
from mind_mlir.target.rates import FIGURES, Rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.report import Row

_USUAL = ("mm512", "softmax", "layernorm", "sum_axis0", "transpose", "mlp_fwd")
_ROUND_SECONDS = 0.05


@contextmanager
def constant(name: str, value: object) -> Iterator[None]:
    """Compile with the constant ``name`` at ``value`` meanwhile."""
    if name in FIGURES:
        target = named_target(NATIVE)
        figures = {each: getattr(target.rates, each) for each in FIGURES}
        rates = Rates(*{**figures, name: float(str(value))}.values())
        changed = dataclasses.replace(target, rates=rates)
        with mock.patch.object(named, "host_target", return_value=changed):
            yield
        return
    schedules = (module for key, module in sys.modules.items() if key.startswith("mind_mlir.lowering."))
    holders = [module for module in schedules if hasattr(module, name)]
    before = _own(name)
    _set(holders, name, value)
    try:
        yield
    finally:
        _set(holders, name, before)


def _own(name: str) -> Any:
    if name in FIGURES:
        return getattr(named_target(NATIVE).rates, name)
    return getattr(constants if hasattr(constants, name) else costs, name)


def _set(holders: Sequence[object], name: str, value: object) -> None:
    for holder in holders:
        setattr(holder, name, value)


def measure(name: str, values: Sequence[float], workloads: Sequence[str], rounds: int = ROUNDS) -> Report:
    """Return how long each workload takes with each of ``values``, relative to the constant's own."""
    rows: list[Row] = []
    for workload in workloads:
        calls = [_call(workload)]
        for value in values:
            with constant(name, value):
                calls.append(_call(workload))
        own, *others = _times(calls, rounds)
        row: Row = {"workload": workload, "us": statistics.median(own) * 1e6}
        for value, times in zip(values, others, strict=True):
            row[str(value)] = statistics.median(t / o for t, o in zip(times, own, strict=True))
        rows.append(row)
    title = f"{name}, which is {_own(name)}, on {mind_mlir.get_num_threads()} threads"
    return Report(title, rows, ["below 1: faster than with the value that it has"])


def _call(workload: str) -> Callable[[], object]:
    inputs = WORKLOADS[workload].inputs()
    executable = mind_mlir.compile(program(WORKLOADS[workload]))
    arguments = list(inputs.values())
    return lambda: executable(*arguments)


def _times(calls: Sequence[Callable[[], object]], rounds: int) -> list[list[float]]:
    """Time all of ``calls`` in each round, the order turned round each time."""
    counts = [calls_for(call, _ROUND_SECONDS) for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        for place in range(len(calls))[:: 1 if turn % 2 == 0 else -1]:
            times[place].append(seconds_per_call(calls[place], counts[place]))
    return times


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("sweep", __doc__)
    names = [
        name for name, value in {**vars(costs), **vars(constants)}.items() if isinstance(value, int | float)
    ]
    names += FIGURES
    options_parser.add_argument("name", choices=names, metavar="NAME", help="the constant")
    options_parser.add_argument("values", type=_number, nargs="+", metavar="VALUE", help="values to try")
    options_parser.add_argument("--only", metavar="A,B", default=",".join(_USUAL), help="workloads")
    options = options_parser.parse_args(arguments)
    os.environ[named.RATES_VARIABLE] = "stated"  # but for the one that is tried
    report = measure(options.name, options.values, options.only.split(","))
    return show(report, as_json=options.json)


def _number(text: str) -> float:
    return int(text) if text.isdecimal() else float(text)


if __name__ == "__main__":
    sys.exit(main())
