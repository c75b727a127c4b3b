"""From the syntax tree of the surface language to Core IR: names, types and operations in one go."""

from mind_mlir.languages.mind.elaboration import (
    aggregates,
    calls,
    control,
    indexing,
    loops,
    operators,
    routines,
)
from mind_mlir.languages.mind.elaboration.checking import check
from mind_mlir.languages.mind.elaboration.programs import dimensions, entries, lower

#: Modules whose rules are registered by their import.
RULES = (aggregates, calls, control, indexing, loops, operators, routines)

__all__ = ("check", "dimensions", "entries", "lower")
