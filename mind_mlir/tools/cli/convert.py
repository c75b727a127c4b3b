"""`mind-mlir convert`: write a program in another format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mind_mlir.tools.cli.completion import complete_file
from mind_mlir.tools.cli.options import (
    bind_option,
    conversion_target_option,
    diagnostic_format,
    file_argument,
    function_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.tools.cli.session import Session

#: The formats: Core IR, and those of PTIR.
FORMATS = ("core", "json", "display", "compact")
#: What the names of files end with that hold PTIR; others hold Core IR.
_SUFFIXES = {".ptir.json": "json", ".ptir": "compact", ".json": "json"}


@click.command(name="convert")
@file_argument
@bind_option
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    shell_complete=complete_file,
    help="Write to PATH instead of standard output; the file appears whole or not at all.",
)
@click.option(
    "--to",
    "form",
    type=click.Choice(FORMATS),
    help="The format to write; unless given, PATH tells: .ptir.json is JSON, .ptir the compact text of PTIR, "
    "any other Core IR.",
)
@function_option("convert, with what it calls", "all exported ones unless given")
@conversion_target_option("to", required=False)
@diagnostic_format
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    output: str | None,
    form: str | None,
    func: str | None,
    target: str | None,
) -> None:
    """Write a program in another format: Core IR, PTIR as JSON, display text or compact text, or a target's.

    Between Core IR and PTIR goes what both can say; what the other one cannot is reported. What conversion
    targets there are, and what they take, is shown by 'mind-mlir targets'.
    """
    if target is not None:
        if form is not None:
            raise click.UsageError("--to and --target exclude one another")
        from mind_mlir.tools.cli.conversion import in_target, write_text  # noqa: PLC0415 -- as below

        write_text(in_target(session, file, target, extents, func).text, output)
        return
    chosen = form or (None if output is None else _by_name(output))
    if chosen is None:
        raise click.UsageError("say which format to write: --to, --target, or -o with a name that tells")
    from mind_mlir.tools.cli.conversion import converted, write_pieces  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    write_pieces(converted(session, file, chosen, extents, func), output)


def _by_name(path: str) -> str:
    return next((form for suffix, form in _SUFFIXES.items() if path.endswith(suffix)), "core")
