"""Shell completion of arguments. Nothing here loads numpy or MLIR: it must be quick."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeAlias

from click.shell_completion import CompletionItem

from mind_mlir.conversion.shipped import GROUP, SHIPPED
from mind_mlir.diagnostics.codes import CATALOGUE
from mind_mlir.ops.registry import by_opcode
from mind_mlir.target import ARTEFACT_TARGETS, FEATURES, NATIVE, processors_of
from mind_mlir.tools.cli.optimizer_names import OPTIMIZER_PASSES

if TYPE_CHECKING:
    import click

    Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

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


def _offering(
    names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what offers those of some names that begin as what is written."""
    return lambda _, __, incomplete: [name for name in names() if name.startswith(incomplete)]


#: The passes of the optimiser, the targets of artefacts, and the processors of all architectures.
complete_pass = _offering(lambda: (*OPTIMIZER_PASSES, "all"))
complete_artefact_target = _offering(lambda: ARTEFACT_TARGETS)
complete_cpu = _offering(lambda: (NATIVE, *(name for machine in FEATURES for name in processors_of(machine))))
#: The conversion targets, those of other packages included, of which none is loaded.
complete_conversion_target = _offering(
    lambda: sorted({*SHIPPED, *(point.name for point in entry_points(group=GROUP))})
)


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
