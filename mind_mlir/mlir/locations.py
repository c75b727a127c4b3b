"""Names and places in MLIR's locations: `lowering/dialect/emit.py` leaves those of each value there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def within(location: MLIRLocation) -> Iterator[MLIRLocation]:
    """Yield ``location`` and those that it is made of, at any depth, in order."""
    pending = [location]
    while pending:
        at = pending.pop()
        yield at
        if isinstance(at, ir.NameLoc):
            pending.append(at.child_loc)
        elif isinstance(at, ir.CallSiteLoc):
            pending += [at.caller, at.callee]
        elif isinstance(at, ir.FusedLoc):
            pending += reversed(at.locations)


def file_location(location: MLIRLocation) -> Any:
    """Return the first position in a file that ``location`` refers to, or None; it may nest at any depth."""
    return next((at for at in within(location) if isinstance(at, ir.FileLineColLoc)), None)


def places_of(location: MLIRLocation) -> tuple[Place, ...]:
    """Return the places that ``location`` refers to, each once: of joined operations all, in order."""
    files = (at for at in within(location) if isinstance(at, ir.FileLineColLoc))
    return tuple(dict.fromkeys((at.filename, at.start_line, at.start_col) for at in files))


def place_of(location: MLIRLocation) -> Place | None:
    """Return file, line and column of ``location``, where that is known; of joined operations the first."""
    found = file_location(location)
    return None if found is None else (found.filename, found.start_line, found.start_col)
