"""`mind-mlir reduce`: make a program smaller that still fails."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mind_mlir.tools.cli.options import (
    bind_option,
    check_runnable,
    compile_options,
    diagnostic_format,
    file_argument,
    function_option,
    output_option,
    seed_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session
    from mind_mlir.tools.cli.stage_log import StageLog

_PLACE = "{}"
_UNSEEN: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


@click.command(name="reduce")
@file_argument
@click.option(
    "--test",
    metavar="CMD",
    help="A command of the shell that ends with 0 where a program, whose file it is given in the place of {} "
    "or at its end, is still of interest.",
)
@bind_option
@seed_option
@function_option("reduce")
@click.option(
    "--seconds",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long to search.",
)
@click.option(
    "--timeout",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    help="How many seconds a program may take to be compiled and run; one that takes longer hangs.",
)
@output_option
@compile_options("reduce")
@diagnostic_format
@click.pass_obj
def command(
    session: Session,
    file: str,
    test: str | None,
    extents: Mapping[str, int],
    seed: int,
    func: str | None,
    seconds: float,
    timeout: float,
    output: str | None,
    options: CompileOptions,
) -> None:
    """Make a program smaller that the compiler fails on, and print what is left as Core IR.

    FILE is a program of any language or an ONNX model. It is compiled, run on
    random inputs, and compared with the interpreter; what is left fails in the same
    way: the same internal error, the same codes, a crash, a hang, or a result that
    differs. With --test a command decides instead, for example

    \b
      mind-mlir reduce model.mind --test 'mind-mlir run {} --input random | grep nan'

    Functions, outputs and operations are left out, the bodies of loops and branches
    take their places, and extents become small. How far it came stands on standard error.
    """  # noqa: D301 -- click reads the \b
    check_runnable(options.target)
    from mind_mlir.languages.core.printer import print_module  # noqa: PLC0415 -- as above
    from mind_mlir.passes.reduction.errors import reducible_form  # noqa: PLC0415 -- as above
    from mind_mlir.passes.reduction.parts import operation_count  # noqa: PLC0415 -- as above
    from mind_mlir.passes.reduction.search import reduced  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.output import write_output  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    module = reducible_form(_read(StageLog(session), file, func, extents))
    session.stage = "reduce"
    if test is not None:
        why, fails = f"for the test: {test}", _passes(test, timeout)
        if not fails(module):
            raise click.UsageError("--test: the command does not end with 0 for the program as it is")
    else:
        why, fails = _as_now(module, options, seed, timeout)
    trials = 0

    def counted(candidate: Module) -> bool:
        nonlocal trials
        trials += 1
        return fails(candidate)

    smallest = reduced(module, counted, trials=sys.maxsize, seconds=seconds)
    head = "".join(f"# {line}\n" for line in f"reduced {why}".splitlines())
    write_output(f"{head}{print_module(smallest)}", output)
    before, after = operation_count(module), operation_count(smallest)
    sys.stderr.write(f"{before:,} operations became {after:,} in {trials:,} trials\n")


def _read(log: StageLog, file: str, function: str | None, extents: Mapping[str, int]) -> Module:
    """Return the verified module of a program: a function with what it calls."""
    from mind_mlir.ir.analysis.restriction import restricted  # noqa: PLC0415 -- as above
    from mind_mlir.ir.entry import entry_function  # noqa: PLC0415 -- as above
    from mind_mlir.passes.verify import verify  # noqa: PLC0415 -- as above

    module = verify(log.read(file, function, extents))
    return restricted(module, entry_function(module, function).name)


def _as_now(
    module: Module, options: CompileOptions, seed: int, timeout: float
) -> tuple[str, Callable[[Module], bool]]:
    """Return how ``module`` fails, in words, and what tells whether another fails so."""
    from mind_mlir.tools.cli.given import random_inputs  # noqa: PLC0415 -- as above
    from mind_mlir.tools.reducing.outcomes import Failure  # noqa: PLC0415 -- as above

    failure = Failure(module, options, partial(random_inputs, seed=seed), timeout)
    if failure.outcome.kind == "right":
        raise click.UsageError(
            "the program is compiled, runs, and agrees with the interpreter on random inputs: "
            "say what is wrong with it, with --test CMD"
        )
    return f"for: {failure.outcome.message}", failure.shows_in


def _passes(test: str, timeout: float) -> Callable[[Module], bool]:
    """Return what tells whether a command of the shell ends with 0 for the file of a program."""
    from mind_mlir.languages.core.printer import print_module  # noqa: PLC0415 -- as above

    def fails(candidate: Module) -> bool:
        with tempfile.TemporaryDirectory(prefix="mind-mlir-reduce-") as directory:
            path = Path(directory) / "program.ir"
            path.write_text(print_module(candidate), encoding="utf-8")
            named = shlex.quote(str(path))
            line = test.replace(_PLACE, named) if _PLACE in test else f"{test} {named}"
            try:
                ended = subprocess.run(  # noqa: S602 -- the command is the user's own
                    line, shell=True, check=False, timeout=timeout, **_UNSEEN
                )
            except subprocess.TimeoutExpired:
                return False
            return ended.returncode == 0

    return fails
