"""Tensors that are written while rows are computed: results, memory of a few rows, and sums over rows.

A pass over a row adds to a partial sum in memory, which has as many elements as the row and stays in the
cache. Some rows that follow one another have one in common: no more than an accumulator may take, and never
rows of different chunks. So what is added up in which order depends on the schedule alone.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.nests.body import combiner_of
from mind_mlir.lowering.schedule.fusion.nests.nest import Joiner, partial_results
from mind_mlir.mlir.bindings import Value, ir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.body import Output
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Env


@dataclasses.dataclass
class Block:
    """Tensors that are written while rows are computed, as they are by now.

    Attributes:
        outputs: The results.
        buffers: Memory of a few rows: for each value that is kept, and each that a pass gives to another.
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


class RowSums:
    """Emits them."""

    def __init__(self, emitter: Emitter, group: Group, schedule: RowSchedule) -> None:
        self._e = emitter
        self._outer = group.extents[: group.vector]
        self._rows = schedule.summed
        self._lanes = schedule.rows.lanes

    def partial(self, output: Output) -> Value:
        """Emit memory for the partial sums of ``output``, which is indexed by the last loop alone."""
        slots = math.prod(self._outer[:-1]) * -(-self._outer[-1] // self._rows)
        return partial_results(self._e, output, slots, last=False)

    def slot(self, env: Env) -> Index:
        """Return which partial sum the row at ``env`` is added to."""
        return self._slot(env, env[len(self._outer) - 1])

    def _slot(self, env: Env, row: Index) -> Index:
        place: Index = 0
        for dim, extent in enumerate(self._outer[:-1]):
            place = self._e.add(self._e.mul(place, extent), env[dim])
        place = self._e.mul(place, -(-self._outer[-1] // self._rows))
        return self._e.add(place, self._e.floordiv(row, self._rows))

    def clear(self, output: Output, partial: Value, env: Env, rows: tuple[Index, Index]) -> Value:
        """Write what changes nothing to the partial sums of ``rows``; return them.

        Args:
            output: What is summed.
            partial: The partial sums.
            env: The loops around the one over rows.
            rows: The first row, which is the first one of a partial sum, and the one behind the last.
        """
        element = ir.RankedTensorType(partial.type).element_type
        count = partial.type.shape[-1]
        type_ = self._e.vector_type(self._lanes, element)
        neutral = combiner_of(output).nothing(self._e, type_)

        def slot(number: Index, inside: list[Value]) -> list[Value]:
            return self._e.vectors(
                count,
                self._lanes,
                inside,
                lambda at, mask, now: [self._e.write(neutral, now[0], [number, at], mask)],
            )

        first = self._slot(env, rows[0])
        last = self._slot(env, self._e.sub(rows[1], 1))
        (found,) = self._e.loop((first, self._e.add(last, 1), 1), [partial], slot)
        return found

    def join(self, output: Output, partial: Value) -> Value:
        """Return the sums that the ``partial`` ones of ``output`` add up to."""
        joiner = Joiner(self._e, self._lanes)
        return joiner.join(output, combiner_of(output), partial, last=False)
