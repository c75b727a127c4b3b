"""What the optimiser makes of GPT-2 small: operations, scratch memory and time with and without its passes.

    python -m benchmarks.gpt2.optimiser [--layers 12] [--programs forward training decode]

Rows are programs with a set of passes: none of those over functions, `cse` and `dce`, these and `hoist`, all,
and all with the weights declared constant. Operations are those of the optimised form with its regions,
before layers become functions. Times are the least of several calls, which the rows make by turns.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.gpt2.timing import LENGTH, STEPS
from benchmarks.report import Report
from examples.gpt2.model import Config, decode_program, forward_program, loss_program
from examples.gpt2.reference import random_weights
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.optimize import MODULE_PASSES, PASSES, optimize
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.compiled_code import evaluation
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row
    from mind_mlir.ir.module import Module

TIMES = 5
EVERY = {each.name for each in PASSES}
LATER = {each.name for each in MODULE_PASSES}
#: The passes that are off, for each set of those that are on.
OFF: dict[str, set[str]] = {
    "none": EVERY,
    "cse": EVERY - {"cse", "dce"},
    "cse, hoist": EVERY - {"cse", "dce", "hoist"},
    "all": set(),
    "constants": set(),
}


@dataclass
class Variant:
    """One program with some passes, compiled; ``seconds`` is the least that a call has taken."""

    program: str
    passes: str
    executable: mind_mlir.Executable
    arguments: Sequence[Any]
    operations: int
    made: float
    seconds: float = float("inf")

    def run(self) -> None:
        """Call it, and keep the least time."""
        start = time.perf_counter()
        self.executable(*self.arguments)
        self.seconds = min(self.seconds, time.perf_counter() - start)

    def row(self) -> Row:
        """Return what the table shows."""
        return {
            "program": self.program,
            "passes": self.passes,
            "operations": self.operations,
            "scratch MB": self.executable["main"]._native.scratch_bytes / 1e6,
            "ms": 1e3 * self.seconds,
            "compile s": self.made,
        }


def variant(program: str, module: Module, passes: str, arguments: Sequence[Any], inputs: int) -> Variant:
    """Compile a module; its arguments after the first ``inputs`` are weights."""
    weights = {f"arg{number}": each for number, each in enumerate(arguments) if number >= inputs}
    constants = weights if passes == "constants" else None
    start = time.perf_counter()
    executable = mind_mlir.compile(module, disabled_passes=OFF[passes], constants=constants)
    made = time.perf_counter() - start
    evaluate = None
    if constants is not None:
        module, evaluate = (
            with_constants(verify(module), constants),
            evaluation(CompileOptions(prepares=True)),
        )
        arguments = arguments[:inputs]
    form = optimize(structured_form(module), OFF[passes] | LATER, evaluate=evaluate)
    count = sum(1 for function in form.functions for _ in operations_of(function.blocks))
    return Variant(program, passes, executable, arguments, count, made)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    options_parser = parser("optimiser", __doc__)
    options_parser.add_argument("--layers", type=int, default=12)
    options_parser.add_argument("--programs", nargs="+", default=["forward", "training", "decode"])
    options = options_parser.parse_args(arguments)
    config, rng = Config(layers=options.layers), np.random.default_rng(1)
    weights = list(random_weights(config).values())
    tokens, targets = rng.integers(0, config.vocabulary, (2, LENGTH)).astype(np.int32)
    positions = np.arange(STEPS, dtype=np.int32)
    programs: dict[str, tuple[Module, list[Any]]] = {
        "forward": (to_module(forward_program(config, LENGTH)), [tokens]),
        "training": (mind_mlir.differentiate(loss_program(config, LENGTH)).module, [tokens, targets]),
        "decode": (to_module(decode_program(config, STEPS)), [np.array(1, np.int32), positions]),
    }
    rows: list[Row] = []
    for program in options.programs:
        module, first = programs[program]
        sets = [each for each in OFF if program != "training" or each != "constants"]
        made = [variant(program, module, each, [*first, *weights], len(first)) for each in sets]
        for _ in range(TIMES):
            for each in made:
                each.run()
        rows += [each.row() for each in made]
    title = (
        f"GPT-2 small, {options.layers} layers: {LENGTH} tokens forward, a step of training, {STEPS} decoded"
    )
    return show(Report(title, rows), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
