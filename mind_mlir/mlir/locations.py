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


def labels_of(location: MLIRLocation) -> tuple[str, ...]:
    """Return what the program calls the values at ``location``: of joined operations, all in order."""
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(label for each in location.locations for label in labels_of(each)))
    label = label_of(location)
    return () if label is None else (label,)


def place_of(location: MLIRLocation) -> Place | None:
    """Return file, line and column of ``location``, with or without a name, where that is known.

    Of several joined operations it is the place of the first one.
    """
    if isinstance(location, ir.FusedLoc):
        return next(filter(None, map(place_of, location.locations)), None)
    if isinstance(location, ir.NameLoc):
        location = location.child_loc
    if not isinstance(location, ir.FileLineColLoc):
        return None
    return location.filename, location.start_line, location.start_col
