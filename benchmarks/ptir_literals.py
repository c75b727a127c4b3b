"""What a large literal takes in each format of PTIR: seconds, and memory over the size of the text."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.check_memory import forked
from benchmarks.command import parser, show
from benchmarks.report import Report
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages import ptir
from mind_mlir.languages.ptir.files import FORMATS
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row
    from mind_mlir.languages.ptir.files import Format

_MEGABYTE = 10**6


def program(size: int) -> Program:
    """Return a program with a literal of ``size`` bytes, all of them at random."""
    data = np.random.default_rng(0).integers(0, 256, size, np.uint8).tobytes()
    type_ = TensorType(DType.UI8, (size,))
    constant = Operation("Constant", None, FrozenDict({"value": TensorLiteral(type_, data)}))
    return Program((Function("main", (), (), (Instruction(0, constant, (), type_),), (type_,), (0,)),))


def _make(size: int) -> None:
    program(size)


def _save(size: int, path: Path, form: Format) -> None:
    ptir.save(program(size), path, form)


def _load(path: Path) -> None:
    ptir.load(path)


def measure(size: int) -> Report:
    """Write and read a program with a literal of ``size`` bytes."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMATS:
            path = Path(folder, "large.ptir.json" if form == "json" else "large.ptir")
            _save(8, path, form)
            _load(path)  # what is loaded once is no cost of a text
            base = forked(lambda: 0).peak
            made = forked(partial(_make, size))
            saved = forked(partial(_save, size, path, form))
            length = path.stat().st_size
            loaded = forked(partial(_load, path))
            rows.append(
                {
                    "format": form,
                    "MB": length / _MEGABYTE,
                    "write s": saved.seconds,
                    "read s": loaded.seconds,
                    "read MB/s": length / _MEGABYTE / loaded.seconds,
                    "written: bytes a byte": max(saved.peak - made.peak, 0) / length,
                    "read: bytes a byte": (loaded.peak - base) / length,
                    "exit code": saved.code or loaded.code,
                }
            )
    notes = [
        f"a literal of {size / _MEGABYTE:.3g} MB; bytes a byte of the text, beyond what is there without it"
    ]
    return Report("large literals of PTIR", rows, notes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("ptir_literals", __doc__)
    options_parser.add_argument("--megabytes", type=float, default=20)
    options = options_parser.parse_args(arguments)
    return show(measure(round(options.megabytes * _MEGABYTE)), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
