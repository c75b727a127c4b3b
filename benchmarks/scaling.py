"""Time against size, and compile time against the length of a program; writes a page and a chart.

    python -m benchmarks.scaling [--output docs] [--threads 1,2] [--largest 4096]

Products and softmax are of squares, attention of 12 causal heads of 64, the block one of GPT-2 with as many
tokens; sizes are the powers of two from 16 and what lies in the middle between them. What should not jump is
the rate: operations, or bytes of memory, a second.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import mind_mlir
from benchmarks.large_programs import products, reductions
from benchmarks.measure import calls_for, seconds_per_call
from benchmarks.peers import machine
from benchmarks.peers.narrow_programs import block
from benchmarks.peers.references import HEADS, WIDTH
from examples.gpt2.builder import Body, Tensor, program
from mind_mlir import DType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir import Module

Points: TypeAlias = "list[tuple[int, float]]"

LEAST, LARGEST = 16, 4096
LENGTHS = (10, 30, 100, 300, 1000, 3000, 10000)
_DEPTH = WIDTH // HEADS
_ROUNDS, _ROUND_SECONDS = 5, 0.02
_NAME = "scaling"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is run at many sizes.

    Attributes:
        shapes: The shapes of its inputs at a size, by name; all are f32.
        write: Appends it to a program.
        work: How much it does at a size, in units of ``rate``.
        rate: A milliard of what, a second.
    """

    shapes: Callable[[int], Mapping[str, tuple[int, ...]]]
    write: Callable[[Body, Mapping[str, Tensor]], Tensor]
    work: Callable[[int], float]
    rate: str


def _causal(body: Body, v: Mapping[str, Tensor]) -> Tensor:
    scores = body.binary("Mul", body.product(v["q"], v["k"], 1, (2, 2)), _DEPTH**-0.5)
    row, column = (body.apply("Iota", shape=scores.shape, axis=axis, dtype=DType.SI32) for axis in (1, 2))
    seen = body.apply("Compare", column, row, op="LessEqual")
    low = body.stretch(body.number(-math.inf, DType.F32), scores.shape)
    return body.product(body.softmax(body.apply("Select", seen, scores, low)), v["v"], 1, (2, 1))


def _block_shapes(size: int) -> dict[str, tuple[int, ...]]:
    rows = dict.fromkeys(("g1", "b1", "bp", "g2", "b2", "bo"), (WIDTH,))
    return rows | {
        "x": (1, size, WIDTH),
        "wa": (WIDTH, 3 * WIDTH),
        "ba": (3 * WIDTH,),
        "wp": (WIDTH, WIDTH),
        "wf": (WIDTH, 4 * WIDTH),
        "bf": (4 * WIDTH,),
        "wo": (4 * WIDTH, WIDTH),
    }


SUBJECTS: Mapping[str, Subject] = {
    "matmul": Subject(
        lambda n: {"a": (n, n), "b": (n, n)},
        lambda body, v: body.product(v["a"], v["b"], 0, (1, 0)),
        lambda n: 2.0 * n**3,
        "GFLOP/s",
    ),
    "softmax": Subject(
        lambda n: {"x": (n, n)}, lambda body, v: body.softmax(v["x"]), lambda n: 8.0 * n * n, "GB/s"
    ),
    "attention": Subject(
        lambda n: dict.fromkeys("qkv", (HEADS, n, _DEPTH)), _causal, lambda n: 2.0 * WIDTH * n * n, "GFLOP/s"
    ),
    "block": Subject(_block_shapes, block, lambda n: 24.0 * WIDTH**2 * n + 2.0 * WIDTH * n * n, "GFLOP/s"),
}
PROGRAMS: Mapping[str, Callable[[int], Module]] = {"reductions": reductions, "products": products}


def sizes(largest: int) -> list[int]:
    """Return the sizes up to ``largest``."""
    powers = [1 << n for n in range(LEAST.bit_length() - 1, largest.bit_length())]
    between = [power * 3 // 2 for power in powers[:-1]]
    return sorted(power for power in (*powers, *between) if power <= largest)


def seconds(subject: Subject, size: int) -> float:
    """Return the least time of a call."""
    body, rng = Body([]), np.random.default_rng(1)
    shapes = subject.shapes(size)
    inputs = {name: body.parameter(DType.F32, *shape) for name, shape in shapes.items()}
    compiled = mind_mlir.compile(program(body, [subject.write(body, inputs)]))
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes.values()]

    def call() -> object:
        return compiled(*arrays)

    count = calls_for(call, _ROUND_SECONDS)
    return min(seconds_per_call(call, count) for _ in range(_ROUNDS))


