"""How long the first call takes of the loss and gradients of a network of three layers, beside jax's.

Each framework runs in processes of its own, by turns: it is imported, compiles something small, then calls
the function for the first time, which traces, differentiates and compiles it; then once more. With --torch:
torch.compile, which takes seconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.command import parser, show
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

_CLASSES, _BATCH = 10, 32


def loss(layers: Any, x: Any, y: Any) -> Any:
    """Return the mean squared error of a network; written for any library of arrays."""
    for layer in layers[:-1]:
        x = (x @ layer["w"] + layer["b"]).clip(0.0)
    error = x @ layers[-1]["w"] + layers[-1]["b"] - y
    return (error * error).mean()


def small(x: Any) -> Any:
    """Return something that is quickly compiled."""
    return x * 2.0 + 1.0


def data(width: int) -> tuple[Any, Any, Any]:
    """Return layers of ``width`` inputs and twice as many between them, and a batch."""
    random = np.random.default_rng(0)
    widths = [width, 2 * width, 2 * width, _CLASSES]
    layers = [
        {
            "w": (random.standard_normal((rows, columns)) / rows**0.5).astype(np.float32),
            "b": np.zeros(columns, np.float32),
        }
        for rows, columns in pairwise(widths)
    ]
    x = random.standard_normal((_BATCH, width)).astype(np.float32)
    y = np.eye(_CLASSES, dtype=np.float32)[random.integers(0, _CLASSES, _BATCH)]
    return layers, x, y


def _ours() -> tuple[Callable[..., Any], Callable[..., Any]]:
    import mind_mlir  # noqa: PLC0415 -- the import is measured

    return mind_mlir.jit(small), mind_mlir.value_and_grad(loss)


def _jax() -> tuple[Callable[..., Any], Callable[..., Any]]:
    jax: Any = importlib.import_module("jax")
    compiled, gradients = jax.jit(small), jax.jit(jax.value_and_grad(loss))
    return lambda x: jax.block_until_ready(compiled(x)), lambda *args: jax.block_until_ready(gradients(*args))


def _torch() -> tuple[Callable[..., Any], Callable[..., Any]]:
    torch: Any = importlib.import_module("torch")
    compiled, gradients = torch.compile(small), torch.compile(torch.func.grad_and_value(loss))

    def call(layers: Any, x: Any, y: Any) -> Any:
        tensors = [{name: torch.from_numpy(array) for name, array in layer.items()} for layer in layers]
        found, value = gradients(tensors, torch.from_numpy(x), torch.from_numpy(y))
        return value, found

    return lambda x: compiled(torch.from_numpy(x)), call


FRAMEWORKS = {"mind_mlir": _ours, "jax": _jax, "torch": _torch}


def child(name: str, width: int) -> dict[str, float]:
    """Return the seconds of each step in this process, and the loss."""
    arguments = data(width)
    times = [time.perf_counter()]
    warm, function = FRAMEWORKS[name]()
    times.append(time.perf_counter())
    warm(arguments[1])
    times.append(time.perf_counter())
    value, _ = function(*arguments)
    times.append(time.perf_counter())
    function(*arguments)
    times.append(time.perf_counter())
    steps = ("import", "small", "first", "second")
    return {"loss": float(value), **dict(zip(steps, np.diff(times).tolist(), strict=True))}


def measure(frameworks: Sequence[str], widths: Sequence[int], rounds: int) -> Report:
    """Run each framework ``rounds`` times for each width, by turns."""
    rows: list[Row] = []
    for width in widths:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in frameworks}
        for _ in range(rounds):
            for name in frameworks:
                found[name].append(_in_process(name, width))
        losses = [runs[0]["loss"] for runs in found.values()]
        np.testing.assert_allclose(losses, losses[0], rtol=1e-4)
        for name, runs in found.items():
            row: Row = {"width": width, "framework": name}
            for step in ("import", "small", "first", "second"):
                row[f"{step} ms"] = statistics.median(run[step] for run in runs) * 1e3
            row["least first ms"] = min(run["first"] for run in runs) * 1e3
            rows.append(row)
    notes = [
        f"medians of {rounds} processes; small: the first thing that is compiled; first: value and gradients",
        "of three layers, traced, differentiated, compiled and called; second: called again",
    ]
    return Report("first call of the loss and gradients of a network of three layers", rows, notes)


def _in_process(name: str, width: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.first_call", "--child", name, "--widths", str(width)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- our own
    if result.returncode:
        raise RuntimeError(result.stderr)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("first_call", __doc__)
    options_parser.add_argument("--widths", type=int, nargs="+", default=[64, 256], metavar="N")
    options_parser.add_argument("--rounds", type=int, default=5)
    options_parser.add_argument("--torch", action="store_true", help="measure torch.compile, too")
    options_parser.add_argument(
        "--child", choices=list(FRAMEWORKS), metavar="NAME", help="measure in this process"
    )
    options = options_parser.parse_args(arguments)
    if options.child:
        print(json.dumps(child(options.child, options.widths[0])))
        return 0
    others = ["jax", *(["torch"] if options.torch else [])]
    frameworks = ["mind_mlir", *(name for name in others if importlib.util.find_spec(name))]
    return show(measure(frameworks, options.widths, options.rounds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
