"""`mind-mlir check`: report everything that is wrong with programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from mind_mlir.diagnostics import Diagnostic, MindError
from mind_mlir.tools.cli.completion import complete_file
from mind_mlir.tools.cli.options import diagnostic_format
from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS, Session


@click.command(name="check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=complete_file)
@diagnostic_format
@click.pass_obj
def command(session: Session, files: tuple[str, ...]) -> None:
    """Report everything that is wrong with programs.

    JSON findings go to standard output, one object a line; the other formats go to standard error.
    """
    findings = [finding for file in files for finding in _check(session, file)]
    session.print(findings, sys.stdout if session.format == "json" else sys.stderr)
    if any(finding.severity == "error" for finding in findings):
        click.get_current_context().exit(EXIT_DIAGNOSTICS)


def _check(session: Session, file: str) -> Sequence[Diagnostic]:
    from mind_mlir.languages.programs.verification import check  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.programs import read_program  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    session.stage = "parse"
    try:
        module = read_program(session, file)
    except MindError as error:
        return error.diagnostics
    session.stage = "verify"
    return tuple(check(module))
