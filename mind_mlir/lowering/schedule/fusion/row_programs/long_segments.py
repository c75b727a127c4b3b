"""Emits the passes of a stage over a segment of a long row, and joins what is reduced of each segment.

Sums are joined in f64, in the order of the segments.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index, zero
from mind_mlir.lowering.schedule.folds.reductions import Combiner, match_combiners
from mind_mlir.lowering.schedule.fusion.groups.group import Group
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Output, Place, Range, reductions_of
from mind_mlir.lowering.schedule.fusion.nests.elements import Known
from mind_mlir.lowering.schedule.fusion.nests.nest import wider
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import Columns, Rows
from mind_mlir.lowering.schedule.fusion.row_programs.online import Online
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Kind, Relative
from mind_mlir.mlir.bindings import Type, Value, arith, ir
from mind_mlir.mlir.bindings import math as math_

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.lowering.schedule.fusion.row_programs.long_schedule import Stage, StageSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Attribute, Type, Value
    from mind_mlir.target import Target


@dataclasses.dataclass
class SegmentValues:
    """The reductions of each segment of a row: tensors with an element a segment, as they are by now.

    Attributes:
        totals: Of each reduction.
        rests: Of each sum of squares of differences, the sums of the differences.
        own: Of each sum of squares of differences, the numbers that were subtracted.
        counts: How many elements segments have, where that is asked for: one tensor, or none.
        running: What segments hand on to the next one: a maximum so far, and what is subtracted for it.
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
    """Emits passes over segments of rows."""

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
        #: Whole segments of a row, and segments.
        self.whole, self.count = self._extent // schedule.segment, -(-self._extent // schedule.segment)

    def memory(self) -> SegmentValues:
        """Emit memory for what is reduced of the segments of one row."""

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
        """Return ``numbers`` with what the first of some segments takes over."""
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
        """Run the passes over a segment, or over several ones where nothing is reduced.

        Args:
            place: The loops over the rows, and the numbers of the row so far.
            span: The first segment and the one behind the last; None for what follows the whole segments.
            results: The tensors of the results; changed.
            numbers: What is reduced of segments; changed.
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
        """Store what was ``found`` of a segment."""
        for key, value in found.items():
            tensors[key] = self._e.insert(value, tensors[key], [slot])

    def _elements(self, tensor: Value, *, last: bool) -> Value:
        """Return how many elements a segment has, as ``tensor`` holds it."""
        count = self._extent % self._s.segment if last else self._s.segment
        return self._e.number(_element(tensor), count)

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


class SegmentJoiner:
    """Joins the numbers of the segments of a row.

    Args:
        count: Segments.
    """

    def __init__(self, emitter: Emitter, lanes: int, count: int) -> None:
        self._e = emitter
        self._lanes = lanes
        self._count = count

    def total(self, view: View, number: int, numbers: SegmentValues) -> Value:
        """Return what result ``number`` of ``view``, a reduction, adds up to."""
        combiner = _combiner(view, number)
        tensor = numbers.totals[view.op.results[number]]
        element = ir.RankedTensorType(tensor.type).element_type
        wide = wider(combiner, element)
        neutral = combiner.neutral_attribute(element)
        found = self._joined(
            combiner, wide, lambda at, mask: self._e.cast(self._read(tensor, at, mask, neutral), wide)
        )
        return self._e.cast(found, element)

    def relative(self, sum_: Relative, view: View, numbers: SegmentValues, centre: Value) -> Value:
        """Return what the sum ``sum_`` of ``view`` adds up to, now that its ``centre`` is known."""
        combiner = _combiner(view, 0)
        element = centre.type
        wide = wider(combiner, element)
        terms = self._exponentials if sum_.kind is Kind.EXPONENTIALS else self._squares
        found = self._joined(combiner, wide, lambda at, mask: terms(sum_, numbers, centre, wide, at, mask))
        return self._e.cast(found, element)

    def _exponentials(
        self,
        sum_: Relative,
        numbers: SegmentValues,
        centre: Value,
        wide: Type,
        at: Index,
        mask: Value | None,
    ) -> Value:
        """Return the sums of some segments, as if the maximum of the row had been subtracted.

        Where the maximum of a segment is minus infinity, its sum is zero, and so is the factor unless all of
        the row is minus infinity: then it is NaN, as it would be in one segment.
        """
        element = centre.type
        lowest = ir.FloatAttr.get(element, -float("inf"))
        greatest = self._read(numbers.totals[sum_.source], at, mask, lowest)
        totals = self._read(numbers.totals[sum_.result], at, mask, zero(element))
        less = arith.SubFOp(greatest, self._e.broadcast(greatest.type, centre)).result
        factor = self._e.cast(math_.ExpOp(less).result, wide)
        return arith.MulFOp(self._e.cast(totals, wide), factor).result

    def _squares(
        self,
        sum_: Relative,
        numbers: SegmentValues,
        centre: Value,
        wide: Type,
        at: Index,
        mask: Value | None,
    ) -> Value:
        """Return the sums of some segments, as if the number of the row had been subtracted."""
        nothing = zero(centre.type)
        tensors = (numbers.totals[sum_.result], numbers.rests[sum_.result], *numbers.counts)
        total, rest, count = (self._e.cast(self._read(t, at, mask, nothing), wide) for t in tensors)
        own = self._e.cast(self._read(numbers.own[sum_.result], at, mask, nothing), wide)
        row = self._e.cast(self._e.broadcast(self._e.vector_type(self._lanes, centre.type), centre), wide)
        two = self._e.number(total.type, 2.0)
        apart = arith.SubFOp(own, row).result
        inner = arith.AddFOp(arith.MulFOp(two, rest).result, arith.MulFOp(count, apart).result).result
        return arith.AddFOp(total, arith.MulFOp(apart, inner).result).result

    def _joined(self, combiner: Combiner, wide: Type, terms: Callable[[Index, Value | None], Value]) -> Value:
        """Combine the ``terms`` of all segments, a vector of them at a time."""
        type_ = self._e.vector_type(self._lanes, wide)
        neutral = self._e.splat(type_, combiner.neutral_attribute(wide))

        def vector(at: Index, mask: Value | None, now: list[Value]) -> list[Value]:
            found = terms(at, mask)
            return [combiner.combine(now[0], found if mask is None else self._e.select(mask, found, neutral))]

        return combiner.horizontal(self._e.vectors(self._count, self._lanes, [neutral], vector)[0])

    def _read(self, tensor: Value, at: Index, mask: Value | None, padding: Attribute) -> Value:
        element = ir.RankedTensorType(tensor.type).element_type
        type_ = self._e.vector_type(self._lanes, element)
        return self._e.read(type_, tensor, [at], self._e.splat(element, padding), mask)


def _combiner(view: View, number: int) -> Combiner:
    combiners = match_combiners(view.body, view.results)
    assert combiners is not None, "what is reduced in vectors is combined"
    return replace(combiners[number], location=view.op.location)
