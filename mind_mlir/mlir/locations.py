"""Names and places in MLIR's locations: `lowering/dialect/emit.py` leaves those of each value there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import MLIRLocation


def label_of(location: MLIRLocation) -> str | None:
    """Return what the program calls the value at ``location``, where that is known."""
    return str(location.name_str) if isinstance(location, ir.NameLoc) else None


def labels_of(location: MLIRLocation) -> tuple[str, ...]:
    """Return what the program calls the values at ``location``: of joined operations, all in order."""
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(label for each in location.locations for label in labels_of(each)))
    label = label_of(location)
    return () if label is None else (label,)


def file_location(location: MLIRLocation) -> Any:
    """Return the first position in a file that ``location`` refers to, or None; it may nest at any depth."""
    pending = [location]
    while pending:
        at = pending.pop()
        if isinstance(at, ir.FileLineColLoc):
            return at
        if isinstance(at, ir.NameLoc):
            pending.append(at.child_loc)
        elif isinstance(at, ir.CallSiteLoc):
            pending.append(at.callee)
        elif isinstance(at, ir.FusedLoc):
            pending += reversed(at.locations)
    return None


def places_of(location: MLIRLocation) -> tuple[Place, ...]:
    """Return the places that ``location`` refers to, each once: of joined operations all, in order."""
    found: dict[Place, None] = {}
    pending = [location]
    while pending:
        at = pending.pop()
        if isinstance(at, ir.FileLineColLoc):
            found[at.filename, at.start_line, at.start_col] = None
        elif isinstance(at, ir.NameLoc):
            pending.append(at.child_loc)
        elif isinstance(at, ir.CallSiteLoc):
            pending.append(at.callee)
        elif isinstance(at, ir.FusedLoc):
            pending += reversed(at.locations)
    return tuple(found)


def place_of(location: MLIRLocation) -> Place | None:
    """Return file, line and column of ``location``, where that is known; of joined operations the first."""
    found = file_location(location)
    return None if found is None else (found.filename, found.start_line, found.start_col)
