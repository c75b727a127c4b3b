"""Loops against the same loops in C, compiled by ``gcc -O3 -march=native`` and called in the same process.

By itself gcc fuses a multiplication and an addition into one instruction, of one iteration and the next, too.
Compiled programs may not, since they round as the interpreter does. So each loop is compared with C that
rounds in the same places (``-ffp-contract=off``), and with C as it comes.
"""

from __future__ import annotations

import ctypes
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.measure import compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

ITERATIONS = 1_000_000
#: Seconds that one candidate runs in one round.
ROUND_SECONDS = 0.05

_LOOP = """\
func @main(%x: tensor<f32[{shape}]>, %a: tensor<f32[]>, %b: tensor<f32[]>, %limit: tensor<f32[]>,
           %n: tensor<i64[]>) -> (tensor<f32[{shape}]>, tensor<i64[]>) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  br ^test(%x, %zero)
^test(%s: tensor<f32[{shape}]>, %i: tensor<i64[]>):
{test}
  cond_br %more, ^step(%s, %i), ^end(%s, %i)
^step(%t: tensor<f32[{shape}]>, %j: tensor<i64[]>):
  %one = ConstI64 {{value=1}} : tensor<i64[]>
{step}
  %k = Add (%j, %one) : tensor<i64[]>
  br ^test(%u, %k)
^end(%r: tensor<f32[{shape}]>, %m: tensor<i64[]>):
  return %r, %m
}}
"""
_COUNTED = "  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>"
_AFFINE = """\
  %p = Mul (%t, %a) : tensor<f32[{shape}]>
  %u = Add (%p, %b) : tensor<f32[{shape}]>"""
_SCALED = """\
  %p = Add (%t, %b) : tensor<f32[{shape}]>
  %u = Mul (%p, %a) : tensor<f32[{shape}]>"""
_LOGISTIC = """\
  %p = Mul (%a, %t) : tensor<f32[]>
  %q = Sub (%b, %t) : tensor<f32[]>
  %u = Mul (%p, %q) : tensor<f32[]>"""
