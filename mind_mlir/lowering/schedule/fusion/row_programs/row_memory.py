"""Tensors that are written while rows are computed: results, memory of a few rows, and sums over rows.

A pass over a row adds to a partial sum in memory, which has as many elements as the row and stays in the
cache. Some rows that follow one another have one in common: no more than an accumulator may take, and never
rows of different chunks. So what is added up in which order depends on the schedule alone.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.nests.partial_results import PartialResults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.body import Output
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.mlir.bindings import Value


@dataclasses.dataclass
class Block:
    """Tensors that are written while rows are computed, as they are by now.

    Attributes:
        outputs: The results.
        buffers: Memory of a few rows: for each value that is kept, and each that a pass gives to another; of
            long rows, that for the numbers of segments (see `segment_folds`).
    """

    outputs: dict[Value, Value]
    buffers: dict[Value, Value]

    @property
    def tensors(self) -> list[Value]:
        """All of them, in order."""
        return [*self.outputs.values(), *self.buffers.values()]

    def at(self, tensors: Sequence[Value]) -> Block:
        """Return the same with other ``tensors``, in order."""
        count = len(self.outputs)
        pairs = zip(self.outputs, tensors[:count], strict=True)
        return Block(dict(pairs), dict(zip(self.buffers, tensors[count:], strict=True)))

    def home(self, value: Value) -> dict[Value, Value]:
        """Return which of the two ``value``, which lies along the rows, is in."""
        return self.outputs if value in self.outputs else self.buffers

    def now(self, outputs: Mapping[Value, Output]) -> dict[Value, Value]:
        """Return what is to be read instead of values and of tensors that have been written over."""
        found = {outputs[value].destination: tensor for value, tensor in self.outputs.items()}
        return {**found, **self.outputs, **self.buffers}


class RowSums(PartialResults):
    """Partial sums over rows, of which some that follow one another have one in common."""

    def __init__(self, emitter: Emitter, group: Group, schedule: RowSchedule) -> None:
        self._outer = group.extents[: group.vector]
        self._rows = max(1, schedule.summed)
        #: Of the rows that lie behind one another, so many have one each.
        self._each = -(-self._outer[-1] // self._rows) if self._outer else 1
        slots = math.prod(self._outer[:-1]) * self._each
        super().__init__(emitter, schedule.rows.lanes, slots, last=False)

    def slot(self, env: Env, row: Index | None = None) -> Index:
        """Return which partial sum ``row``, or the row at ``env``, is added to."""
        place: Index = 0
        for dim, extent in enumerate(self._outer[:-1]):
            place = self._e.add(self._e.mul(place, extent), env[dim])
        row = env[len(self._outer) - 1] if row is None else row
        return self._e.add(self._e.mul(place, self._each), self._e.floordiv(row, self._rows))
