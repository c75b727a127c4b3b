"""`mind-mlir buffers`: show the memory that compiled functions work in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mind_mlir.tools.cli.completion import complete_file
from mind_mlir.tools.cli.options import (
    bind_option,
    compile_options,
    diagnostic_format,
    file_argument,
    function_option,
)
from mind_mlir.tools.cli.output import write_output

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session


@click.command(name="buffers")
@file_argument
@bind_option
@function_option("show", "all exported ones unless given")
@compile_options("buffers")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    shell_complete=complete_file,
    help="Write a picture of the buffers, memory against time, to PATH (.svg); the file appears whole or "
    "not at all.",
)
@diagnostic_format
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    func: str | None,
    options: CompileOptions,
    output: str | None,
) -> None:
    """Show where the temporary values of a program lie in memory, and when.

    Each line of the table is a buffer of the scratch memory that a call works in: its place, its size, from
    which value to which it is in use, and the values it holds. Arguments and results are the caller's memory.
    """
    if output is not None and not output.endswith(".svg"):
        raise click.UsageError(f"-o {output}: the name must end in .svg")
    from mind_mlir.conversion.buffers import plan_buffers  # noqa: PLC0415 -- as above
    from mind_mlir.conversion.buffers.drawing import drawing  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    log = StageLog(session)
    module = log.read(file, func, extents)
    with log.timed("buffers"):
        plan = plan_buffers(
            module, function=func, target=options.target, winograd=options.winograd, bf16x6=options.bf16x6
        )
    write_output(str(plan), None)
    if output is not None:
        write_output(drawing(plan), output)
