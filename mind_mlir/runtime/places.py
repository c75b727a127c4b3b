"""Find the source locations of a module's operations by what compiled code knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.diagnostics.checks import Check, Place
    from mind_mlir.ir.module import Module


class Places:
    """The places of all operations of a module, those in regions included.

    What a check knows of its operation has been through MLIR: what the program calls its value, and file,
    line and column of its statement. Values of different functions may have one name.
    """

    def __init__(self, module: Module) -> None:
        self._locations: dict[tuple[str, Place | None], Location] = {}
        for function in module.functions:
            for operation in operations_of(function.blocks):
                location = operation.location
                if location is not None:
                    place = (location.source.name, location.line, location.column)
                    self._locations.setdefault((operation.label, place), location)

    def of(self, check: Check) -> Location | None:
        """Return where the operation of ``check`` was written, where that is known."""
        return self._locations.get((check.label, check.place))
