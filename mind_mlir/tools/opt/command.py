"""The command line of `mind-opt`: any ``--<pass>``, LLVM's spellings, and help that lists the passes.

The options that say what is printed are records.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from textwrap import wrap
from typing import Any, TypeVar

import click

from mind_mlir.tools.cli.session import GuardedCommand
from mind_mlir.tools.opt.mlir_names import MLIR_PASSES, PASSES
from mind_mlir.tools.opt.pass_pipeline import PipelinePass

#: LLVM's ways of writing a truth value.
_TRUE, _FALSE = ("true", "TRUE", "True", "1"), ("false", "FALSE", "False", "0")


class Tool(GuardedCommand):
    """A command that takes ``--<pass>[=options]`` for any pass, in order; its errors end in exit codes.

    As everywhere in LLVM one dash does for two, and a flag may be given a truth value: ``-cse``,
    ``--verify-each=false``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the arguments that name a pass apart; MLIR knows its own, so any name will do here."""
        options = self.named_options(ctx)
        passes: list[PipelinePass] = ctx.meta.setdefault("passes", [])
        others: list[str] = []
        rest = iter(args)
        for argument in rest:
            if argument == "--":
                others += [argument, *rest]
                break
            if not argument.startswith("-") or argument == "-":
                others.append(argument)
                continue
            name, equals, value = argument.partition("=")
            name = f"--{name.lstrip('-')}" if name not in options else name
            option = options.get(name)
            if option is None:
                passes.append(PipelinePass(name[2:], f"{{{value}}}" if value else ""))
            elif option.is_flag:
                others = _with_flag(others, option, name, value)
            elif equals:
                others += [name, value]
            elif isinstance(option, OptionalValue):
                others += [name, option.value]
            else:
                others += [name, *islice(rest, 1)]
        return super().parse_args(ctx, others)

    def named_options(self, ctx: click.Context) -> dict[str, click.Option]:
        """Return the options by each of their spellings."""
        return {
            name: option
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the passes, ours first."""
        with formatter.section("Passes of mind-mlir"):
            formatter.write_dl([(f"--{name}", summary) for name, summary in PASSES.items()])
        with formatter.section("Passes of MLIR, which take options as --PASS=OPTION=VALUE"):
            indent = " " * formatter.current_indent
            width = formatter.width - formatter.current_indent
            lines = wrap("  ".join(MLIR_PASSES), width, break_on_hyphens=False)
            formatter.write("".join(f"{indent}{line}\n" for line in lines))
        super().format_epilog(ctx, formatter)


class OptionalValue(click.Option):
    """An option with a value for where it is given none, which then follows after ``=`` only."""

    def __init__(self, *args: Any, value: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.value = value


def _with_flag(others: list[str], option: click.Option, name: str, value: str) -> list[str]:
    """Return the arguments ``others`` with a flag put to ``value``; the last one counts."""
    if value in _FALSE:
        spellings = {*option.opts, *option.secondary_opts}
        return [other for other in others if other not in spellings] + option.secondary_opts[:1]
    if value and value not in _TRUE:
        raise click.BadParameter(f"'{value}' is no truth value: write true or false", param_hint=name)
    return [*others, name]


Command = TypeVar("Command", bound="Callable[..., Any]")

#: How modules are printed; the names are the fields of `mind_mlir.tools.opt.ir_printing.Printing`.
PRINTING = {
    "print_debuginfo": "Print locations.",
    "pretty_debuginfo": "Print locations in a form for people.",
    "print_op_generic": "Print operations in their generic form.",
    "print_local_scope": "Print attributes, types and locations in place, without aliases.",
    "print_skip_regions": "Leave out what is inside of operations.",
    "use_nameloc_as_prefix": "Name values after their locations.",
}
LIMITS = {
    "elide_elementsattrs_if_larger": "Print '...' for constants of more than N elements.",
    "elide_resource_strings_if_larger": "Leave out resources of more than N characters.",
}
#: What is printed around passes; the names are the fields of `mind_mlir.tools.opt.ir_printing.Dumps`.
DUMPS = {
    "after_change": "Print after a pass only where it changed something.",
    "after_failure": "Print after a pass only where it failed.",
    "module_scope": "Print the whole module, where a pass works on a part of it.",
}


def printing_options(command: Command) -> Command:
    """Add the options that say how modules are printed."""
    for name, text in reversed(LIMITS.items()):
        command = click.option(_flag("mlir-", name), name, type=click.IntRange(0), metavar="N", help=text)(
            command
        )
    for name, text in reversed(PRINTING.items()):
        command = click.option(_flag("mlir-", name), name, is_flag=True, help=text)(command)
    return command


def dump_options(command: Command) -> Command:
    """Add the options that print IR around passes, on standard error."""
    for name, text in reversed(DUMPS.items()):
        command = click.option(_flag("mlir-print-ir-", name), name, is_flag=True, help=text)(command)
    for when in ("after", "before"):
        for decorate in (
            click.option(
                f"--mlir-print-ir-{when}",
                f"{when}_passes",
                metavar="PASS[,PASS]...",
                multiple=True,
                help=f"Print IR {when} these passes, to standard error.",
            ),
            click.option(
                f"--mlir-print-ir-{when}-all", f"{when}_all", is_flag=True, help=f"Print IR {when} each pass."
            ),
        ):
            command = decorate(command)
    return command


def _flag(prefix: str, name: str) -> str:
    return f"--{prefix}{name.replace('_', '-')}"
