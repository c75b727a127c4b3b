"""Emits the passes of a stage over the segments of a long row.

What a stage reduces of each segment is a number in memory, a tensor with an element a segment for each; they
are joined behind the stage (see `segment_folds`). A second pass goes over a segment relative to what the
first one has just found there, while the segment is in the cache.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.nests.body import Output, Range
from mind_mlir.lowering.schedule.fusion.nests.elements import Known
from mind_mlir.lowering.schedule.fusion.row_programs.online import Online
from mind_mlir.lowering.schedule.fusion.row_programs.segment_folds import Numbers, SegmentFolds
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.body import Place
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Stage
    from mind_mlir.lowering.schedule.fusion.row_programs.row_memory import Block
    from mind_mlir.lowering.schedule.fusion.row_programs.row_passes import RowPasses
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowPlan

    #: The first of some segments and the one behind the last; None for what follows the whole segments.
    Span = tuple[Index, Index] | None


class Segments:
    """Emits one stage.

    Args:
        number: Which stage.
        first: The number of its first pass.
    """

    def __init__(
        self, emitter: Emitter, plan: RowPlan, stage: Stage, number: int, first: int, passes: RowPasses
    ) -> None:
        self._e = emitter
        self._stage = stage
        self._passes = passes
        self._first = first
        self._schedule = plan.schedule.segments[number]
        self._width = plan.schedule.passes[first].width
        self._extent = plan.group.extents[plan.group.vector]
        #: Whole segments of a row, and segments.
        self._whole = self._extent // self._schedule.size
        self._count = -(-self._extent // self._schedule.size)
        self._online = Online(emitter, plan, stage, first, passes) if stage.is_online else None
        self._folds = SegmentFolds(emitter, stage, plan.schedule.rows.lanes, self._count)

    def run(self, place: Place, block: Block) -> Place:
        """Run the stage over a row.

        Args:
            place: The loops over the rows, and the numbers of the row so far.
            block: What is written; changed.

        Returns:
            ``place`` with the numbers that the row has behind the stage.
        """
        numbers = self._along(place, block)
        for number in range(len(self._stage.passes)):
            total = functools.partial(self._folds.join, numbers, place.known.scalars)
            place = place.at(place.env, self._passes.finish(self._first + number, place, block, total))
        return place

    def _along(self, place: Place, block: Block) -> Numbers:
        """Run the passes over all segments of a row; return what is reduced of each."""
        memory = self._folds.memory()
        stored = self._stage.stored
        written = len(stored) + len(memory)

        def run(span: Span, inside: list[Value]) -> list[Value]:
            own = block.at(block.tensors)
            own.outputs.update(zip(stored, inside, strict=False))
            numbers = dict(zip(memory, inside[len(stored) : written], strict=True))
            running = self._segment(place, span, own, numbers, inside[written:])
            return [*(own.outputs[value] for value in stored), *numbers.values(), *running]

        def chunk(first: Index, end: Index, inside: list[Value]) -> list[Value]:
            if not self._stage.reduces:
                return run((first, end), inside)
            carried = [*inside, *self._begin()]
            found = self._e.loop((first, end, 1), carried, lambda i, now: run((i, self._e.add(i, 1)), now))
            return found[:written]

        carried = [*(block.outputs[value] for value in stored), *memory.values()]
        carried = self._e.chunks(self._schedule.split, self._whole, carried, chunk)
        if self._count > self._whole:
            carried = run(None, [*carried, *self._begin()])
        block.outputs.update(zip(stored, carried, strict=False))
        return dict(zip(memory, carried[len(stored) : written], strict=True))

    def _begin(self) -> list[Value]:
        """Return what the first of some segments takes over."""
        return [] if self._online is None else self._online.begin()

    def _segment(
        self, place: Place, span: Span, block: Block, numbers: Numbers, running: list[Value]
    ) -> list[Value]:
        """Run the passes over a segment, or over several ones where nothing is reduced.

        Args:
            place: The loops over the rows, and the numbers of the row so far.
            span: Which.
            block: What is written; changed.
            numbers: What is reduced of segments; changed.
            running: What the segment before hands on.

        Returns:
            What this one hands on.
        """
        slot: Index = self._whole if span is None else span[0]
        range_of = functools.partial(self._range, span)
        if self._online is not None:
            totals, running = self._online.run(place, block, range_of(self._width), running)
            self._note(numbers, "total", totals, slot)
            return running
        totals = self._passes.along(self._first, place, block, range_of)
        self._note(numbers, "total", totals, slot)
        if self._stage.relative:
            self._squares(place, span, block, numbers, totals, slot)
        return running

    def _squares(
        self,
        place: Place,
        span: Span,
        block: Block,
        numbers: Numbers,
        totals: Mapping[Value, Value],
        slot: Index,
    ) -> None:
        """Sum squares relative to the mean of a segment, and the differences, in a second pass over it."""
        squares = self._stage.relative
        members = {view.op.results[0]: view for view in self._stage.passes[1].reduced}
        last = self._extent % self._schedule.size
        counts = numbers["count", None]
        element = ir.RankedTensorType(counts.type).element_type
        counted = self._e.number(element, last if span is None else self._schedule.size)
        own = {each.result: arith.DivFOp(totals[each.source], counted).result for each in squares}
        centres = {each.centre: own[each.result] for each in squares}
        rests = [
            Output(members[each.result], 0, members[each.result].inits[0], instead=each.difference)
            for each in squares
        ]
        here = place.at(place.env, Known({**place.known.scalars, **centres}))
        range_of = functools.partial(self._range, span)
        found = self._passes.along(self._first + 1, here, block, range_of, rests)
        self._note(numbers, "total", {each.result: found[each.result] for each in squares}, slot)
        self._note(numbers, "rest", {each.result: found[each.difference] for each in squares}, slot)
        self._note(numbers, "own", own, slot)
        numbers["count", None] = self._e.insert(counted, counts, [slot])

    def _note(self, numbers: Numbers, name: str, found: Mapping[Value, Value], slot: Index) -> None:
        """Store what was ``found`` of a segment."""
        for result, value in found.items():
            numbers[name, result] = self._e.insert(value, numbers[name, result], [slot])

    def _range(self, span: Span, width: int) -> Range:
        """Return the iterations of the vector loop, in steps of ``width``, that ``span`` is."""
        if span is None:
            return Range(self._whole * self._schedule.size, self._extent - self._extent % width)
        first, end = (self._e.mul(segment, self._schedule.size) for segment in span)
        return Range(first, end, end=False)
