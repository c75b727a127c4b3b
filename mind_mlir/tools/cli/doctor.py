"""`mind-mlir doctor`: what this installation is, and whether it works."""

from __future__ import annotations

import click

from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, a list of findings.")
@click.option(
    "--self-test/--no-self-test", default=True, help="Compile and run programs, in some seconds; yes."
)
def command(as_json: bool, self_test: bool) -> None:
    """Show what this installation and machine are, and whether the compiler works on them.

    Versions, the processor and its limits as the compiler sees them, threads, the cache
    and the variables that are set; then programs are compiled, run and compared with
    the interpreter. What is wrong stands at the end, with what to do, and the exit code
    is 1. A report of a bug is best with all of this.
    """
    from mind_mlir.tools.cli.output import write_output  # noqa: PLC0415 -- as above
    from mind_mlir.tools.doctor import installation, report  # noqa: PLC0415 -- loads numpy, which --help does without
    from mind_mlir.tools.doctor.self_test import self_test as tested  # noqa: PLC0415 -- as above

    parts = (installation.versions, installation.machine, installation.cache, installation.variables)
    found = [finding for part in (*parts, *((tested,) if self_test else ())) for finding in part()]
    write_output(report.as_json(found) if as_json else report.as_text(found), None)
    if any(each.trouble for each in found):
        click.get_current_context().exit(EXIT_DIAGNOSTICS)
