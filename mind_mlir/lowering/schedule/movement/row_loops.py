"""Loops over rows that stay as they are, among threads."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.decision import Choice, chosen
from mind_mlir.lowering.schedule.emission.split import Split, split
from mind_mlir.lowering.schedule.kind import Kind, OperationNest
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import constant_of
from mind_mlir.ops.gather_scatter import LINES_ATTRIBUTE, SCATTER_ATTRIBUTE
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class RowSchedule:
    """How rows are split."""

    split: Split

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return chosen(("chunks", f"{self.split.count} of the rows", self.split.reason))


@dataclasses.dataclass(frozen=True)
class RowLoop(OperationNest):
    """A loop over rows, each of which is computed by itself.

    Attributes:
        count: How many rows there are.
        nanoseconds: What all of them take, about.
    """

    count: int
    nanoseconds: int

    @property
    def extents(self) -> tuple[int, ...]:
        """The rows."""
        return (self.count,)


def _match(site: Site) -> RowLoop | None:
    """Return the operation as a loop over rows if it is marked as one."""
    op = site.op
    if op.name != "scf.for" or ROWS_ATTRIBUTE not in op.attributes:
        return None
    count = constant_of(op.operands[1])
    assert count is not None, "the rows of a loop that is marked are counted"
    return RowLoop(op, count, ir.IntegerAttr(op.attributes[ROWS_ATTRIBUTE]).value)


def _choose(nest: RowLoop, _: Target) -> RowSchedule:
    return RowSchedule(split(nest.count, nest.nanoseconds))


def _emit(nest: RowLoop, schedule: RowSchedule, site: Site) -> list[Value]:
    """Emit a loop over chunks of rows, and return what it carries in the end."""

    def rows(first: Index, end: Index, carried: list[Value]) -> list[Value]:
        return part_of(nest.op, site.scope.emitter, carried, (first, end))

    return site.scope.emitter.chunks(schedule.split, nest.count, list(nest.op.operands)[3:], rows)


def part_of(
    loop: Operation, emitter: Emitter, carried: Sequence[Value], bounds: tuple[Index, Index] | None = None
) -> list[Value]:
    """Emit ``loop``, without its marks, on what is ``carried``, and within ``bounds`` if these are given."""
    clone = loop.clone().operation
    for mark in (ROWS_ATTRIBUTE, SCATTER_ATTRIBUTE, LINES_ATTRIBUTE):
        if mark in clone.attributes:
            del clone.attributes[mark]
    for place, bound in enumerate(bounds or ()):
        clone.operands[place] = emitter.index(bound)
    for place, value in enumerate(carried, start=3):
        clone.operands[place] = value
    return list(clone.results)


ROWS = Kind("rows", _match, _choose, _emit)
