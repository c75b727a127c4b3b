"""`mind-mlir explore`: write a page of what becomes of a program, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from mind_mlir.target import TARGETS
from mind_mlir.target import VARIABLE as TARGET_VARIABLE
from mind_mlir.tools.cli.completion import complete_file
from mind_mlir.tools.cli.options import (
    bind_option,
    check_runnable,
    check_variables,
    compile_options,
    constant_option,
    diagnostic_format,
    extensions_option,
    file_argument,
    function_option,
    input_option,
    seed_option,
)

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session
    from mind_mlir.tools.cli.stage_log import StageLog
    from mind_mlir.tools.explorer.exploration import Exploration
    from mind_mlir.tools.explorer.explore import ExploredGradient

#: How names end of pages that no ``-o`` names.
_SUFFIX = ".explorer.html"
#: The file that is standard input, and what a page of it is called.
_STDIN, _UNNAMED = "-", "program"


class _Request(NamedTuple):
    """What is explored of each file."""

    function: str | None
    extents: Mapping[str, int]
    constants: Mapping[str, str]
    inputs: tuple[str, ...]
    seed: int
    gradient: ExploredGradient | None
    profile: bool
    timing: bool


@click.command(name="explore")
@file_argument
@bind_option
@function_option("explore", "all exported ones unless given")
@click.option(
    "--target",
    "targets",
    type=click.Choice(TARGETS),
    multiple=True,
    help=f"The processor to compile for; {TARGET_VARIABLE} unless given, or this machine's. Given twice, the "
    "page compares them.",
)
@click.option(
    "--against",
    metavar="FILE",
    multiple=True,
    shell_complete=complete_file,
    help="Another program, which the page compares with FILE. Repeatable.",
)
@click.option("--grad", is_flag=True, help="Explore the gradient of the program.")
@click.option(
    "--wrt",
    metavar="NAMES",
    help="Inputs to differentiate with respect to, separated by commas; all float inputs unless given.",
)
@extensions_option
@click.option("--profile", is_flag=True, help="Run the program, and show what each thread does in a call.")
@input_option("What an input is where a profile is taken, as for mind-mlir run; random unless given.")
@seed_option
@compile_options("explore")
@constant_option
@click.option(
    "--timing", is_flag=True, help="Show how long each stage took; the page is another each time then."
)
@click.option("--count", is_flag=True, help="Print how many instructions are traced, and write no page.")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    shell_complete=complete_file,
    help="Write the page to PATH, or with '-' to standard output; to FILE's name with another end in the "
    "working directory unless given.",
)
@diagnostic_format
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    func: str | None,
    targets: tuple[str, ...],
    against: tuple[str, ...],
    grad: bool,
    wrt: str | None,
    extensions: bool,
    profile: bool,
    inputs: tuple[str, ...],
    seed: int,
    options: CompileOptions,
    constants: Mapping[str, str],
    timing: bool,
    count: bool,
    output: str | None,
) -> None:
    """Write a page of what becomes of a program: one file of HTML, which any browser shows.

    It has the program at each stage side by side, from the source to assembly. What
    is made of an operation, and what a line is made of, is shown in all of them; and
    what passes changed, why nests are scheduled as they are, where values lie in
    memory. The page loads nothing, and is the same for the same program.
    """
    if not grad and (wrt is not None or extensions):
        raise click.UsageError(f"{'--wrt' if wrt is not None else '--extensions'} is about --grad")
    if inputs and not profile:
        raise click.UsageError("--input is about --profile")
    if count and (output is not None or profile):
        raise click.UsageError("--count writes no page: leave out -o and --profile")
    check_variables()
    chosen = tuple(dict.fromkeys(targets)) or (None,)
    for target in chosen if profile else ():
        check_runnable(target)
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- loads numpy, which --help and completion do without
    from mind_mlir.tools.explorer.explore import ExploredGradient  # noqa: PLC0415 -- as above

    names = None if wrt is None else [name.strip() for name in wrt.split(",")]
    gradient = ExploredGradient(func, names, extensions) if grad else None
    request = _Request(func, extents, constants, inputs, seed, gradient, profile, timing)
    log = StageLog(session)
    each_target = [replace(options, target=target) for target in chosen]
    if count:
        _count(log, (file, *against), request, each_target)
    else:
        _write(log, (file, *against), request, each_target, output)


def _count(log: StageLog, files: tuple[str, ...], request: _Request, options: list[CompileOptions]) -> None:
    """Print how much is traced of each program for each target."""
    from mind_mlir.tools.cli.output import write_output  # noqa: PLC0415 -- as above
    from mind_mlir.tools.explorer.explore import target_in_words, traced_code  # noqa: PLC0415 -- as above

    for file in files:
        module, _ = _read(log, file, request)
        for each in options:
            with log.timed("explore"):
                found = traced_code(module, _prepared(each, file, request), request.gradient)
            share = found.traced / found.total if found.total else 1.0
            rest = [f"  {number} in {name}" for name, number in found.rest.most_common()]
            head = f"{file}: {share:.1%} are traced; {target_in_words(each.target)}"
            lines = [head, f"  {found.summary()}", *rest]
            write_output("\n".join(lines), None)


def _write(
    log: StageLog,
    files: tuple[str, ...],
    request: _Request,
    options: list[CompileOptions],
    output: str | None,
) -> None:
    """Write the page of all programs for all targets."""
    from mind_mlir.tools.cli.output import STDOUT, write_exactly, write_output  # noqa: PLC0415 -- as above
    from mind_mlir.tools.explorer.explore import explore  # noqa: PLC0415 -- as above
    from mind_mlir.tools.explorer.report import ExplorerReport  # noqa: PLC0415 -- as above
    from mind_mlir.tools.interruption import interruptible  # noqa: PLC0415 -- as above

    explorations = []
    for file in files:
        module, arguments = _read(log, file, request)
        title = _UNNAMED if file == _STDIN else file
        for each in options:
            work = partial(
                explore,
                module,
                _prepared(each, file, request),
                title=title,
                gradient=request.gradient,
                call=None if arguments is None else ((), arguments),
                timings=request.timing,
            )
            with log.timed("explore"):
                explorations.append(work() if arguments is None else interruptible(work))
    report = ExplorerReport(*explorations)
    path = output or f"{_UNNAMED if files[0] == _STDIN else Path(files[0]).stem}{_SUFFIX}"
    write_exactly([report.html], path)
    if path != STDOUT:
        write_output(
            "\n".join([f"{path}: {len(report.html.encode()):,} bytes", *_traced(explorations)]), None
        )


def _traced(explorations: list[Exploration]) -> Iterator[str]:
    """Yield how much is traced of each program, with its target where there are several."""
    several = len({each.target for each in explorations}) > 1
    for each in explorations:
        traced, total = each.traced
        if total:
            line = f"  {each.title}: {traced} of {total} instructions ({traced / total:.1%}) are traced"
            yield f"{line}; {each.target}" if several else line


def _prepared(options: CompileOptions, file: str, request: _Request) -> CompileOptions:
    """Return the options for a file: what is made of weights alone is computed before."""
    from mind_mlir.tools.cli.programs import ONNX  # noqa: PLC0415 -- as above

    return replace(options, prepares=bool(request.constants) or file.endswith(ONNX))


def _read(log: StageLog, file: str, request: _Request) -> tuple[Module, Mapping[str, Array] | None]:
    """Return a program as a module, and the arrays that it is called with if that is wanted."""
    from mind_mlir.ir.analysis.restriction import restricted  # noqa: PLC0415 -- as above
    from mind_mlir.passes.verify import verify  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.given import given  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.inputs import InputSpecs  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.programs import declared  # noqa: PLC0415 -- as above

    if request.profile:
        inputs = request.inputs if "random" in request.inputs else (*request.inputs, "random")
        specs = InputSpecs.parse(inputs)
        found = given(log, file, request.function, request.extents, request.constants, specs, request.seed)
        return found.module, found.arguments
    module = restricted(log.read(file, request.function, request.extents), request.function)
    with log.timed("verify"):
        verify(module)
    return declared(module, request.constants), None
