"""What a call of a `@jit` function costs beside its Executable, and beside jax: functions that do little.

The Executable takes the arrays one by one; what a `@jit` function takes is what Python passes: containers,
numbers, other shapes by turns.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import mind_mlir
from benchmarks.call_overhead import best
from benchmarks.command import parser, show
from benchmarks.measure import ROUND_SECONDS
from benchmarks.report import Report
from mind_mlir.support import pytrees

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

#: Calls after which native ones are in use (`mind_mlir/runtime/call.py`), and more.
_WARM = 300
#: Extents of every array.
_SHAPE = (8,)


def one(x: Any) -> Any:
    """Take an array."""
    return x * 2.0 + 1.0


def three(x: Any, y: Any, z: Any) -> Any:
    """Take three arrays."""
    return x * 2.0 + y + z


def ten(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Any:
    """Take ten arrays."""
    return a * 2.0 + b + c + d + e + f + g + h + i + j


def any_number(*arrays: Any) -> Any:
    """Take as many arrays as there are."""
    return arrays[0] * 2.0 + arrays[1]


def with_default(x: Any, y: Any, rate: Any = 0.5) -> Any:
    """Take two arrays and a number that a call may leave out."""
    return x * rate + y


def dictionary(params: Any, x: Any) -> Any:
    """Take a dict, and return one."""
    return {"w": params["w"] - x, "b": params["b"] + x}


def layers(params: Any, x: Any) -> Any:
    """Take a list of dicts, and return one like it, with a number."""
    return [{"w": layer["w"] - x, "b": layer["b"] * 2.0} for layer in params], x.sum()


class Case(NamedTuple):
    """Calls of a function: its arguments for each of the calls that take turns."""

    function: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]


def _array(start: int = 0) -> Any:
    return np.arange(start, start + _SHAPE[0], dtype=np.float32)


def cases() -> dict[str, Case]:
    """Return what is measured, by name."""
    x, y = _array(), _array(1)
    dict_ = {"w": x, "b": y}
    return {
        "1 array": Case(one, ((x,),)),
        "3 arrays": Case(three, ((x, y, x),)),
        "10 arrays": Case(ten, ((x,) * 10,)),
        "*arrays": Case(any_number, ((x, y),)),
        "default left out": Case(with_default, ((x, y),)),
        "a Python number": Case(with_default, ((x, y, 0.25),)),
        "a dict": Case(dictionary, ((dict_, x),)),
        "3 layers": Case(layers, (([dict_] * 3, x),)),
        "2 shapes by turns": Case(one, ((x,), (x[:4].copy(),))),
    }


def measure(seconds: float = ROUND_SECONDS) -> Report:
    """Time each case in each way to call it."""
    jax = _jax()
    notes = [
        "microseconds a call, the best of alternating rounds; vectors of 8 f32; more: of @jit than Executable"
    ]
    if jax is None:
        notes.append("with jax installed, there is a column for it")
    return Report(
        "calls of @jit functions", [_row(name, case, jax, seconds) for name, case in cases().items()], notes
    )


def _row(name: str, case: Case, jax: Any, seconds: float) -> Row:
    ours = mind_mlir.jit(case.function)
    compiled = [(ours.lower(*args).compile(), _leaves(ours, args)) for args in case.calls]
    candidates: dict[str, Callable[[], object]] = {
        "Executable us": lambda: [executable(*arrays) for executable, arrays in compiled],
        "@jit us": lambda: [ours(*args) for args in case.calls],
    }
    if jax is not None:
        theirs, calls = jax.jit(case.function), jax.device_put(case.calls)
        candidates["jax us"] = lambda: [jax.block_until_ready(theirs(*args)) for args in calls]
    for _ in range(_WARM):
        for call in candidates.values():
            call()
    found = {key: time * 1e6 / len(case.calls) for key, time in best(candidates, seconds).items()}
    more = found["@jit us"] - found["Executable us"]
    return {"arguments": name, **found, "more us": more}


def _leaves(function: mind_mlir.JitFunction, args: tuple[Any, ...]) -> list[Any]:
    """Return the arrays that the Executable takes for arguments."""
    bound = function.__signature__.bind(*args)
    bound.apply_defaults()
    return [np.asarray(leaf) for leaf in pytrees.flatten(bound.args)[0]]


def _jax() -> Any:
    try:
        return importlib.import_module("jax")
    except ImportError:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("jit", __doc__)
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    return show(measure(options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
