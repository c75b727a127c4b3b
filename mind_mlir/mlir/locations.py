"""What MLIR's locations say of the program: `mind_mlir.dialect.emit` leaves name and place of each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.bindings import MLIRLocation
    from mind_mlir.diagnostics.checks import Place


def label_of(location: MLIRLocation) -> str | None:
    """Return what the program calls the value at ``location``, where that is known."""
    return str(location.name_str) if isinstance(location, ir.NameLoc) else None


def place_of(location: MLIRLocation) -> Place | None:
    """Return file, line and column of ``location``, with or without a name, where that is known."""
    if isinstance(location, ir.NameLoc):
        location = location.child_loc
    if not isinstance(location, ir.FileLineColLoc):
        return None
    return location.filename, location.start_line, location.start_col
