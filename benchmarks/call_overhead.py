"""What one call costs when there is next to nothing to compute."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.measure import ROUND_SECONDS, compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row


def _program(inputs: int) -> str:
    lines = [f'%{i} = Input {{name="x{i}"}} : tensor<f32[8]>' for i in range(inputs)]
    last = inputs - 1
    for i in range(1, inputs):
        lines.append(f"%{inputs + i - 1} = Add (%{i}, %{0 if i == 1 else last}) : tensor<f32[8]>")
        last = inputs + i - 1
    return "\n".join([*lines, f"outputs: %{last}", ""])


def measure(inputs: Sequence[int], seconds: float = ROUND_SECONDS) -> Report:
    """Time the sum of 2, 4, 8, ... vectors of 8 elements, with positional and with named arguments."""
    return Report(
        "call overhead",
        [_row(count, seconds) for count in inputs],
        ["each function adds its inputs, vectors of 8 f32; numpy makes one such addition"],
    )


def _row(count: int, seconds: float) -> Row:
    function = mind_mlir.compile(mind_mlir.parse(_program(count)))
    arrays = [np.full(8, i, np.float32) for i in range(count)]
    named = {f"x{i}": array for i, array in enumerate(arrays)}
    (total,) = function(*arrays)
    np.testing.assert_array_equal(total, np.full(8, sum(range(count)), np.float32))
    first, second = arrays[:2]
    positional = compare(lambda: function(*arrays), lambda: first + second, seconds=seconds)
    by_name = compare(lambda: function(**named), lambda: first + second, seconds=seconds)
    return {
        "inputs": count,
        "positional us": positional.ours * 1e6,
        "by name us": by_name.ours * 1e6,
        "one numpy addition us": positional.theirs * 1e6,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("call_overhead", __doc__)
    options_parser.add_argument("--inputs", type=int, nargs="+", default=[2, 4, 8], metavar="N")
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    if min(options.inputs) < 2:
        options_parser.error("a sum has at least 2 inputs")
    return show(measure(options.inputs, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
