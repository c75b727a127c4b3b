"""What checking a text takes: memory over the text's size, and time, for the kinds of `hostile_texts`."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.command import parser, show
from benchmarks.hostile_texts import sources
from benchmarks.report import Report
from mind_mlir.tools.cli.main import program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

_MEGABYTE = 10**6
_UNIT = 1 if sys.platform == "darwin" else 1024  # of what getrusage says
#: What uses every part of the reader once, and what is right: what they load is no cost of a text.
_WARM_UP = """%0=Input("x"):tensor<i1[]>
%1=ConstTensor{dtype=f32,shape=[2],value=[1,0x2]}:tensor<f32[2]>
%1=Sum(%0,[0]):tensor<i1[]>
%2=A(%a):tensor<i1[]>
outputs:%1
"""
_UNKNOWN = "%0=Ad(%0):tensor<f32[]>\noutputs:%0\n"
_TOO_LARGE = "%0=ConstTensor{dtype=f32,shape=[1],value=[1e99]}:tensor<f32[1]>\noutputs:%0\n"
_FUNCTIONS = "func@f(){\n^a:\n%0=call@f():tensor<f32[]>\nbr^b\n^b:\nreturn\n}\nfunc@f(){\n}\n"
_BLOCKS = "func @f(%x: tensor<f32[]>) -> (tensor<f32[]>) {\n^a:\nbr ^b\n^b:\nreturn %x\n}\n"
_VERIFIED = '%0 = Input {name="x"} : tensor<f32[4]>\n%1 = Exp (%0) : tensor<f32[4]>\noutputs: %1\n'


@dataclass(frozen=True, slots=True)
class Check:
    """What `mind-mlir check` of one file took: its exit code, seconds and the peak of its memory in bytes."""

    code: int
    seconds: float
    peak: int


def forked(body: Callable[[], int | None]) -> Check:
    """Run ``body`` in a copy of this process; what it returns is the exit code."""
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = body() or 0
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return Check(code, time.perf_counter() - start, usage.ru_maxrss * _UNIT)


def check(path: Path) -> int:
    """Run ``mind-mlir check`` on a file and return its exit code; nothing is printed."""
    sys.stderr = io.StringIO()
    try:
        program(["check", str(path)])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _write(path: Path, make: Callable[[int], bytes], size: int) -> None:
    path.write_bytes(make(size))


def measure(size: int, wanted: Sequence[str]) -> Report:
    """Check a text of every wanted kind (all, where none is named) of about ``size`` bytes."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hostile.ir")
        errors = sys.stderr
        for text in (_WARM_UP, _UNKNOWN, _TOO_LARGE, _FUNCTIONS, _BLOCKS, _VERIFIED):
            path.write_text(text)
            check(path)
        check(Path(folder, "absent"))
        sys.stderr = errors
        base = forked(lambda: 0).peak
        for name, make in sources().items():
            if wanted and name not in wanted:
                continue
            # Made in a copy of its own: what that takes must not count.
            forked(partial(_write, path, make, size))
            length = path.stat().st_size
            found = forked(lambda: check(path))
            rows.append(
                {
                    "text": name,
                    "MB": length / _MEGABYTE,
                    "peak MB": found.peak / _MEGABYTE,
                    "bytes a byte": (found.peak - base) / length,
                    "seconds": found.seconds,
                    "exit code": found.code,
                }
            )
    return Report(
        "checking hostile texts",
        rows,
        [f"bytes a byte leaves out the {base / _MEGABYTE:.0f} MB that the compiler takes itself"],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("check_memory", __doc__)
    options_parser.add_argument("--megabytes", type=float, default=0.5)
    options_parser.add_argument("--kinds", nargs="+", default=[], metavar="NAME")
    options = options_parser.parse_args(arguments)
    return show(measure(round(options.megabytes * _MEGABYTE), options.kinds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
