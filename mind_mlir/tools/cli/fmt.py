"""`mind-mlir fmt`: write `.mind` programs in their one style."""

from __future__ import annotations

import os

import click

from mind_mlir.tools.cli.completion import complete_file
from mind_mlir.tools.cli.options import diagnostic_format, output_option
from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS, Session


@click.command(name="fmt")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=complete_file)
@click.option("--check", is_flag=True, help="Change nothing; list what would change, and exit with 1.")
@click.option("--diff", is_flag=True, help="Change nothing; print what would change.")
@output_option
@diagnostic_format
@click.pass_obj
def command(session: Session, files: tuple[str, ...], check: bool, diff: bool, output: str | None) -> None:
    """Write .mind programs in their one style, in place; of a directory, all *.mind files in it.

    '-' reads standard input and writes to standard output. Comments stay. What is not well-formed is reported
    and left as it is.
    """
    if output is not None and (len(files) > 1 or check or diff or os.path.isdir(files[0])):  # noqa: PTH112 -- as for files
        raise click.UsageError("-o goes with one FILE, and neither with --check nor --diff")
    from mind_mlir.tools.cli.formatting import format_files  # noqa: PLC0415 -- --help and completion do without

    if format_files(session, files, output, check=check, diff=diff):
        click.get_current_context().exit(EXIT_DIAGNOSTICS)
