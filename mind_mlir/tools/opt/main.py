"""`mind-opt`: mlir-opt with the `mind` dialect and our lowering stages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mind_mlir import __version__
from mind_mlir.support.interrupts import held
from mind_mlir.tools.cli.options import check_variables, output_option
from mind_mlir.tools.cli.output import write_output
from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS, Session
from mind_mlir.tools.cli.streams import prepare_streams
from mind_mlir.tools.cli.supervisor import supervise
from mind_mlir.tools.opt.command import (
    DUMPS,
    LIMITS,
    PRINTING,
    OptionalValue,
    Tool,
    dump_options,
    printing_options,
)
from mind_mlir.tools.opt.ir_printing import Dumps, Printing, Selection
from mind_mlir.tools.opt.mlir_names import MLIR_DIALECTS, MLIR_PASSES, PASSES
from mind_mlir.tools.opt.pass_timing import DISPLAYS, Display, Timing

if TYPE_CHECKING:
    from mind_mlir.tools.opt.pass_pipeline import PipelinePass
    from mind_mlir.tools.opt.pass_plan import Step

SPLIT_MARKER = "// -----"


def _list_passes(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    width = max(map(len, PASSES))
    lines = [f"  --{name:<{width}}  {summary}" for name, summary in PASSES.items()]
    write_output("\n".join([*lines, *(f"  --{name}" for name in MLIR_PASSES)]), None)
    context.exit()


def _show_dialects(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    write_output(f"Available Dialects: {','.join(sorted((*MLIR_DIALECTS, 'mind')))}", None)
    context.exit()


@click.command(
    cls=Tool,
    name="mind-opt",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Passes run in the order in which they are given. Those for functions and the like run on each of "
    "them. One dash does for two, and flags take '=true' and '=false'. Exit codes: 0 success, "
    "1 diagnostics, a crash of MLIR's included, 2 wrong usage, 70 internal error.",
)
@click.argument("file", metavar="[FILE]", default="-")
@output_option
@click.option(
    "--pass-pipeline",
    metavar="TEXT",
    help="The passes to run, for example 'builtin.module(convert-mind-to-linalg,func.func(cse))'.",
)
@click.option(
    "--split-input-file",
    cls=OptionalValue,
    value=SPLIT_MARKER,
    metavar="[=MARKER]",
    help=f"Work on the parts between lines '{SPLIT_MARKER}', or MARKER, apart.",
)
@click.option(
    "--verify-each/--no-verify-each", default=True, help="Verify after each pass; on unless turned off."
)
@click.option("--allow-unregistered-dialect", is_flag=True, help="Accept operations of unknown dialects.")
@printing_options
@dump_options
@click.option("--mlir-timing", is_flag=True, help="Print how long everything took, to standard error.")
@click.option(
    "--mlir-timing-display",
    type=click.Choice(DISPLAYS),
    default="tree",
    help="How: 'tree' as things ran, or 'list' with what took longest first.",
)
@click.option("--mlir-disable-threading", is_flag=True, help="Taken for mlir-opt's sake: it always is.")
@click.option("--dump-pass-pipeline", is_flag=True, help="Print the passes that will run to standard error.")
@click.option(
    "--list-passes",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_passes,
    help="List the passes and exit.",
)
@click.option(
    "--show-dialects",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_dialects,
    help="List the dialects and exit.",
)
@click.version_option(__version__, prog_name="mind-opt")
@click.pass_context
def command(
    context: click.Context,
    /,
    file: str,
    output: str | None,
    pass_pipeline: str | None,
    split_input_file: str | None,
    mlir_timing: bool,
    mlir_timing_display: Display,
    verify_each: bool,
    allow_unregistered_dialect: bool,
    dump_pass_pipeline: bool,
    **options: Any,
) -> None:
    """Run passes over MLIR, which may hold the mind dialect.

    FILE may be '-' for standard input, which is also read when none is given.
    """
    passes: list[PipelinePass] = context.meta.get("passes", [])
    if passes and pass_pipeline is not None:
        names = ", ".join(one.name for one in passes)
        raise click.UsageError(f"give --pass-pipeline or single passes ({names}), not both")
    check_variables()
    timing = Timing()
    session = context.ensure_object(Session)
    with timing.timed("Import of MLIR"), held():
        from mind_mlir.tools.opt.driver import Driver  # noqa: PLC0415 -- loads MLIR, which --help does without
        from mind_mlir.tools.opt.pass_plan import pipeline_text  # noqa: PLC0415 -- as above
        from mind_mlir.tools.opt.source import read_parts  # noqa: PLC0415 -- as above

    dumps = _dumps(options)
    each = bool(dumps) or mlir_timing or dump_pass_pipeline
    driver = Driver(
        session,
        _plan(context, pass_pipeline, dumps, each=each),
        Printing(**{name: options[name] for name in (*PRINTING, *LIMITS)}),
        dumps,
        timing,
        verify_each,
        allow_unregistered_dialect,
    )
    if dump_pass_pipeline:
        sys.stderr.write(pipeline_text(driver.steps))
    printed = [driver.run(part) for part in read_parts(file, split_input_file)]
    text = f"{split_input_file or SPLIT_MARKER}\n".join(part for part in printed if part is not None)
    if output is None or all(part is not None for part in printed):
        write_output(text, output) if text else None
    if mlir_timing:
        sys.stderr.write(timing.report(mlir_timing_display))
    if any(part is None for part in printed):
        context.exit(EXIT_DIAGNOSTICS)


def _dumps(options: dict[str, Any]) -> Dumps:
    return Dumps(
        _selection(options["before_passes"], every=options["before_all"]),
        _selection(options["after_passes"], every=options["after_all"]),
        **{name: options[name] for name in DUMPS},
    )


def _selection(given: Sequence[str], *, every: bool) -> Selection:
    names = (name.strip().lstrip("-") for text in given for name in text.split(","))
    return Selection(every, frozenset(names))


@held()
def _plan(context: click.Context, pipeline: str | None, dumps: Dumps, *, each: bool) -> tuple[Step, ...]:
    """Return the steps to run; every name on the command line is looked up before anything is read."""
    from mind_mlir.mlir.bindings import new_context  # noqa: PLC0415 -- loads MLIR, which --help does without
    from mind_mlir.tools.opt.pass_plan import (  # noqa: PLC0415 -- as above
        check_pass_name,
        plan_passes,
        plan_pipeline,
    )

    with new_context():
        for name in sorted(dumps.before.names | dumps.after.names):
            check_pass_name(name)
        if pipeline is not None:
            return plan_pipeline(pipeline, each=each)
        assert isinstance(context.command, Tool)
        options = [name.lstrip("-") for name in context.command.named_options(context)]
        return plan_passes(context.meta.get("passes", []), each=each, options=options)


def main() -> None:
    """Run `mind-opt` on the arguments of the process."""
    prepare_streams()  # before anything is opened that could take the place of a closed one
    supervise("mind-opt", command)
