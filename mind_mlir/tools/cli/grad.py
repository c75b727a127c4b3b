"""`mind-mlir grad`: differentiate a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from mind_mlir.tools.cli.options import (
    bind_option,
    compile_options,
    diagnostic_format,
    emit_option,
    extensions_option,
    file_argument,
    function_option,
    output_option,
    stage_options,
)
from mind_mlir.tools.cli.output import write_output

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session

DEFAULT_FORM = "canonical"


@click.command(name="grad")
@file_argument
@bind_option
@function_option("differentiate")
@click.option(
    "--wrt",
    metavar="NAMES",
    help="Inputs to differentiate with respect to, separated by commas; all float inputs unless given.",
)
@click.option("--given", is_flag=True, help="Take the outputs' cotangents as inputs, instead of ones.")
@extensions_option
@emit_option(DEFAULT_FORM)
@compile_options("grad")
@output_option
@diagnostic_format
@stage_options
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    func: str | None,
    wrt: str | None,
    given: bool,
    extensions: bool,
    emit: str | None,
    options: CompileOptions,
    output: str | None,
    stages: Mapping[str, Any],
) -> None:
    """Differentiate a program and print its gradient module.

    The gradient module returns the program's outputs, then one gradient for each chosen input: that of the
    sum of all outputs, or, with --given, of the outputs weighted by the inputs cotangent_0, cotangent_1, ...
    """
    from mind_mlir.tools.cli.forms import print_form  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.programs import gradient_module  # noqa: PLC0415 -- loads numpy, which --help and completion do without
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- as above

    log = StageLog.of(session, **stages)
    names = [name.strip() for name in wrt.split(",")] if wrt is not None else None
    gradient = gradient_module(
        log.read(file, func, extents), log, function=func, wrt=names, given=given, extensions=extensions
    )
    write_output(print_form(gradient, emit or DEFAULT_FORM, log, options), output)
