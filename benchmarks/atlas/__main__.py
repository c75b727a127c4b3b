"""Measures the atlas and writes its page.

python -m benchmarks.atlas                       all sizes, the usual dtypes
python -m benchmarks.atlas --quick               two sizes, the first examples of each operation
python -m benchmarks.atlas --only "MatMul;elementwise, product"   some operations and pairs
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.atlas.measuring import Found, measured
from benchmarks.atlas.page import page
from benchmarks.atlas.points import ODD, SIZES, points
from mind_mlir import set_num_threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.atlas.points import Point

_QUICK_EXAMPLES = 2


def chosen(options: argparse.Namespace) -> Iterator[Point]:
    """Yield the points that the options ask for."""
    sizes = ("L2", "memory") if options.quick else (*SIZES, ODD)
    only = options.only.split(";") if options.only else ()
    seen: Counter[tuple[str, str, str]] = Counter()
    for point in points(every_dtype=options.every_dtype, sizes=sizes, only=only):
        opcode = point.name if point.is_pair else point.name.partition(" ")[0]
        key = (opcode, point.dtype, point.size)
        seen[key] += 1
        if not options.quick or seen[key] <= _QUICK_EXAMPLES:
            yield point


def _command(options: argparse.Namespace) -> str:
    """Return the command that measures the same again and writes the page."""
    words = ["python -m benchmarks.atlas", *(["--quick"] if options.quick else [])]
    words += ["--every-dtype"] if options.every_dtype else []
    words += [f'--only "{options.only}"'] if options.only else []
    words += [f"--threads {options.threads}"] if options.threads > 1 else []
    return " ".join([*words, "--page docs/atlas.md"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.atlas",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="some minutes rather than a quarter of an hour")
    parser.add_argument("--every-dtype", action="store_true", help="all dtypes that operations take")
    parser.add_argument("--only", metavar="A;B", help="operations and pairs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.03, help="to call each point for")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page, docs/atlas.md")
    options = parser.parse_args(arguments)
    set_num_threads(options.threads)
    found: list[Found] = []
    start = time.perf_counter()
    for point in chosen(options):
        found.append(measured(point, options.seconds))
        if sys.stderr.isatty():
            print(f"\r{len(found)} {point.name:40.40}", end="", file=sys.stderr)
    print(f"{len(found)} points in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if options.json is not None:
        options.json.write_text(
            json.dumps([asdict(each) for each in found], indent=0) + "\n", encoding="utf-8"
        )
    text = page(found, _command(options))
    if options.page is None:
        print(text)
    else:
        options.page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
