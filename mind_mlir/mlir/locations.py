"""Names and places in MLIR's locations: `lowering/dialect/emit.py` leaves those of each value there."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import handle_of, ir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import MLIRLocation, Operation


class Sharing(Enum):
    """What code says of its places in the program that is made once for several of them."""

    #: The first of them.
    FIRST = 1
    #: There is no such code: it is made for each place, so that debuggers show true lines.
    APART = 2
    #: All of them.
    ALL = 3


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


def key_of(location: MLIRLocation) -> int | None:
    """Return what equal locations of a context have in common: the bindings hash each object by itself."""
    pointer: int | None = handle_of(location).ptr
    return pointer


def unite(kept: Operation, other: Operation) -> None:
    """Locate the operations of ``kept`` at those of ``other``, too, which are the same in the same order."""
    pending = [(kept, other)]
    while pending:
        one, two = pending.pop()
        one.location = ir.Location.fused([one.location, two.location])
        for own, others in zip(one.regions, two.regions, strict=True):
            for block, like in zip(own.blocks, others.blocks, strict=True):
                pairs = zip(block.operations, like.operations, strict=True)
                pending += [(each.operation, alike.operation) for each, alike in pairs]


def add_places(function: Operation, more: Mapping[MLIRLocation, Sequence[MLIRLocation]]) -> None:
    """Locate what is in ``function`` for the keys of ``more`` at their values, too."""
    wanted = [(set(places_of(location)), others) for location, others in more.items()]

    def add(op: Operation) -> object:
        own = set(places_of(op.location))
        others = [other for places, those in wanted if places & own for other in those]
        if others:
            op.location = ir.Location.fused([op.location, *others])
        return ir.WalkResult.ADVANCE

    function.walk(add)
