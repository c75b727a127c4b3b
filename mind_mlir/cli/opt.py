"""`mind-opt`: mlir-opt with the `mind` dialect and our lowering stages."""

from __future__ import annotations

import click

from mind_mlir import __version__
from mind_mlir.cli.options import output_option
from mind_mlir.cli.output import write_output
from mind_mlir.cli.pass_names import PASSES
from mind_mlir.cli.session import EXIT_DIAGNOSTICS, GuardedCommand, Session
from mind_mlir.interrupts import held

SPLIT_MARKER = "// -----"


class Tool(GuardedCommand):
    """A command that takes ``--<pass>[=options]`` for any pass, in order; its errors end in exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the arguments that name a pass apart; MLIR knows its own, so any name will do here."""
        known = {
            name for parameter in self.get_params(ctx) for name in parameter.opts + parameter.secondary_opts
        }
        others: list[str] = []
        for position, argument in enumerate(args):
            if argument == "--":
                others += args[position:]
                break
            name, _, value = argument.partition("=")
            if name.startswith("--") and name not in known:
                ctx.meta.setdefault("passes", []).append(f"{name[2:]}{{{value}}}" if value else name[2:])
            else:
                others.append(argument)
        return super().parse_args(ctx, others)


def _list_passes(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    width = max(map(len, PASSES))
    lines = [f"  --{name:<{width}}  {summary}" for name, summary in PASSES.items()]
    write_output("\n".join([*lines, "and every pass registered in MLIR."]), None)
    context.exit()


@click.command(
    cls=Tool,
    name="mind-opt",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Besides these, --<pass>[=OPTIONS] runs a single pass, ours or MLIR's; several run in the order "
    "in which they are given.",
)
@click.argument("file", metavar="[FILE]", default="-")
@click.option(
    "--pass-pipeline",
    metavar="TEXT",
    help="The passes to run, for example 'builtin.module(convert-mind-to-linalg,func.func(cse))'.",
)
@click.option(
    "--split-input-file", is_flag=True, help=f"Work on the parts between lines '{SPLIT_MARKER}' apart."
)
@click.option("--mlir-print-debuginfo", is_flag=True, help="Print locations.")
@click.option("--mlir-print-op-generic", is_flag=True, help="Print operations in their generic form.")
@click.option(
    "--mlir-print-ir-after-all", is_flag=True, help="Print the module after every pass, to standard error."
)
@click.option(
    "--allow-unregistered-dialect", is_flag=True, help="Accept operations of dialects unknown here."
)
@click.option(
    "--list-passes",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_passes,
    help="List our passes and exit.",
)
@output_option
@click.version_option(__version__, prog_name="mind-opt")
@click.pass_context
def command(
    context: click.Context,
    file: str,
    pass_pipeline: str | None,
    split_input_file: bool,
    mlir_print_debuginfo: bool,
    mlir_print_op_generic: bool,
    mlir_print_ir_after_all: bool,
    allow_unregistered_dialect: bool,
    output: str | None,
) -> None:
    """Run passes over MLIR, which may hold the mind dialect.

    FILE may be '-' for standard input, which is also read when none is given.
    """
    passes = context.meta.get("passes", [])
    if passes and pass_pipeline is not None:
        raise click.UsageError(f"give --pass-pipeline or single passes ({', '.join(passes)}), not both")
    pipeline = pass_pipeline if pass_pipeline is not None else f"builtin.module({','.join(passes)})"
    session = context.ensure_object(Session)

    with held():
        from mind_mlir.cli.opt_driver import (  # noqa: PLC0415 -- loads MLIR, which --help does without
            Driver,
            Printing,
            read_parts,
            read_pipeline,
        )

    driver = Driver(
        session,
        read_pipeline(pipeline),
        Printing(mlir_print_debuginfo, mlir_print_op_generic, mlir_print_ir_after_all),
        allow_unregistered_dialect,
    )
    marker = SPLIT_MARKER if split_input_file else None
    printed = [driver.run(part) for part in read_parts(file, marker)]
    text = f"{SPLIT_MARKER}\n".join(part for part in printed if part is not None)
    if output is None or all(part is not None for part in printed):
        write_output(text, output) if text else None
    if any(part is None for part in printed):
        context.exit(EXIT_DIAGNOSTICS)


def main() -> None:
    """Run `mind-opt` on the arguments of the process."""
    command()
