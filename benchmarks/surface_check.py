"""How long it takes to check `.mind` programs, and how that grows: what `mind-mlir check` does, in process.

With --shapes: one function, chains and trees of calls, long expressions, wide structs, many errors. With
--profile: where the time goes for the longest program.
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.command import parser, show
from benchmarks.report import Report
from benchmarks.surface_programs import SHAPES, realistic
from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.program import SurfaceProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

#: Functions that a profile lists.
_LISTED = 40


def _program(text: str) -> SurfaceProgram:
    return SurfaceProgram(SourceText("benchmark.mind", text))


def seconds(text: str, repeats: int) -> tuple[float, float, int]:
    """Return the best seconds of reading ``text`` and of checking it, and the number of findings."""
    best = [float("inf"), float("inf")]
    found = 0
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        program = _program(text)
        program.reading  # noqa: B018 -- it is read when it is asked for
        middle = time.perf_counter()
        found = len(program.check())
        end = time.perf_counter()
        best = [min(best[0], middle - start), min(best[1], end - middle)]
    return best[0], best[1], found


def measure(lengths: Sequence[int], repeats: int) -> Report:
    """Check realistic programs of each length."""
    rows: list[Row] = []
    for length in lengths:
        text = realistic(length)
        reading, checking, found = seconds(text, repeats)
        if found:
            raise ValueError(f"the program of {length} lines has {found} findings")
        lines = text.count("\n")
        total = reading + checking
        rows.append(
            {
                "lines": lines,
                "KB": len(text) / 1000,
                "read ms": reading * 1e3,
                "check ms": checking * 1e3,
                "both ms": total * 1e3,
                "us a line": total / lines * 1e6,
            }
        )
    return Report("checking .mind programs", rows, ["the best of the repeats, in one process"])


def measure_shapes(lengths: Sequence[int], repeats: int) -> Report:
    """Check programs of each shape and of each length."""
    rows: list[Row] = []
    for name, make in SHAPES.items():
        row: Row = {"shape": name}
        times = []
        for length in lengths:
            reading, checking, found = seconds(make(length), repeats)
            times.append(reading + checking)
            row |= {f"{length} ms": times[-1] * 1e3, f"findings {length}": found}
        for small, large, before, after in zip(lengths, lengths[1:], times, times[1:], strict=False):
            row[f"growth {small}-{large}"] = after / before / (large / small)
        rows.append(row)
    return Report("checking .mind programs of awkward shapes", rows, ["growth: 1 and below is linear"])


def profile(length: int) -> None:
    """Print where the time goes for a realistic program."""
    text = realistic(length)
    _program(text).check()  # what is only done once
    profiler = cProfile.Profile()
    profiler.runcall(lambda: _program(text).check())
    pstats.Stats(profiler).sort_stats("tottime").print_stats(_LISTED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("surface_check", __doc__)
    options_parser.add_argument("--lines", type=int, nargs="+", metavar="N", help="of programs, or shapes")
    options_parser.add_argument("--repeats", type=int, default=3)
    options_parser.add_argument("--shapes", action="store_true", help="awkward shapes instead")
    options_parser.add_argument("--profile", action="store_true", help="where the time goes")
    options = options_parser.parse_args(arguments)
    if min(options.lines or [1]) < 1:
        options_parser.error("a program has at least 1 line")
    if options.profile:
        profile(max(options.lines or [2000]))
        return 0
    if options.shapes:
        return show(measure_shapes(options.lines or [250, 1000, 4000], options.repeats), as_json=options.json)
    lengths = options.lines or [250, 500, 1000, 2000, 4000, 8000, 16000]
    return show(measure(lengths, options.repeats), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
