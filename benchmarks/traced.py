"""How much of machine code is traced to operations of the program that it is of (`mind-mlir explore`).

The programs are those of `examples` that are files, each as a whole, with extents of 32 for named dimensions,
and a block of GPT-2 with its gradient.

``line``: instructions that the line table traces. ``function``: those that LLVM made of several or of none,
as constants and moves, which are for all that their function is for. ``rest``: what is for nothing of the
program, and in which functions.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.peers.programs import program
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Report
from mind_mlir.ir.module import Module
from mind_mlir.languages.mind.elaboration.programs import dimensions
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.tools.explorer.explore import ExploredGradient, traced_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.report import Row

_ROOT = Path(__file__).parents[1]
_EXTENT = 32
_BLOCK = "gpt2_block"


def examples() -> Iterator[tuple[str, Module]]:
    """Yield the programs of `examples`, by their paths."""
    folder = _ROOT / "examples"
    for path in sorted((*folder.rglob("*.ir"), *folder.rglob("*.mind"))):
        found = mind_mlir.load(path)
        if not isinstance(found, Module):
            extents = dict.fromkeys(dimensions(found), _EXTENT)
            found = kind_of(found).exported(found, None, extents)
        yield str(path.relative_to(_ROOT)), found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the status is 1 where less than ``--least`` percent of a program is traced."""
    options = parser("traced", __doc__)
    options.add_argument("--least", type=float, default=95.0, metavar="PERCENT")
    options.add_argument("--quick", action="store_true", help="leave the block of GPT-2 out")
    given = options.parse_args(arguments)
    rows = [_row(name, module) for name, module in examples()]
    if not given.quick:
        block = program(WORKLOADS[_BLOCK])
        assert isinstance(block, Module), "it is Core IR"
        rows += [_row(_BLOCK, block), _row(f"{_BLOCK}, gradient", block, ExploredGradient())]
    show(Report("instructions that are traced to operations of the program", rows), as_json=given.json)
    return 1 if any(float(row["percent"]) < given.least for row in rows) else 0


def _row(name: str, module: Module, gradient: ExploredGradient | None = None) -> Row:
    start = time.perf_counter()
    found = traced_code(module, gradient=gradient)
    rest = ", ".join(f"{where} {count}" for where, count in found.rest.most_common(3))
    return {
        "program": name,
        "instructions": found.total,
        "percent": round(100 * found.traced / found.total, 2),
        "line": found.exact,
        "function": found.shared,
        "rest": rest,
        "seconds": round(time.perf_counter() - start, 2),
    }


if __name__ == "__main__":
    sys.exit(main())
