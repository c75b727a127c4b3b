"""Shell completion of arguments. Nothing here loads numpy or MLIR: it must be quick."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from mind_mlir.conversion.shipped import GROUP, SHIPPED
from mind_mlir.diagnostics.codes import CATALOGUE
from mind_mlir.ops.registry import by_opcode
from mind_mlir.target import ARTEFACT_TARGETS, FEATURES, NATIVE, processors_of
from mind_mlir.tools.cli.optimizer_names import OPTIMIZER_PASSES

if TYPE_CHECKING:
    import click

#: How much of a program is looked at for names.
_LOOKED_AT = 1 << 20
#: Exported functions of Core IR and PTIR, and all functions of the surface language that are no inner ones.
_CALLABLE = re.compile(
    r"^[ \t]*(?:(?:public|export)[ \t]+)?func[ \t]+@([\w.]+)|^(?:export[ \t]+)?fn[ \t]+(\w+)", re.MULTILINE
)


def complete_file(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell offer files."""
    return [CompletionItem(incomplete, type="file")]


def complete_directory(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell offer directories."""
    return [CompletionItem(incomplete, type="dir")]


def complete_opcode(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Offer the operations, typed in any case."""
    return [opcode for opcode in by_opcode() if opcode.lower().startswith(incomplete.lower())]


def complete_pass(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Offer the passes of the optimiser."""
    return [name for name in (*OPTIMIZER_PASSES, "all") if name.startswith(incomplete)]


def complete_conversion_target(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Offer the conversion targets, those of other packages included, of which none is loaded."""
    names = (*SHIPPED, *(point.name for point in entry_points(group=GROUP)))
    return [name for name in sorted(set(names)) if name.startswith(incomplete)]


def complete_artefact_target(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Offer the targets of artefacts."""
    return [name for name in ARTEFACT_TARGETS if name.startswith(incomplete)]


def complete_cpu(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Offer the processors of all architectures."""
    names = [name for machine in FEATURES for name in processors_of(machine)]
    return [name for name in (NATIVE, *names) if name.startswith(incomplete)]


def complete_function(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Offer the functions that the program on the command line exports, as far as its text shows.

    Of a program of the surface language it is every function.
    """
    # As long as the option has no value, click leaves the arguments unread.
    path = context.params.get("file") or next(iter(context.args), "-")
    if path == "-":
        return []
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 -- Path takes an empty name for this directory
            text = file.read(_LOOKED_AT)
    except (OSError, ValueError):
        return []
    names = (found[1] or found[2] for found in _CALLABLE.finditer(text))
    return [name for name in names if name.startswith(incomplete)]


def complete_code(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the diagnostic codes with their titles."""
    wanted = incomplete.upper()
    return [
        CompletionItem(code, help=entry.title) for code, entry in CATALOGUE.items() if code.startswith(wanted)
    ]
