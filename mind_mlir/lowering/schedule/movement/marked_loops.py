"""Loops that lowering marks, over rows each of which is computed by itself: they stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Choice
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.kind import Kind, OperationNest, Site
from mind_mlir.mlir.values import constant_of, integer_of
from mind_mlir.ops.gather_scatter import LINES_ATTRIBUTE, SCATTER_ATTRIBUTE
from mind_mlir.ops.row_loops import BELOW_ATTRIBUTE, ROWS_ATTRIBUTE
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.mlir.bindings import Operation, Value


@dataclass(frozen=True)
class LoopSchedule:
    """How threads share a marked loop.

    Attributes:
        split: How what they share is split.
        shared: What that is, for people.
    """

    split: Split
    shared: str

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return (Choice("chunks", f"{self.split.count} of the {self.shared}", self.split.reason),)


@dataclass(frozen=True)
class RowLoop(OperationNest):
    """A loop over rows, each of which is computed by itself, and about how long all of them take."""

    count: int
    nanoseconds: int

    @property
    def extents(self) -> tuple[int, ...]:
        """The rows."""
        return (self.count,)


def _match_rows(site: Site) -> RowLoop | None:
    """Return the operation as a loop over rows if it is marked as one."""
    op = site.op
    if op.name != "scf.for" or ROWS_ATTRIBUTE not in op.attributes:
        return None
    count = constant_of(op.operands[1])
    assert count is not None, "the rows of a loop that is marked are counted"
    return RowLoop(op, count, integer_of(op, ROWS_ATTRIBUTE))


def _emit_rows(nest: RowLoop, schedule: LoopSchedule, site: Site) -> list[Value]:
    """Emit a loop over chunks of rows, and return what it carries in the end."""
    e, loop = site.scope.emitter, nest.op
    return e.chunks(
        schedule.split,
        nest.count,
        list(loop.operands)[3:],
        lambda first, end, carried: part_of(loop, e, carried, (first, end)),
    )


def part_of(
    loop: Operation, emitter: Emitter, carried: Sequence[Value], bounds: tuple[Index, Index] | None = None
) -> list[Value]:
    """Emit ``loop``, without its marks, on what is ``carried``, and within ``bounds`` if these are given."""
    clone = loop.clone().operation
    for mark in (ROWS_ATTRIBUTE, BELOW_ATTRIBUTE, SCATTER_ATTRIBUTE, LINES_ATTRIBUTE):
        if mark in clone.attributes:
            del clone.attributes[mark]
    for place, bound in enumerate(bounds or ()):
        clone.operands[place] = emitter.index(bound)
    for place, value in enumerate(carried, start=3):
        clone.operands[place] = value
    return list(clone.results)


ROWS = Kind(
    "rows", _match_rows, lambda nest, _: LoopSchedule(split(nest.count, nest.nanoseconds), "rows"), _emit_rows
)
