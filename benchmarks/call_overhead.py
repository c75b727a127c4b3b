"""What one call costs when there is next to nothing to compute."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.measure import ROUND_SECONDS, ROUNDS, calls_for, seconds_per_call
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

#: Calls after which native ones are in use (`mind_mlir/runtime/call.py`), and more.
_WARM = 200


def _program(inputs: int) -> str:
    """Return x0 * 2 + 1, to which all other inputs are added."""
    lines = [f'%{i} = Input {{name="x{i}"}} : tensor<f32[8]>' for i in range(inputs)]
    lines += [
        f"%{inputs} = ConstF32 {{value=2.0}} : tensor<f32[]>",
        f"%{inputs + 1} = ConstF32 {{value=1.0}} : tensor<f32[]>",
        f"%{inputs + 2} = Mul (%0, %{inputs}) : tensor<f32[8]>",
        f"%{inputs + 3} = Add (%{inputs + 2}, %{inputs + 1}) : tensor<f32[8]>",
    ]
    last = inputs + 3
    for i in range(1, inputs):
        lines.append(f"%{last + 1} = Add (%{last}, %{i}) : tensor<f32[8]>")
        last += 1
    return "\n".join([*lines, f"outputs: %{last}", ""])


def measure(inputs: Sequence[int], seconds: float = ROUND_SECONDS) -> Report:
    """Time functions of 1, 2, 4, ... vectors of 8 elements in each of the ways to call them."""
    notes = ["each function gives x * 2 + 1 for its first input, plus its others: vectors of 8 f32"]
    if _numba() is None:
        notes.append("with numba installed, there is a column for it")
    return Report("call overhead", [_row(count, seconds) for count in inputs], notes)


def _row(count: int, seconds: float) -> Row:
    function = mind_mlir.compile(mind_mlir.parse(_program(count)))
    arrays = [np.full(8, i, np.float32) for i in range(count)]
    named = {f"x{i}": array for i, array in enumerate(arrays)}
    out = np.empty(8, np.float32)
    for _ in range(_WARM):
        (total,) = function(*arrays)
    np.testing.assert_array_equal(total, np.full(8, 1 + sum(range(count)), np.float32))
    first, two, one = arrays[0], np.float32(2), np.float32(1)
    candidates: dict[str, Callable[[], object]] = {
        "positional us": lambda: function(*arrays),
        "by name us": lambda: function(**named),
        "out= us": lambda: function(*arrays, out=out),
        "bound us": function.bind(*arrays, out=out),
        "from Python us": lambda: function._call_python(*arrays),
        "numpy x * 2 + 1 us": lambda: first * two + one,
    }
    numba = _numba()
    if numba is not None:
        jitted = numba.njit(_affine)
        candidates["numba x * 2 + 1 us"] = lambda: jitted(first)
    return {"inputs": count, **{name: time * 1e6 for name, time in best(candidates, seconds).items()}}


def _affine(x: Any) -> Any:
    return x * np.float32(2) + np.float32(1)


def best(candidates: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the seconds of one call of each, the best of alternating rounds."""
    counts = {name: calls_for(call, seconds) for name, call in candidates.items()}
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            times[name].append(seconds_per_call(call, counts[name]))
    return {name: min(found) for name, found in times.items()}


def _numba() -> Any:
    try:
        return importlib.import_module("numba")
    except ImportError:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("call_overhead", __doc__)
    options_parser.add_argument("--inputs", type=int, nargs="+", default=[1, 2, 4, 8], metavar="N")
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    if min(options.inputs) < 1:
        options_parser.error("a function has at least 1 input")
    return show(measure(options.inputs, options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