def compile_seconds(write: Callable[[int], Module], length: int) -> float:
    """Return the least time of two compilations; of one where it takes long."""
    module = write(length)
    found: list[float] = []
    while not found or (len(found) < 2 and found[0] < 1):
        start = time.perf_counter()
        mind_mlir.compile(module)
        found.append(time.perf_counter() - start)
    return min(found)


def measure(largest: int, threads: Sequence[int]) -> dict[str, Any]:
    """Return all points: for each number of threads and subject, and for each program."""
    runs: dict[str, dict[str, Points]] = {}
    for count in threads:
        mind_mlir.set_num_threads(count)
        runs[str(count)] = {
            name: [(size, seconds(subject, size)) for size in sizes(largest)]
            for name, subject in SUBJECTS.items()
        }
    lengths = [length for length in LENGTHS if length <= 4 * largest]
    compiling = {name: [(n, compile_seconds(write, n)) for n in lengths] for name, write in PROGRAMS.items()}
    return {"runs": runs, "compiling": compiling}


def page(found: Mapping[str, Any], command: str) -> str:
    """Return the measurement as a page."""
    lines = [
        "# Time against size",
        "",
        f"Measured by `{command}`.",
        "",
        "Least times of calls, and what that is as a rate: operations of products, or bytes read and",
        "written, where causal attention counts half of its square. Small sizes are the time of a call,",
        "the largest ones leave caches; nothing else should make a rate jump.",
        "",
        *(f"- {fact}" for fact in machine.facts()),
        "",
        f"![Rates against sizes, and compile time against length]({_NAME}.png)",
        "",
    ]
    for threads, subjects in found["runs"].items():
        lines += [f"## {threads} thread{'s' if threads != '1' else ''}", ""]
        units = [f"{name}, us | {SUBJECTS[name].rate}" for name in subjects]
        lines += [f"| size | {' | '.join(units)} |", "|" + "---:|" * (2 * len(units) + 1)]
        for place, (size, _) in enumerate(next(iter(subjects.values()))):
            cells = []
            for name, points in subjects.items():
                taken = points[place][1]
                cells.append(f"{taken * 1e6:.4g} | {SUBJECTS[name].work(size) / taken / 1e9:.3g}")
            lines.append(f"| {size} | {' | '.join(cells)} |")
        lines.append("")
    programs = found["compiling"]
    titles = [f"{name}, ms | us an operation" for name in programs]
    lines += ["## Compile time", "", f"| operations | {' | '.join(titles)} |"]
    lines.append("|" + "---:|" * (2 * len(titles) + 1))
    for place, (length, _) in enumerate(next(iter(programs.values()))):
        cells = [f"{p[place][1] * 1e3:.4g} | {p[place][1] / length * 1e6:.3g}" for p in programs.values()]
        lines.append(f"| {length} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Write the chart: rates against sizes, and compile time against length."""
    from matplotlib.figure import Figure  # noqa: PLC0415 -- optional, as for the chart of peers

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    panels = figure.subplots(2, 3).flatten()
    for panel, (name, subject) in zip(panels, SUBJECTS.items(), strict=False):
        for (threads, subjects), colour in zip(found["runs"].items(), ("#0072b2", "#d55e00"), strict=False):
            points = subjects[name]
            rates = [subject.work(size) / taken / 1e9 for size, taken in points]
            panel.plot(
                [size for size, _ in points],
                rates,
                "o-",
                ms=3,
                color=colour,
                label=f"{threads} thread{'s' if threads != '1' else ''}",
            )
        panel.set(title=name, ylabel=subject.rate, xlabel="size", xscale="log")
        panel.set_ylim(bottom=0)
    for name, points in found["compiling"].items():
        panels[4].plot(*zip(*points, strict=True), "o-", ms=3, label=name)
    panels[4].set(title="compiling", xlabel="operations", ylabel="seconds", xscale="log", yscale="log")
    panels[4].legend(frameon=False)
    panels[0].legend(frameon=False)
    panels[5].set_axis_off()
    for panel in panels[:5]:
        panel.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write page and chart; each number of threads in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build") / _NAME, metavar="DIR")
    parser.add_argument("--threads", default="1,2", metavar="1,2")
    parser.add_argument("--largest", type=int, default=LARGEST, metavar="SIZE")
    options = parser.parse_args(arguments)
    threads = [int(each) for each in options.threads.split(",")]
    found = measure(options.largest, threads)
    options.output.mkdir(parents=True, exist_ok=True)
    command = " ".join(["python -m benchmarks.scaling", *(sys.argv[1:] if arguments is None else arguments)])
    text = page(found, command)
    (options.output / f"{_NAME}.md").write_text(text, encoding="utf-8")
    (options.output / f"{_NAME}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
    draw(found, options.output / f"{_NAME}.png")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
