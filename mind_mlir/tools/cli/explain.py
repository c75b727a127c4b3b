"""`mind-mlir explain`: explain a diagnostic code."""

from __future__ import annotations

import click

from mind_mlir.diagnostics.codes import CATALOGUE, explain, lookup, phase_of
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.cli.completion import complete_code
from mind_mlir.tools.cli.output import write_output


@click.command(name="explain")
@click.argument("codes", metavar="[CODE]...", nargs=-1, shell_complete=complete_code)
@click.option("--list", "list_all", is_flag=True, help="List every code in one line.")
def command(codes: tuple[str, ...], list_all: bool) -> None:
    """Explain diagnostic codes, for example E3001: what they mean, and how to mend the program."""
    if list_all == bool(codes):
        raise click.UsageError("give one or more codes, or --list")
    if list_all:
        lines = [f"{entry.code}  {phase_of(entry.code):<12}  {entry.title}" for entry in CATALOGUE.values()]
        write_output("\n".join(lines), None)
        return
    entries = []
    for code in codes:
        entry = lookup(code)
        if entry is None:
            hint = did_you_mean(code, CATALOGUE) or "; 'mind-mlir explain --list' lists all"
            raise click.BadParameter(f"there is no code '{code}'{hint}")
        entries.append(entry)
    write_output("\n".join(explain(entry) for entry in entries), None)
