"""Emits the passes of a stage over a piece of a long row, and memory for what is reduced of each piece."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.group import Group
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Place, Range
from mind_mlir.lowering.schedule.fusion.nests.columns import Columns
from mind_mlir.lowering.schedule.fusion.nests.elements import Known
from mind_mlir.lowering.schedule.fusion.nests.output import Output, reductions_of
from mind_mlir.lowering.schedule.fusion.nests.rows import Rows
from mind_mlir.lowering.schedule.fusion.row_programs.online import Online
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Kind
from mind_mlir.mlir.bindings import Type, Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.row_programs.long_schedule import StageSchedule
    from mind_mlir.lowering.schedule.fusion.row_programs.long_stages import Stage
    from mind_mlir.target import Target


@dataclasses.dataclass
class SegmentValues:
    """The reductions of each piece of a row: tensors with an element a piece, as they are by now.

    Attributes:
        totals: Of each reduction.
        rests: Of each sum of squares of differences, the sums of the differences.
        own: Of each sum of squares of differences, the numbers that were subtracted.
        counts: How many elements pieces have, where that is asked for: one tensor, or none.
        running: What pieces hand on to the next one: a maximum so far, and what is subtracted for it.
    """

    totals: dict[Value, Value]
    rests: dict[Value, Value]
    own: dict[Value, Value]
    counts: list[Value]
    running: list[Value]

    @property
    def values(self) -> list[Value]:
        """All of them, in order."""
        return [*self.totals.values(), *self.rests.values(), *self.own.values(), *self.counts, *self.running]

    def at(self, values: Sequence[Value]) -> SegmentValues:
        """Return the same with other ``values``, in order."""
        left = iter(values)
        totals, rests, own = (
            {value: next(left) for value in group} for group in (self.totals, self.rests, self.own)
        )
        counts = [next(left) for _ in self.counts]
        return SegmentValues(totals, rests, own, counts, list(left))


class Segments:
    """Emits passes over pieces of rows.

    Args:
        emitter: Where to emit.
        group: All operations of the program; their rows lie along the last loop.
        outputs: The results that are used outside of it.
        stage: What is computed.
        schedule: How.
        target: The processor.
    """

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        outputs: Mapping[Value, Output],
        stage: Stage,
        schedule: StageSchedule,
        target: Target,
    ) -> None:
        self._e = emitter
        self._g = group
        self._outputs = outputs
        self._stage = stage
        self._s = schedule
        self._target = target
        self._extent = group.extents[group.vector]
        #: Whole pieces of a row, and pieces.
        self.whole, self.count = self._extent // schedule.segment, -(-self._extent // schedule.segment)

    def memory(self) -> SegmentValues:
        """Emit memory for what is reduced of the pieces of one row."""

        def empty(value: Value) -> Value:
            return self._e.empty([self.count], _element(value))

        reduced = [view.op.results for part in self._stage.passes for view in part.reduced]
        squares = [each.result for each in self._stage.relative if each.kind is Kind.SQUARES]
        return SegmentValues(
            {result: empty(result) for results in reduced for result in results},
            {result: empty(result) for result in squares},
            {result: empty(result) for result in squares},
            [empty(result) for result in squares[:1]],
            [],
        )

    def begin(self, numbers: SegmentValues) -> SegmentValues:
        """Return ``numbers`` with what the first of some pieces takes over."""
        if not self._stage.is_online:
            return numbers
        return dataclasses.replace(numbers, running=self._online().begin())

    def run(
        self,
        place: Place,
        span: tuple[Index, Index] | None,
        results: dict[Value, Value],
        numbers: SegmentValues,
    ) -> None:
        """Run the passes over a piece, or over several ones where nothing is reduced.

        Args:
            place: The loops over the rows, and the numbers of the row so far.
            span: The first piece and the one behind the last; None for what follows the whole pieces.
            results: The tensors of the results; changed.
            numbers: What is reduced of pieces; changed.
        """
        slot: Index = self.whole if span is None else span[0]
        if self._stage.is_online:
            totals, numbers.running = self._online().run(
                place, self._range(span, self._s.passes[0].width), numbers.running
            )
            self._note(numbers.totals, totals, slot)
            return
        _, *others = self._stage.passes
        totals = self._pass(0, place, span, results, {}, [])
        self._note(numbers.totals, totals, slot)
        if not others:
            return
        (second,) = others
        squares = self._stage.relative
        members = {view.op.results[0]: view for view in second.reduced}
        counted = self._elements(numbers.counts[0], last=span is None)
        own = {each.result: arith.DivFOp(totals[each.source], counted).result for each in squares}
        live_ins = {each.centre: own[each.result] for each in squares}
        rests = [
            Output(members[each.result], 0, members[each.result].inits[0], instead=each.difference)
            for each in squares
        ]
        totals = self._pass(1, place, span, results, live_ins, rests)
        self._note(numbers.totals, {each.result: totals[each.result] for each in squares}, slot)
        self._note(numbers.rests, {each.result: totals[each.difference] for each in squares}, slot)
        self._note(numbers.own, own, slot)
        numbers.counts = [self._e.insert(counted, tensor, [slot]) for tensor in numbers.counts]

    def _pass(
        self,
        number: int,
        place: Place,
        span: tuple[Index, Index] | None,
        results: dict[Value, Value],
        live_ins: Mapping[Value, Value],
        others: Sequence[Output],
    ) -> dict[Value, Value]:
        """Run a pass; return what it reduces, and of ``others`` what is reduced instead."""
        part = self._stage.passes[number]
        streams = [self._outputs[value] for value in part.stored]
        reduced = reductions_of(part.reduced)
        along = (self._g.vector,) if part.reduced else ()
        group = Group(self._g.extents, self._g.vector, part.members, along)
        outer = frozenset(range(self._g.vector))
        scalars = {**place.known.scalars, **live_ins}
        dims = dict.fromkeys([value for value in part.live_ins if value in scalars], outer)
        outputs = [*streams, *reduced, *others]
        body = NestBody(self._e, group, outputs, self._s.passes[number], self._target, dims)
        known = body.elements.advance(place.env, Known(scalars))
        body.elements.spread(known)
        inside = Place(
            place.env, known, {self._g.vector: self._range(span, body.schedule.width)}, now=self._now(results)
        )
        tensors = [results[value] for value in part.stored]
        if not part.reduced:
            results.update(zip(part.stored, Columns(body).emit(inside, tensors), strict=True))
            return {}
        tensors, totals = Rows(body).totals(inside, tensors)
        results.update(zip(part.stored, tensors, strict=True))
        keys = [output.result if output.instead is None else output.instead for output in (*reduced, *others)]
        return dict(zip(keys, totals, strict=True))

    def _online(self) -> Online:
        return Online(self._e, self._g, self._stage, self._s, self._target)

    def _note(self, tensors: dict[Value, Value], found: Mapping[Value, Value], slot: Index) -> None:
        """Store what was ``found`` of a piece."""
        for key, value in found.items():
            tensors[key] = self._e.insert(value, tensors[key], [slot])

    def _elements(self, tensor: Value, *, last: bool) -> Value:
        """Return how many elements a piece has, as ``tensor`` holds it."""
        element = _element(tensor)
        count = self._extent % self._s.segment if last else self._s.segment
        return self._e.splat(element, ir.FloatAttr.get(element, float(count)))

    def _range(self, span: tuple[Index, Index] | None, width: int) -> Range:
        """Return the iterations of the vector loop, in steps of ``width``, that ``span`` is."""
        if span is None:
            return Range(self.whole * self._s.segment, self._extent - self._extent % width)
        first, end = (self._e.mul(segment, self._s.segment) for segment in span)
        return Range(first, end, end=False)

    def _now(self, results: Mapping[Value, Value]) -> dict[Value, Value]:
        """Return what is to be read instead of values and of tensors that have been written over."""
        found = {self._outputs[value].destination: tensor for value, tensor in results.items()}
        return {**found, **results}


def _element(value: Value) -> Type:
    return ir.RankedTensorType(value.type).element_type
