"""The places of operations that run-time checks are about."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.passes.forms import FrontHalf

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.diagnostics.checks import Check, Place
    from mind_mlir.ir.module import Module


class CheckPlaces:
    """The places of all operations of a module, those in regions included; looked for where a check fails.

    What a check knows of its operation has been through MLIR: what the program calls its value, and file,
    line and column of its statement. Values of different functions may have one name.
    """

    def __init__(self, module: Callable[[], Module]) -> None:
        """Hold what returns the module, as it was given."""
        self._module = module

    @cached_property
    def _locations(self) -> dict[tuple[str, Place | None], Location]:
        found: dict[tuple[str, Place | None], Location] = {}
        for function in FrontHalf().run(self._module(), "canonical").functions:
            for operation in operations_of(function.blocks):
                location = operation.location
                if location is not None:
                    place = (location.source.name, location.line, location.column)
                    found.setdefault((operation.label, place), location)
        return found

    def of(self, check: Check) -> Location | None:
        """Return where the operation of ``check`` was written, where that is known."""
        return self._locations.get((check.label, check.place))
