"""`mind-mlir targets`: show the conversion targets, and what they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mind_mlir.tools.cli.completion import complete_conversion_target
from mind_mlir.tools.cli.options import diagnostic_format

if TYPE_CHECKING:
    from mind_mlir.tools.cli.session import Session


@click.command(name="targets")
@click.argument("target", metavar="[TARGET]", required=False, shell_complete=complete_conversion_target)
@diagnostic_format
@click.pass_obj
def command(session: Session, target: str | None) -> None:
    """Show the conversion targets, and what they take; of TARGET, the dtypes of each operation, too.

    Targets of other packages that cannot be used are warnings, in whichever format is asked for.
    """
    from mind_mlir.conversion import conversion_target_problems, list_conversion_targets  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.conversion import named  # noqa: PLC0415 -- loads numpy, which --help and completion do without
    from mind_mlir.tools.cli.target_table import operation_table, target_table  # noqa: PLC0415 -- as above

    session.stage = "targets"
    if target is not None:
        chosen = named(target)
        click.echo(f"{target_table([chosen])}\n{operation_table(chosen)}", nl=False)
        return
    session.report(conversion_target_problems())
    click.echo(target_table(list_conversion_targets()), nl=False)