_C = """\
#include <stdint.h>
#include <string.h>
void loop(const float *restrict x, const float *restrict a_, const float *restrict b_,
          const float *restrict limit_, const int64_t *restrict n_, float *restrict s,
          int64_t *restrict count) {{
    const float a = *a_, b = *b_, limit = *limit_;
    const int64_t n = *n_;
    int64_t i = 0;
    memcpy(s, x, {size} * sizeof(float));
    for (; {test}; i++)
        for (int k = 0; k < {size}; k++)
            s[k] = {step};
    *count = i;
    (void)n, (void)limit;
}}
"""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop in both languages.

    Attributes:
        name: What it is called in the table.
        size: Elements of the state; 0 for a scalar.
        test: Whether to go on, as Core IR and in C.
        step: The next state, as Core IR and in C.
        arguments: a, b and limit.
        target: The ratio to C that is aimed at.
    """

    name: str
    size: int
    test: tuple[str, str]
    step: tuple[str, str]
    arguments: tuple[float, float, float]
    target: float

    def program(self) -> str:
        """Return the loop in function form."""
        shape = str(self.size or "")
        step = self.step[0].format(shape=shape)
        return _LOOP.format(shape=shape, test=self.test[0], step=step)

    def c(self) -> str:
        """Return the loop in C."""
        return _C.format(size=self.size or 1, test=self.test[1], step=self.step[1])

    def inputs(self, iterations: int) -> list[Any]:
        """Return arguments that make it run ``iterations`` times."""
        shape = (self.size,) if self.size else ()
        numbers = [np.array(number, np.float32) for number in self.arguments]
        if self.test is not _BY_COUNT:
            numbers[2] = np.array(iterations * self.arguments[1], np.float32)
        start = np.full(shape, 0.5 if self.step is _LOGISTIC_STEP else 0.0, np.float32)
        return [start, *numbers, np.array(iterations, np.int64)]


_BY_COUNT = (_COUNTED, "i < n")
_BY_VALUE = (
    """\
  %first = Index (%s) {indices=[0]} : tensor<f32[]>
  %more = Compare (%first, %limit) {op=Less} : tensor<i1[]>""",
    "s[0] < limit",
)
_BY_SCALAR = ("  %more = Compare (%s, %limit) {op=Less} : tensor<i1[]>", "s[0] < limit")
_AFFINE_STEP = (_AFFINE, "s[k] * a + b")
_SCALED_STEP = (_SCALED, "(s[k] + b) * a")
_LOGISTIC_STEP = (_LOGISTIC, "a * s[k] * (b - s[k])")
LOOPS = (
    Loop("[256], a (x + b), counted", 256, _BY_COUNT, _SCALED_STEP, (0.999, 1.0, 0.0), 1.3),
    Loop("[256], a (x + b), until x[0] says so", 256, _BY_VALUE, _SCALED_STEP, (1.0, 1.0, 0.0), 1.3),
    Loop("scalar, a (x + b), until x says so", 0, _BY_SCALAR, _SCALED_STEP, (1.0, 1.0, 0.0), 2.0),
    Loop("scalar, a x (1 - x), counted", 0, _BY_COUNT, _LOGISTIC_STEP, (3.7, 1.0, 0.0), 2.0),
    Loop("scalar, a x + b, until x says so", 0, _BY_SCALAR, _AFFINE_STEP, (1.0, 1.0, 0.0), 2.0),
)


def measure(iterations: int, seconds: float = ROUND_SECONDS) -> Report:
    """Compare each loop with C, after checking that both come to the same."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return Report("loops: gcc is not installed, there is nothing to compare with", [])
    with tempfile.TemporaryDirectory() as folder:
        rows = [_row(loop, gcc, Path(folder), iterations, seconds) for loop in LOOPS]
    return Report(
        f"loops of {iterations} iterations against gcc -O3 -march=native, one thread",
        rows,
        [
            "times are the best of alternating rounds; ratio is the median of ours / C",
            "scratch bytes is all the memory that a call uses besides arguments and results; growth is how "
            "much the process grew while the loop ran",
        ],
    )


def _row(loop: Loop, gcc: str, folder: Path, iterations: int, seconds: float) -> Row:
    function = mind_mlir.compile(mind_mlir.parse(loop.program()))
    native = _compile(loop, gcc, folder, "-ffp-contract=off")
    fused = _compile(loop, gcc, folder, "-ffp-contract=fast")
    arrays = loop.inputs(iterations)
    outputs = [np.empty_like(arrays[0]), np.empty((), np.int64)]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *outputs)]
    function(*loop.inputs(10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours = function(*arrays)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    native(*pointers)
    assert int(ours[1]) == int(outputs[1]), "the loops run differently often"
    np.testing.assert_array_equal(ours[0], outputs[0])
    result = compare(lambda: function(*arrays), lambda: native(*pointers), seconds=seconds)
    against = compare(lambda: function(*arrays), lambda: fused(*pointers), seconds=seconds)
    return {
        "loop": loop.name,
        "ours ms": result.ours * 1e3,
        "C ms": result.theirs * 1e3,
        "ratio": 1 / result.ratio,
        "target": loop.target,
        "C fused ms": against.theirs * 1e3,
        "ratio to fused": 1 / against.ratio,
        "scratch bytes": function.functions["main"]._native.scratch_bytes,
        "growth KB": growth,
    }


def _compile(loop: Loop, gcc: str, folder: Path, option: str) -> Any:
    source = folder / f"{LOOPS.index(loop)}.c"
    library = source.with_suffix(f".{option}.so")
    source.write_text(loop.c())
    command = [gcc, "-O3", "-march=native", option, "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)  # noqa: S603 -- gcc, on a text of ours
    return ctypes.CDLL(str(library)).loop


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("loops", __doc__)
    options_parser.add_argument("--iterations", type=int, default=ITERATIONS)
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    return show(measure(options.iterations, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
