"""Loops over rows that stay as they are, among threads."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.decision import Choice, chosen
from mind_mlir.lowering.schedule.emission.split import Split, split
from mind_mlir.lowering.schedule.linalg_view.values import read_values
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index


@dataclasses.dataclass(frozen=True)
class RowSchedule:
    """How rows are split.

    Attributes:
        split: The chunks.
    """

    split: Split

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return chosen(("chunks", f"{self.split.count} of the rows", self.split.reason))


@dataclasses.dataclass(frozen=True)
class RowLoop:
    """A loop over rows, each of which is computed by itself.

    Attributes:
        loop: The `scf.for`.
        count: How many rows there are.
        nanoseconds: What all of them take, about.
    """

    loop: Operation
    count: int
    nanoseconds: int

    @property
    def reads(self) -> Sequence[Value]:
        """All that the loop reads."""
        return read_values(self.loop)

    @property
    def computes(self) -> Sequence[Operation]:
        """The loop."""
        return [self.loop]

    @property
    def extents(self) -> tuple[int, ...]:
        """The rows."""
        return (self.count,)

    def schedule(self) -> RowSchedule:
        """Return how threads share the rows."""
        return RowSchedule(split(self.count, self.nanoseconds))


def match_rows(op: Operation) -> RowLoop | None:
    """Return ``op`` as a loop over rows if it is marked as one."""
    if op.name != "scf.for" or ROWS_ATTRIBUTE not in op.attributes:
        return None
    count = ir.IntegerAttr(op.operands[1].owner.attributes["value"]).value
    return RowLoop(op, count, ir.IntegerAttr(op.attributes[ROWS_ATTRIBUTE]).value)


def emit_rows(nest: RowLoop, schedule: RowSchedule, emitter: Emitter) -> list[Value]:
    """Emit a loop over chunks of rows, and return what it carries in the end."""
    op = nest.loop
    del op.attributes[ROWS_ATTRIBUTE]

    def rows(first: Index, end: Index, carried: list[Value]) -> list[Value]:
        clone = op.clone().operation
        for place, value in enumerate([emitter.index(first), emitter.index(end)]):
            clone.operands[place] = value
        for place, value in enumerate(carried, start=3):
            clone.operands[place] = value
        return list(clone.results)

    return emitter.chunks(schedule.split, nest.count, list(op.operands)[3:], rows)
