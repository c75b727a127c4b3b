"""`mind-mlir machine`: show what schedules know of a processor."""

from __future__ import annotations

import click

from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.cli.options import check_variables
from mind_mlir.tools.cli.output import write_output


@click.command(name="machine")
@click.argument("name", metavar="[PROCESSOR]", default="native")
@click.option("--measure", is_flag=True, help="Measure this machine anew, and keep that.")
def command(name: str, measure: bool) -> None:
    """Show what is known of a processor: its vectors and caches, and how long a core takes for what.

    That is this machine, unless a level such as avx2 or a processor such as znver4 is named. Its rates are
    measured when they are first asked for, and kept beside the cache; MIND_MLIR_RATES=stated takes those that
    are stated of processors like it.
    """
    from mind_mlir.target import NATIVE, PROCESSORS, TARGETS, named_target  # noqa: PLC0415 -- which --help does without

    check_variables()
    if name not in (*TARGETS, *PROCESSORS):
        hint = did_you_mean(name, (*TARGETS, *PROCESSORS))
        raise click.BadParameter(f"there is no processor '{name}'{hint}", param_hint="PROCESSOR")
    if measure:
        from mind_mlir.profiling import rates  # noqa: PLC0415 -- as above

        if name != NATIVE:
            raise click.UsageError("--measure is about this machine: name no processor")
        try:
            rates.measure_anew()
        except OSError as error:
            raise click.UsageError(f"what is measured cannot be kept: {error}") from None
    write_output(named_target(name).in_words() + "\n", None)
