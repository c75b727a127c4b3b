"""`mind-mlir convert`, `legality` and `targets`: programs in other formats, and what these take."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from mind_mlir.tools.cli.completion import complete_conversion_target
from mind_mlir.tools.cli.options import (
    bind_option,
    conversion_target_option,
    diagnostic_format,
    file_argument,
    function_option,
    output_option,
)
from mind_mlir.tools.cli.output import write_exactly
from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS, Session

#: The formats: Core IR, and those of PTIR.
FORMATS = ("core", "json", "display", "compact")
#: What the names of files end with that hold PTIR; others hold Core IR.
_SUFFIXES = {".ptir.json": "json", ".ptir": "compact", ".json": "json"}


@click.command(name="convert")
@file_argument
@bind_option
@output_option
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
def convert(
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
        from mind_mlir.tools.cli.conversion import in_target  # noqa: PLC0415 -- loads numpy, which --help and completion do without

        text = in_target(session, file, target, extents, func).text
        write_exactly([text] if isinstance(text, str) else text, output)
        return
    chosen = form or (None if output is None else _by_name(output))
    if chosen is None:
        raise click.UsageError("say which format to write: --to, --target, or -o with a name that tells")
    from mind_mlir.tools.cli.conversion import converted  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    write_exactly(converted(session, file, chosen, extents, func), output)


def _by_name(path: str) -> str:
    return next((form for suffix, form in _SUFFIXES.items() if path.endswith(suffix)), "core")


@click.command(name="legality")
@file_argument
@bind_option
@function_option("look at, with what it calls", "all exported ones unless given")
@conversion_target_option("to ask", required=True)
@diagnostic_format
@click.pass_obj
def legality(session: Session, file: str, extents: Mapping[str, int], func: str | None, target: str) -> None:
    """Report everything that a conversion target does not take of a program; nothing is converted.

    JSON findings go to standard output, one object a line; the other formats go to standard error.
    """
    from mind_mlir.tools.cli.conversion import illegal  # noqa: PLC0415 -- as above

    findings = illegal(session, file, target, extents, func)
    session.print(findings, sys.stdout if session.format == "json" else sys.stderr)
    if findings:
        click.get_current_context().exit(EXIT_DIAGNOSTICS)


@click.command(name="targets")
@click.argument("target", metavar="[TARGET]", required=False, shell_complete=complete_conversion_target)
@diagnostic_format
@click.pass_obj
def targets(session: Session, target: str | None) -> None:
    """Show the conversion targets, and what they take; of TARGET, the dtypes of each operation, too.

    Targets of other packages that cannot be used are warnings, in whichever format is asked for.
    """
    from mind_mlir.conversion import conversion_target_problems, list_conversion_targets  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.conversion import named  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.target_table import operation_table, target_table  # noqa: PLC0415 -- as above

    session.stage = "targets"
    if target is not None:
        chosen = named(target)
        click.echo(f"{target_table([chosen])}\n{operation_table(chosen)}", nl=False)
        return
    session.report(conversion_target_problems())
    click.echo(target_table(list_conversion_targets()), nl=False)
