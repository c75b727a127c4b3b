"""How compile time grows: each stage for a chain of elementwise operations, or programs of other kinds.

With --families: programs of many outputs, inputs, reductions or products. 10,000 should take less than 10 s.
With --workloads: stages of those of `benchmarks.peers`, the first time in this process and again.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from typing import TYPE_CHECKING

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.large_programs import FAMILIES
from benchmarks.peers import programs
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row
    from mind_mlir import Module
    from mind_mlir.languages.ptir.program import Program

_TYPE = "tensor<f32[64]>"
_OPCODES = ("Add", "Mul", "Sub")


def chain(length: int) -> str:
    """Return a program in which each of ``length`` operations reads its predecessor."""
    lines = [f'%0 = Input {{name="x"}} : {_TYPE}', f'%1 = Input {{name="y"}} : {_TYPE}']
    lines += [
        f"%{i + 2} = {_OPCODES[i % len(_OPCODES)]} (%{i % 2}, %{i + 1}) : {_TYPE}" for i in range(length)
    ]
    return "\n".join([*lines, f"outputs: %{length + 1}", ""])


def stage_seconds(length: int) -> dict[str, float]:
    """Return the seconds that every stage takes for a chain, in order, parsing first."""
    start = time.perf_counter()
    module = mind_mlir.parse(chain(length))
    parse_seconds = time.perf_counter() - start
    return {"parse": parse_seconds, **mind_mlir.compile(module).timings}


def measure(lengths: Sequence[int], repeats: int) -> Report:
    """Compile a chain of each length ``repeats`` times; the best time of every stage counts."""
    stage_seconds(1)  # import and initialise MLIR, which is not what is measured
    runs = {n: [stage_seconds(n) for _ in range(repeats)] for n in lengths}
    best = {n: {stage: min(run[stage] for run in of_n) for stage in of_n[0]} for n, of_n in runs.items()}
    for stages in best.values():
        stages["all stages"] = sum(stages.values())
    rows = [_row("stage", stage, lengths, [best[n][stage] for n in lengths]) for stage in best[lengths[0]]]
    return Report(
        "compile time of a chain of elementwise operations",
        rows,
        ["growth is how the time grows over how n log n does; 1 and below is n log n or better"],
    )


def measure_families(lengths: Sequence[int], repeats: int) -> Report:
    """Compile a program of each family and length ``repeats`` times; the best time counts."""
    stage_seconds(1)
    rows = []
    for name, program in FAMILIES.items():
        seconds = [min(_compile_seconds(program(n)) for _ in range(repeats)) for n in lengths]
        rows.append(_row("program", name, lengths, seconds))
    return Report(
        "compile time of large programs",
        rows,
        ["growth is how the time grows over how n log n does; 1 and below is n log n or better"],
    )


def measure_workloads(names: Sequence[str], repeats: int) -> Report:
    """Compile workloads of `benchmarks.peers` once, and then ``repeats`` times; the median counts."""
    stage_seconds(1)
    rows: list[Row] = []
    for name in names:
        module = programs.program(WORKLOADS[name])
        runs = [_stages_and_total(module) for _ in range(repeats + 1)]
        for when, some in (("first", runs[:1]), ("again", runs[1:])):
            medians = {stage: statistics.median(run[stage] for run in some) for stage in runs[0]}
            row: Row = {"workload": name, "when": when}
            row.update({f"{stage} ms": seconds * 1e3 for stage, seconds in medians.items()})
            rows.append(row)
    return Report(
        "compile time of the workloads of benchmarks.peers",
        rows,
        ["the first time, micro-kernels are made that the process does not have yet"],
    )


def _stages_and_total(module: Module | Program) -> dict[str, float]:
    start = time.perf_counter()
    compiled = mind_mlir.compile(module)
    total = time.perf_counter() - start
    assert isinstance(compiled, mind_mlir.Executable), "no workload has symbols or tuples"
    return {**compiled.timings, "total": total}


def _compile_seconds(module: Module) -> float:
    start = time.perf_counter()
    mind_mlir.compile(module)
    return time.perf_counter() - start


def _row(what: str, name: str, lengths: Sequence[int], seconds: Sequence[float]) -> Row:
    row: Row = {what: name}
    row.update({f"{n} ops ms": t * 1e3 for n, t in zip(lengths, seconds, strict=True)})
    steps = zip(lengths, lengths[1:], seconds, seconds[1:], strict=False)
    for small, large, before, after in steps:
        expected = (large * math.log(large)) / (small * math.log(small))
        row[f"growth {small}-{large}"] = after / before / expected
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("compile_time", __doc__)
    options_parser.add_argument("--lengths", type=int, nargs="+", default=[100, 1000, 10000], metavar="N")
    options_parser.add_argument("--repeats", type=int, default=2)
    options_parser.add_argument("--families", action="store_true", help="large programs instead of chains")
    options_parser.add_argument(
        "--workloads", nargs="+", choices=list(WORKLOADS), metavar="NAME", help="those of benchmarks.peers"
    )
    options = options_parser.parse_args(arguments)
    if min(options.lengths) < 2:
        options_parser.error("a chain has at least 2 operations")
    if options.workloads:
        return show(measure_workloads(options.workloads, options.repeats), as_json=options.json)
    measured = measure_families if options.families else measure
    return show(measured(options.lengths, options.repeats), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
