"""The options of `mind-opt` that say what is printed, as records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

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
