"""Emits row programs as nests: over blocks of rows, and the passes over each block, or over long rows.

The last pass over a block runs while the first scalars of the next one are computed: the processor waits for
no pass to end, and writes while it reads. Where there is one block, passes follow one another. Long rows go
through all stages one after the other: what the stage before has read is then still in the cache that all
threads share, if that is large enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.nests.body import Place
from mind_mlir.lowering.schedule.fusion.nests.nest import Chunks
from mind_mlir.lowering.schedule.fusion.nests.partial_results import RowSums
from mind_mlir.lowering.schedule.fusion.row_programs.passes import stages_of
from mind_mlir.lowering.schedule.fusion.row_programs.row_passes import Block, RowPasses
from mind_mlir.lowering.schedule.fusion.row_programs.segments import Segments

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowPlan
    from mind_mlir.mlir.bindings import Value


class RowEmitter:
    """Emits one row program."""

    def __init__(self, emitter: Emitter, plan: RowPlan) -> None:
        self._e = emitter
        self._plan = plan
        self._g = group = plan.group
        self._s = plan.schedule
        self._count = len(plan.passes.passes)
        self._chunks = Chunks(emitter, group, plan.schedule.rows)
        outer, rows = group.extents[: group.vector], plan.schedule.rows
        self._sums = RowSums(emitter, rows.lanes, outer, plan.schedule.summed)
        self._passes = RowPasses(emitter, plan, self._sums)
        stages = zip(stages_of(plan.passes), self._s.segments, strict=True) if self._s.segments else ()
        self._stages = [Segments(emitter, plan, *each, self._passes) for each in stages]
        summed = {view.op.results[0] for view in plan.passes.summed}
        #: Of each output that is a sum over the rows, by its place.
        self._summed = {
            place: output for place, output in enumerate(plan.outputs.values()) if output.result in summed
        }

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order."""
        rows = self._s.rows
        carried = [output.destination for output in self._plan.outputs.values()]
        for place, output in self._summed.items():
            carried[place] = self._sums.memory(output)
        carried = self._chunks.emit(rows.cuts, Place({}, known), carried, self._loops, parallel=rows.parallel)
        for place, output in self._summed.items():
            carried[place] = self._sums.join(output, carried[place])
        return carried

    def _loops(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over the rows of a chunk."""
        left = [dim for dim in range(self._g.vector) if dim not in place.env]
        if self._stages:
            return self._chunks.loops(left, place, carried, self._long_row)
        if self._plan.rows not in left:
            return self._chunks.loops(left, place, carried, self._row)
        return self._chunks.loops(left[:-1], place, carried, self._blocks)

    def _long_row(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run all stages over one row."""
        block = Block(dict(zip(self._plan.outputs, carried, strict=True)), {})
        for stage in self._stages:
            place = stage.run(place, block)
        return block.tensors

    def _row(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over one row."""
        row = place.env.get(self._plan.rows, 0)
        rows = row, self._e.add(row, 1)
        return self._one(place, rows, self._cleared(place, rows, carried))

    def _blocks(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over blocks of rows."""
        bounds = self._chunks.bounds(place, self._plan.rows)
        carried = self._cleared(place, bounds, carried)
        if self._s.pipelined:
            return self._pipelined(place, bounds, carried)
        return self._e.loop(
            (*bounds, self._s.block),
            carried,
            lambda i, inside: self._one(place, (i, self._end(i, bounds[1])), inside),
        )

    def _cleared(self, place: Place, rows: tuple[Index, Index], carried: list[Value]) -> list[Value]:
        """Let the partial sums of ``rows`` begin; return what is carried."""
        found = list(carried)
        for number, output in self._summed.items():
            first = self._sums.slot(place.env, rows[0])
            last = self._sums.slot(place.env, self._e.sub(rows[1], 1))
            found[number] = self._sums.clear(output, found[number], (first, self._e.add(last, 1)))
        return found

    def _end(self, first: Index, upper: Index) -> Index:
        """Return the end of the block that begins at ``first``, or may begin behind the last row."""
        end = self._e.add(first, self._s.block)
        cut = self._s.rows.cut(self._plan.rows)
        whole = self._g.extents[self._plan.rows] % self._s.block == 0 and not self._s.pipelined
        whole = whole and (cut is None or cut.step % self._s.block == 0)
        return end if whole else self._e.minimum(end, upper)

    def _one(self, place: Place, rows: tuple[Index, Index], carried: list[Value]) -> list[Value]:
        """Run one pass after the other over a block of ``rows``."""
        block = self._passes.begin(carried)
        slot = self._passes.slot_of(rows[0])
        for number in range(self._count):
            block = self._passes.run(number, place, rows, slot, block)
        return list(block.outputs.values())

    def _pipelined(self, place: Place, bounds: tuple[Index, Index], carried: list[Value]) -> list[Value]:
        """Run over blocks: the first pass over one, the last over the one before, then all in between.

        There is a turn more than there are blocks; in the first one nothing is to be finished, in the last
        one nothing to be begun.
        """
        lower, upper = bounds
        step, run, last = self._s.block, self._passes.run, self._count - 1
        memory = self._passes.begin(carried)
        second = self._e.add(lower, step)

        def turn(i: Index, inside: list[Value]) -> list[Value]:
            here, slot = (i, self._end(i, upper)), self._passes.slot_of(i)
            before = self._e.sub(self._e.maximum(i, second), step), self._e.minimum(i, upper)
            block = run(0, place, here, slot, memory.at(inside))
            block = run(last, place, before, self._passes.slot_of(self._e.add(i, step)), block)
            for number in range(1, last):
                block = run(number, place, here, slot, block)
            return block.tensors

        tensors = self._e.loop((lower, self._e.add(upper, step), step), memory.tensors, turn)
        return list(memory.at(tensors).outputs.values())
