"""Errors about artefacts that cannot be made or loaded (E65xx)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import ArtefactError, Diagnostic
from mind_mlir.diagnostics.display import clipped, display_path
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    import os

#: How many lines of what a tool has said are quoted.
_QUOTED_LINES = 12


def damaged(path: str | os.PathLike[str], reason: str) -> ArtefactError:
    """Return E6501 about a file or directory that is no bundle, or not the one that was written."""
    shown = display_path(path)
    return ArtefactError(
        Diagnostic(
            "E6501",
            f"cannot load '{shown}': {clipped(reason)}",
            help="write the bundle again: mind-mlir compile FILE --emit=bundle -o PATH",
            context=FrozenDict({"path": shown, "reason": reason}),
        )
    )


def foreign(path: str | os.PathLike[str], needed: str, found: str) -> ArtefactError:
    """Return E6502 about code that this machine does not run."""
    shown = display_path(path)
    return ArtefactError(
        Diagnostic(
            "E6502",
            f"'{shown}' holds code that this machine does not run: it needs {clipped(needed)}",
            notes=(f"this machine is {found}",),
            help="compile the program for it: --target and --target-cpu say which processor the code is for",
            context=FrozenDict({"path": shown, "needed": needed, "found": found}),
        )
    )


def missing_tool(tool: str, message: str, help_: str, notes: Sequence[str] = ()) -> ArtefactError:
    """Return E6503 about a tool that is not there."""
    return ArtefactError(
        Diagnostic("E6503", message, None, tuple(notes), help_, context=FrozenDict({"tool": tool}))
    )


def failed_tool(tool: str, status: int, output: str) -> ArtefactError:
    """Return E6503 about a tool that does not do its work, with what it has said."""
    lines = [line for line in output.splitlines() if line.strip()]
    more = [f"... {len(lines) - _QUOTED_LINES} more lines"] if len(lines) > _QUOTED_LINES else []
    notes = [f"{tool}: {clipped(line)}" for line in lines[:_QUOTED_LINES]] + more
    how = f"with status {status}" if status >= 0 else f"by signal {-status}"
    return missing_tool(
        tool,
        f"'{clipped(tool)}' failed {how}",
        "the variable CC names another compiler to link with; --emit=object needs no linker",
        notes,
    )


def unsupported(what: str, message: str, help_: str | None = None) -> ArtefactError:
    """Return E6504 about something that no artefact can hold."""
    return ArtefactError(Diagnostic("E6504", message, help=help_, context=FrozenDict({"what": what})))
