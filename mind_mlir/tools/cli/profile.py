"""`mind-mlir profile`: show where the time of a program goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mind_mlir.tools.cli.completion import complete_file
from mind_mlir.tools.cli.options import (
    bind_option,
    check_runnable,
    compile_options,
    constant_option,
    diagnostic_format,
    file_argument,
    function_option,
    input_option,
    seed_option,
    weights_option,
)

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session


@click.command(name="profile")
@file_argument
@bind_option
@input_option("What an input is, as for mind-mlir run; random unless given.")
@weights_option("Inputs that no --input names are the tensors of FILE of their names, as for run.")
@seed_option
@function_option("profile")
@compile_options("profile")
@constant_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON rather than a table; times are in seconds.")
@click.option(
    "--trace",
    metavar="PATH",
    shell_complete=complete_file,
    help="Write the timeline of all runs to PATH, for ui.perfetto.dev or chrome://tracing.",
)
@diagnostic_format
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    inputs: tuple[str, ...],
    weights: str | None,
    seed: int,
    func: str | None,
    options: CompileOptions,
    constants: Mapping[str, str],
    as_json: bool,
    trace: str | None,
) -> None:
    """Compile a program, run it for some tenths of a second, and show where its time goes.

    Each line is a nest of loops, as compile --emit=schedule numbers them: how long it
    takes, how many threads compute on average meanwhile, the bytes that it has to move
    and the operations that it has to do in each second, how much of what this machine
    could do that is, and what limits it. What is in no nest stands below.
    """
    check_runnable(options.target)
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- as above
    from mind_mlir.runtime.threads import set_num_threads  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.given import given  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.inputs import InputSpecs  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.output import write_output  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.programs import ONNX  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- loads numpy, which --help and completion do without
    from mind_mlir.tools.interruption import interruptible  # noqa: PLC0415 -- as above

    if options.threads is not None:
        set_num_threads(options.threads)
    log = StageLog(session)
    specs = InputSpecs.parse((*inputs, "random") if "random" not in inputs else inputs, weights)
    program = given(log, file, func, extents, constants, specs, seed)
    options = replace(options, prepares=bool(constants) or file.endswith(ONNX), cache=False)
    executable = Executable(program.module, options)
    session.stage = "run"
    profile = interruptible(lambda: executable.profile(**program.arguments))
    write_output(profile.to_json() if as_json else profile.table(), None)
    if trace is not None:
        write_output(profile.to_trace(), trace)
