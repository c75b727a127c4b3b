"""`mind-mlir legality`: report everything that a conversion target does not take of a program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mind_mlir.tools.cli.options import (
    bind_option,
    conversion_target_option,
    diagnostic_format,
    file_argument,
    function_option,
)
from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS, Session

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command(name="legality")
@file_argument
@bind_option
@function_option("look at, with what it calls", "all exported ones unless given")
@conversion_target_option("to ask", required=True)
@diagnostic_format
@click.pass_obj
def command(session: Session, file: str, extents: Mapping[str, int], func: str | None, target: str) -> None:
    """Report everything that a conversion target does not take of a program; nothing is converted.

    JSON findings go to standard output, one object a line; the other formats go to standard error.
    """
    from mind_mlir.tools.cli.conversion import illegal  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    findings = illegal(session, file, target, extents, func)
    session.print(findings, sys.stdout if session.format == "json" else sys.stderr)
    if findings:
        click.get_current_context().exit(EXIT_DIAGNOSTICS)
