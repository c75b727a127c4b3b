"""Emits row programs as nests: over blocks of rows, and the passes over each block, or over long rows.

The last pass over a block runs while the first scalars of the next one are computed: the processor waits for
no pass to end, and writes while it reads. Where there is one block, passes follow one another.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.emission.constants import REPEATED, REPEATED_LONG
from mind_mlir.lowering.schedule.fusion.groups.row_program import RowSpace
from mind_mlir.lowering.schedule.fusion.nests.body import Output, Place
from mind_mlir.lowering.schedule.fusion.nests.nest import Chunks
from mind_mlir.lowering.schedule.fusion.row_programs.long_nest import LongRowEmitter
from mind_mlir.lowering.schedule.fusion.row_programs.long_schedule import (
    LongSchedule,
    choose_long_schedule,
    stages_of,
)
from mind_mlir.lowering.schedule.fusion.row_programs.passes import Passes, passes_of
from mind_mlir.lowering.schedule.fusion.row_programs.row_passes import Block, RowPasses, RowSums
from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import (
    RowPlan,
    RowSchedule,
    choose_row_schedule,
    is_long,
)
from mind_mlir.lowering.schedule.linalg_view.values import filler

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


class RowEmitter:
    """Emits one row program."""

    def __init__(self, emitter: Emitter, plan: RowPlan[RowSchedule]) -> None:
        self._e = emitter
        self._g = group = plan.group
        self._s = plan.schedule
        self._count = len(plan.passes.passes)
        self._destinations = [output.destination for output in plan.outputs]
        self._rows = group.vector - 1  # the loop over rows that blocks are made of; -1: there is one row
        self._sums = RowSums(emitter, group, plan.schedule)
        self._passes = RowPasses(emitter, plan, self._sums)
        summed = {view.op.results[0] for view in plan.passes.summed}
        #: Of each output that is a sum over the rows, by its place.
        self._summed = {
            place: dataclasses.replace(output, start=plan.starts[output.result])
            for place, output in enumerate(plan.outputs)
            if output.result in summed
        }

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order."""
        rows = self._s.rows
        chunks = Chunks(self._e, self._g.extents, self._g.vector, self._g.reductions, rows)
        carried = list(self._destinations)
        for place, output in self._summed.items():
            carried[place] = self._sums.partial(output)
        begin = Place({}, known, {})
        carried = chunks.emit(rows.cuts, begin, carried, self._loops, parallel=rows.parallel)
        for place, output in self._summed.items():
            carried[place] = self._sums.join(output, carried[place])
        return carried

    def _loops(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over the blocks of rows of a chunk."""
        dim = next((dim for dim in range(self._g.vector) if dim not in place.env), self._rows)
        if dim < 0 or dim in place.env:
            row = place.env.get(dim, 0)
            rows = row, self._e.add(row, 1)
            return self._one(place, rows, self._cleared(place, rows, carried))
        range_ = place.ranges.get(dim)
        bounds = (0, self._g.extents[dim]) if range_ is None else (range_.lower, range_.upper)
        if dim != self._rows:
            return self._e.loop(
                (*bounds, 1),
                carried,
                lambda i, inside: self._loops(place.at(place.env | {dim: i}, place.known), inside),
            )
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
            found[number] = self._sums.clear(output, found[number], place.env, rows)
        return found

    def _end(self, first: Index, upper: Index) -> Index:
        """Return the end of the block that begins at ``first``, or may begin behind the last row."""
        end = self._e.add(first, self._s.block)
        cut = self._s.rows.cut(self._rows)
        whole = self._g.extents[self._rows] % self._s.block == 0 and not self._s.pipelined
        whole = whole and (cut is None or cut.step % self._s.block == 0)
        return end if whole else self._e.minimum(end, upper)

    def _one(self, place: Place, rows: tuple[Index, Index], carried: list[Value]) -> list[Value]:
        """Run one pass after the other over a block of ``rows``."""
        block = self._passes.begin(carried)
        slot = self._passes.slot_of(rows[0])
        for number in range(self._count):
            self._passes.run(number, place, rows, slot, block)
        return list(block.outputs.values())

    def _pipelined(self, place: Place, bounds: tuple[Index, Index], carried: list[Value]) -> list[Value]:
        """Run over blocks: the first pass over one, the last over the one before, then all in between.

        There is a turn more than there are blocks; in the first one nothing is to be finished, in the last
        one nothing to be begun.
        """
        lower, upper = bounds
        step = self._s.block
        memory = self._passes.begin(carried)
        second = self._e.add(lower, step)

        def turn(i: Index, inside: list[Value]) -> list[Value]:
            block: Block = memory.at(inside)
            here, slot = (i, self._end(i, upper)), self._passes.slot_of(i)
            before = self._e.sub(self._e.maximum(i, second), step), self._e.minimum(i, upper)
            self._passes.run(0, place, here, slot, block)
            other = self._passes.slot_of(self._e.add(i, step))
            self._passes.run(self._count - 1, place, before, other, block)
            for number in range(1, self._count - 1):
                self._passes.run(number, place, here, slot, block)
            return block.tensors

        tensors = self._e.loop((lower, self._e.add(upper, step), step), memory.tensors, turn)
        return list(memory.at(tensors).outputs.values())


def starts_of(members: Sequence[View]) -> dict[Value, Value]:
    """Return the number that each reduction of ``members`` starts from, where that is known."""
    inits = [
        (result, filler(init))
        for view in members
        if view.reductions
        for result, init in zip(view.op.results, view.inits, strict=True)
    ]
    return {result: start for result, start in inits if start is not None}


AnyRowSchedule: TypeAlias = RowSchedule | LongSchedule


def choose_rows(
    group: Group, results: Sequence[Value], target: Target
) -> tuple[Passes, AnyRowSchedule] | None:
    """Return the passes of a row program and how they are computed; None if it is not to be one nest."""
    passes = _passes(group, results, REPEATED)
    schedule = choose_row_schedule(group, passes, results, target)
    if schedule is not None:
        return passes, schedule
    if not is_long(group, passes, results, target):
        return None
    passes = _passes(group, results, REPEATED_LONG)
    long = choose_long_schedule(group, passes, stages_of(passes, group.produced), results, target)
    return None if long is None else (passes, long)


def emit_rows(
    emitter: Emitter,
    group: Group,
    outputs: Sequence[Output],
    starts: Mapping[Value, Value],
    schedule: AnyRowSchedule,
    target: Target,
    known: Known,
) -> list[Value]:
    """Emit a row program at the insertion point; return the tensors of the outputs, in their order."""
    results = [output.result for output in outputs]
    if isinstance(schedule, LongSchedule):
        passes = _passes(group, results, REPEATED_LONG)
        plan = RowPlan(group, passes, outputs, starts, schedule, target)
        return LongRowEmitter(emitter, plan).emit(known)
    passes = _passes(group, results, REPEATED)
    return RowEmitter(emitter, RowPlan(group, passes, outputs, starts, schedule, target)).emit(known)


def _passes(group: Group, results: Sequence[Value], repeated: int) -> Passes:
    space = RowSpace(group.extents, group.reductions)
    return passes_of(group.members, group.produced, space, results, repeated)
