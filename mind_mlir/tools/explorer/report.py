"""`ExplorerReport`: the page of explored programs, for files and notebooks."""

from __future__ import annotations

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.outputs.files import write_file
from mind_mlir.support import argument_checks
from mind_mlir.tools.explorer import page
from mind_mlir.tools.explorer.explore import explore

if TYPE_CHECKING:
    import os

    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.explorer.exploration import Exploration
    from mind_mlir.tools.explorer.explore import Call

#: What programs are called that stand in no file.
_UNNAMED = "program"
#: The height of the page within a notebook, in pixels.
_HEIGHT = 800


class ExplorerReport:
    """What became of a program at each stage, as a page; a notebook shows it.

    Attributes:
        explorations: What the page shows, as data: one program and target each.
    """

    def __init__(self, *explorations: Exploration) -> None:
        """Hold what is to be shown; the second and later ones are compared with the first."""
        self.explorations = explorations

    @cached_property
    def html(self) -> str:
        """The page: one file, which loads nothing from elsewhere."""
        return page.html(self.explorations)

    @public
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which appears whole or not at all.

        Raises:
            OutputError: It cannot be written.
            TypeError: ``path`` is no path.
        """
        write_file(argument_checks.path(path, "path"), self.html.encode("utf-8", "backslashreplace"))

    def __repr__(self) -> str:
        titles = ", ".join(dict.fromkeys(each.title for each in self.explorations))
        traced, total = (sum(each.traced[part] for each in self.explorations) for part in (0, 1))
        return f"<ExplorerReport of {titles}: {traced} of {total} instructions are traced>"

    def _repr_html_(self) -> str:
        """Return the page for a notebook, in a frame, so that neither changes how the other looks."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )


def report_of(
    module: Module, options: CompileOptions, *, entry: str | None = None, call: Call | None = None
) -> ExplorerReport:
    """Return the report of one module (see `explore`), which is called as the file that it stands in."""
    places = (op.location for function in module.functions for op in operations_of(function.blocks))
    title = next((Path(place.source.name).name for place in places if place is not None), _UNNAMED)
    return ExplorerReport(explore(module, options, title=title, entry=entry, call=call))
