"""Gradients of loops against the loops themselves, on a state of 256 numbers and on one number.

A gradient counts the iterations, replays them where the derivative needs their states, and goes back; what it
takes is given as a multiple of the loop alone. No memory grows with the number of iterations.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.measure import compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

ITERATIONS = 100_000
#: Seconds that one candidate runs in one round.
ROUND_SECONDS = 0.05

_PROGRAM = """\
func @main(%x: tensor<f32[{shape}]>, %a: tensor<f32[]>, %b: tensor<f32[]>,
           %n: tensor<i64[]>) -> (tensor<f32[{shape}]>) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  br ^test(%x, %zero)
^test(%s: tensor<f32[{shape}]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {{op=Less}} : tensor<i1[]>
  cond_br %more, ^step(%s, %i), ^end(%s)
^step(%t: tensor<f32[{shape}]>, %j: tensor<i64[]>):
  %one = ConstI64 {{value=1}} : tensor<i64[]>
{step}
  %k = Add (%j, %one) : tensor<i64[]>
  br ^test(%u, %k)
^end(%r: tensor<f32[{shape}]>):
  return %r
}}
"""
_LINEAR = """\
  %p = Mul (%t, %a) : tensor<f32[{shape}]>
  %u = Add (%p, %b) : tensor<f32[{shape}]>"""
_SQUARE = """\
  %p = Mul (%t, %t) : tensor<f32[{shape}]>
  %q = Mul (%p, %a) : tensor<f32[{shape}]>
  %u = Sub (%t, %q) : tensor<f32[{shape}]>"""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop and the arguments with respect to which it is differentiated.

    Attributes:
        name: What it is called in the table.
        size: Elements of the state; 0 for a scalar.
        step: The next state ``u`` of ``t``.
        wrt: The arguments.
        target: The multiple that is aimed at, where one is.
    """

    name: str
    size: int
    step: str
    wrt: tuple[str, ...]
    target: str

    def program(self) -> mind_mlir.Module:
        """Return the loop."""
        shape = str(self.size or "")
        text = _PROGRAM.format(shape=shape, step=self.step.format(shape=shape))
        return mind_mlir.parse(text, format="core")


LOOPS = (
    Loop("[256], a x + b, by x", 256, _LINEAR, ("x",), "10"),
    Loop("[256], x - a x x, by x", 256, _SQUARE, ("x",), "10"),
    Loop("[256], x - a x x, by x and a", 256, _SQUARE, ("x", "a"), ""),
    Loop("scalar, x - a x x, by x and a", 0, _SQUARE, ("x", "a"), ""),
)


def measure(iterations: int, seconds: float = ROUND_SECONDS) -> Report:
    """Compare the gradient of each loop with the loop."""
    return Report(
        f"gradients of loops of {iterations} iterations, one thread",
        [_row(loop, iterations, seconds) for loop in LOOPS],
        ["times are the best of alternating rounds; ratio is the median of gradient / loop"],
    )


def _row(loop: Loop, iterations: int, seconds: float) -> Row:
    program = loop.program()
    forward = mind_mlir.compile(program)
    gradient = mind_mlir.compile(mind_mlir.differentiate(program, wrt=loop.wrt).module)
    # The state neither vanishes nor grows, and its cotangents do not become subnormal numbers.
    start = np.full((loop.size,) if loop.size else (), 0.5, np.float32)
    factor = np.float32(1.0 if loop.step is _LINEAR else 1e-6)
    arrays = (start, np.asarray(factor), np.asarray(np.float32(1e-6)), np.asarray(np.int64(iterations)))
    (found,), (again, *_) = forward(*arrays), gradient(*arrays)
    np.testing.assert_array_equal(found, again)
    result = compare(lambda: gradient(*arrays), lambda: forward(*arrays), seconds=seconds)
    return {
        "loop": loop.name,
        "gradient ms": result.ours * 1e3,
        "loop ms": result.theirs * 1e3,
        "ratio": 1 / result.ratio,
        "target": loop.target,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("loop_gradients", __doc__)
    options_parser.add_argument("--iterations", type=int, default=ITERATIONS)
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    return show(measure(options.iterations, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
