"""Emits row programs as nests: over blocks of rows, and the passes over each block, or over long rows.

The last pass over a block runs while the first scalars of the next one are computed: the processor waits for
no pass to end, and writes while it reads. Where there is one block, passes follow one another. Long rows go
through all stages one after the other: what the stage before has read is then still in the cache that all
threads share, if that is large enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.nests.nest import Chunks, GroupEmitter
from mind_mlir.lowering.schedule.fusion.nests.program import Folded, folded
from mind_mlir.lowering.schedule.fusion.row_programs.relative import stages_of
from mind_mlir.lowering.schedule.fusion.row_programs.row_passes import RowPasses
from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowProgramSchedule
from mind_mlir.lowering.schedule.fusion.row_programs.segments import Segments

if TYPE_CHECKING:
    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.program import NestProgram, Place
    from mind_mlir.mlir.bindings import Value


def emit_nest(emitter: Emitter, nest: NestProgram, known: Known) -> list[Value]:
    """Emit ``nest`` at the insertion point; return the tensors of the outputs, in their order.

    Args:
        emitter: Emits it.
        nest: A group, or a row program.
        known: Numbers from outside that are known as others.
    """
    if isinstance(nest.schedule, RowProgramSchedule):
        return RowEmitter(emitter, nest, nest.schedule).emit(known)
    return GroupEmitter(emitter, nest).emit(known)


class RowEmitter:
    """Emits one row program."""

    def __init__(self, emitter: Emitter, nest: NestProgram, schedule: RowProgramSchedule) -> None:
        self._e = emitter
        self._nest = nest
        self._s = schedule
        #: The loop over rows that lie behind one another; -1: there is one row.
        self._rows = nest.group.vector - 1
        self._passes = RowPasses(emitter, nest, schedule)
        self._sums, passes = self._passes.sums, self._passes.passes
        self._count = len(passes.passes)
        stages = zip(stages_of(passes), schedule.segments, strict=True) if schedule.segments else ()
        self._stages = [Segments(emitter, *each, self._passes) for each in stages]
        summed = {view.op.results[0] for view in passes.summed}
        #: Of each output that is a sum over the rows, by its place.
        self._summed = {place: output for place, output in enumerate(nest.outputs) if output.result in summed}
        self._chunks = Chunks(emitter, nest)

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order."""
        joined = folded(self._summed.values())
        return self._chunks.emit(self._chunk, known, self._nest.outputs, self._sums, joined)

    def _chunk(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over the rows of a chunk."""
        left = [dim for dim in range(self._rows + 1) if dim not in place.env]
        if self._stages:
            return self._chunks.loops(left, place, carried, self._long_row)
        return self._chunks.loops([dim for dim in left if dim != self._rows], place, carried, self._blocks)

    def _long_row(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run all stages over one row."""
        block = dict(zip(self._passes.outputs, carried, strict=True))
        for stage in self._stages:
            place = stage.run(place, block)
        return list(block.values())

    def _blocks(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over blocks of rows, or over the one row that ``place`` is in."""
        one = 0 if self._rows < 0 else place.env.get(self._rows)
        if one is not None:
            rows = one, self._e.add(one, 1)
            return self._block(place, rows, self._cleared(place, rows, carried))
        range_ = self._nest.range_of(place, self._rows)
        bounds = range_.lower, range_.upper
        carried = self._cleared(place, bounds, carried)
        if self._s.pipelined:
            return self._pipelined(place, bounds, carried)
        return self._e.loop(
            (*bounds, self._s.block),
            carried,
            lambda i, inside: self._block(place, (i, self._end(i, bounds[1])), inside),
        )

    def _cleared(self, place: Place, rows: tuple[Index, Index], carried: list[Value]) -> list[Value]:
        """Let the partial sums of ``rows`` begin; return what is carried."""
        found = list(carried)
        for number, output in self._summed.items():
            first = self._sums.slot(place.env, rows[0])
            last = self._sums.slot(place.env, self._e.sub(rows[1], 1))
            parts = first, self._e.add(last, 1)
            found[number : number + 1] = self._sums.clear(Folded((output,)), [found[number]], parts)
        return found

    def _end(self, first: Index, upper: Index) -> Index:
        """Return the end of the block that begins at ``first``, or may begin behind the last row."""
        end = self._e.add(first, self._s.block)
        whole = not self._s.pipelined and self._nest.divides(self._rows, self._s.block)
        return end if whole else self._e.minimum(end, upper)

    def _block(self, place: Place, rows: tuple[Index, Index], carried: list[Value]) -> list[Value]:
        """Run one pass after the other over a block of ``rows``."""
        block = self._passes.begin(carried)
        slot = self._passes.slot_of(rows[0])
        for number in range(self._count):
            block = self._passes.run(number, place, rows, slot, block)
        return [block[result] for result in self._passes.outputs]

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
            block = run(0, place, here, slot, dict(zip(memory, inside, strict=True)))
            block = run(last, place, before, self._passes.slot_of(self._e.add(i, step)), block)
            for number in range(1, last):
                block = run(number, place, here, slot, block)
            return list(block.values())

        tensors = self._e.loop((lower, self._e.add(upper, step), step), list(memory.values()), turn)
        return tensors[: len(self._passes.outputs)]
