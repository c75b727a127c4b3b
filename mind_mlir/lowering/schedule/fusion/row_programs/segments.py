"""Emits the passes of a stage over the segments of a long row.

What a stage reduces of each segment is a number in memory, a tensor with an element a segment for each;
behind the stage those of all are joined, in f64. A sum or a maximum has one number a segment. A sum of
exponentials is relative to the maximum of its segment, which is another reduction. A sum of squares is
relative to the mean of its segment, and has three numbers more: that mean, the sum of the differences, and
the elements of the segment. It takes a second pass over the segment while that is in the cache.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.folds.exponentials import OnlineExponentials
from mind_mlir.lowering.schedule.folds.reductions import combiner_named
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk, Known
from mind_mlir.lowering.schedule.fusion.nests.program import Folded, Output, Range
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import along
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Relative, RelativeKind
from mind_mlir.mlir.bindings import Value, arith, ir, vector
from mind_mlir.mlir.bindings import math as math_

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.folds.fold import Fold
    from mind_mlir.lowering.schedule.fusion.nests.plan import Root
    from mind_mlir.lowering.schedule.fusion.nests.program import Place
    from mind_mlir.lowering.schedule.fusion.row_programs.relative import Stage
    from mind_mlir.lowering.schedule.fusion.row_programs.row_passes import RowPasses, Written
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import SegmentSchedule
    from mind_mlir.mlir.bindings import Type

    #: The first of some segments and the one behind the last; None for what follows the whole segments.
    Span = tuple[Index, Index] | None

    #: Reads a vector of numbers; lanes beyond the last segment hold zero unless another number is given.
    Read: TypeAlias = Callable[..., Value]


class Segments:
    """Emits one stage."""

    def __init__(self, emitter: Emitter, stage: Stage, schedule: SegmentSchedule, passes: RowPasses) -> None:
        self._e = emitter
        self._stage = stage
        self._passes = passes
        self._first = stage.first
        self._schedule = schedule
        self._steps = passes.schedule.passes
        self._lanes = passes.schedule.lanes
        self._extent = passes.group.extents[passes.group.vector]
        #: Whole segments of a row, and segments.
        self._whole = self._extent // self._schedule.size
        self._count = -(-self._extent // self._schedule.size)
        element = stage.relative[0].centre.type.element_type if stage.is_online else None
        self._online = None if element is None else OnlineExponentials(emitter, element)

    def run(self, place: Place, block: Written) -> Place:
        """Run the stage over a row, and change ``block``; return ``place`` with the numbers behind it."""
        numbers = self._along(place, block)
        for number in range(len(self._stage.passes)):
            total = functools.partial(self._joined, numbers, place.known.scalars)
            place = place.at(place.env, self._passes.finish(self._first + number, place, block, total))
        return place

    def _along(self, place: Place, block: Written) -> Written:
        """Run the passes over all segments of a row; return what is reduced of each."""
        before = {**block, **self._memory()}
        count = len(before)

        def run(span: Span, inside: list[Value]) -> list[Value]:
            own = dict(zip(before, inside, strict=False))
            running = self._segment(place, span, own, inside[count:])
            return [*own.values(), *running]

        def chunk(first: Index, end: Index, inside: list[Value]) -> list[Value]:
            if not self._stage.reduces:
                return run((first, end), inside)
            carried = [*inside, *self._begin()]
            found = self._e.loop((first, end, 1), carried, lambda i, now: run((i, self._e.add(i, 1)), now))
            return found[:count]

        carried = self._e.chunks(self._schedule.split, self._whole, list(before.values()), chunk)
        if self._count > self._whole:
            carried = run(None, [*carried, *self._begin()])
        after = dict(zip(before, carried, strict=False))
        block.update((value, after[value]) for value in block)
        return after

    def _begin(self) -> list[Value]:
        """Return what the first of some segments takes over."""
        return [] if self._online is None else self._online.begin()

    def _segment(self, place: Place, span: Span, block: Written, running: list[Value]) -> list[Value]:
        """Run the passes over a segment, or over several ones where nothing is reduced.

        Returns:
            What it hands on to the next one, as the one before did ``running``.
        """
        slot: Index = self._whole if span is None else span[0]
        if self._online is not None:
            totals, running = self._exponentials(place, span, block, running, self._online)
            self._note(block, "total", totals, slot)
            return running
        totals = self._passes.along(self._first, place, block, self._range(span, self._first))
        self._note(block, "total", totals, slot)
        if self._stage.relative:
            self._squares(place, span, block, totals, slot)
        return running

    def _exponentials(
        self, place: Place, span: Span, block: Written, running: list[Value], fold: OnlineExponentials
    ) -> tuple[dict[Value, Value], list[Value]]:
        """Sum exponentials of a segment relative to the maximum so far, both passes in one.

        A step compares its elements with that, and rarely finds a greater one: then that is the maximum from
        here on, and what has been summed is scaled. What goes from step to step is the maximum, what is
        subtracted for it, and the sums.

        Returns:
            The maximum so far and the sums of the segment, and ``running`` behind it: the maximum of what was
            before, and what is subtracted for it.
        """
        centre = self._stage.relative[0].centre
        first, here = self._passes.body(self._first, place, block)
        second, other = self._passes.body(self._first + 1, place, block, [centre])
        (maximum,) = first.reducers
        width = self._steps[self._first].width
        lowest = self._e.number(self._e.vector_type(width, maximum.element), -math.inf)

        def step(chunk: Chunk, inside: list[Value]) -> list[Value]:
            computed = first.elements.chunk(here.env, here.known, chunk, here.now)
            elements = first.elements.vector(maximum.value, computed)
            if chunk.mask is not None:
                elements = self._e.select(chunk.mask, elements, lowest)
            greatest, subtracted, *sums = self._raised(elements, maximum.fold, inside, fold)
            scalars = {**other.known.scalars, centre: subtracted}
            there = other.at(other.env, Known(scalars, other.known.vectors))
            return [greatest, subtracted, *second.accumulate(there, chunk, sums)]

        segment = here.within(second.group.vector, self._range(span, self._first))
        greatest, subtracted, *sums = along(second, segment, [*running, *second.neutral], step)
        totals = {maximum.result: greatest}
        for output, total in zip(second.reducers, sums, strict=True):
            totals.update(zip([output.result], output.fold.totals(self._e, [total]), strict=True))
        return totals, [greatest, subtracted]

    def _raised(
        self, elements: Value, extreme: Fold, inside: list[Value], fold: OnlineExponentials
    ) -> list[Value]:
        """Return what goes from step to step, once ``elements`` are no greater than the maximum."""
        lanes, width = self._lanes, self._steps[self._first].width
        parts = [self._e.part(elements, first, lanes) for first in range(0, width, lanes)]
        greatest = self._e.broadcast(parts[0].type, inside[0])
        found = [arith.CmpFOp(arith.CmpFPredicate.UGT, part, greatest).result for part in parts]
        kind = ir.Attribute.parse("#vector.kind<or>")
        boolean = ir.IntegerType.get_signless(1)
        any_ = vector.ReductionOp(boolean, kind, _all("arith.ori", found)).result

        def raise_(now: list[Value]) -> list[Value]:
            before, _, *sums = now
            own = extreme.totals(self._e, [_all(extreme.name, parts)])
            (maximum,) = extreme.joined([before], own)
            subtracted = fold.subtracted(maximum)
            # A vector as elsewhere, so that the loop has one set of constants.
            factor = fold.factor(before, subtracted, elements.type)
            return [maximum, subtracted, *(fold.scaled(total, factor) for total in sums)]

        return self._e.either(any_, inside, raise_, lambda now: now)

    def _squares(
        self, place: Place, span: Span, block: Written, totals: Mapping[Value, Value], slot: Index
    ) -> None:
        """Sum squares relative to the mean of a segment, and the differences, in a second pass over it."""
        squares, second = self._stage.relative, self._first + 1
        members = {view.op.results[0]: view for view in self._stage.passes[1].reduced}
        counts = block["count", None]
        last = self._extent % self._schedule.size
        counted = self._e.number(counts.type.element_type, last if span is None else self._schedule.size)
        own = {each.result: arith.DivFOp(totals[each.source], counted).result for each in squares}
        centres = {each.centre: own[each.result] for each in squares}
        rests = [
            Output(members[each.result], 0, members[each.result].inits[0], instead=each.difference)
            for each in squares
        ]
        here = place.at(place.env, Known({**place.known.scalars, **centres}))
        found = self._passes.along(second, here, block, self._range(span, second), rests)
        self._note(block, "total", {each.result: found[each.result] for each in squares}, slot)
        self._note(block, "rest", {each.result: found[each.difference] for each in squares}, slot)
        self._note(block, "own", own, slot)
        block["count", None] = self._e.insert(counted, counts, [slot])

    def _note(self, block: Written, name: str, found: Mapping[Value, Value], slot: Index) -> None:
        """Store what was ``found`` of a segment."""
        for result, value in found.items():
            block[name, result] = self._e.insert(value, block[name, result], [slot])

    def _range(self, span: Span, number: int) -> Range:
        """Return the iterations of the vector loop, in steps of pass ``number``, that ``span`` is."""
        if span is None:
            rest = self._extent % self._steps[number].width
            return Range(self._whole * self._schedule.size, self._extent - rest)
        first, end = (self._e.mul(segment, self._schedule.size) for segment in span)
        return Range(first, end, end=False)

    def _memory(self) -> Written:
        """Emit memory for the numbers of one row, tensors with an element a segment."""
        views = [view for part in self._stage.passes for view in part.reduced]
        squares = [each.result for each in self._stage.relative if each.kind is RelativeKind.SQUARES]
        rows: list[tuple[str, Value | None, Value]] = []
        rows += [("total", result, result) for view in views for result in view.op.results]
        rows += [(name, result, result) for name in ("rest", "own") for result in squares]
        rows += [("count", None, result) for result in squares[:1]]
        return {(name, of): self._e.empty([self._count], like.type.element_type) for name, of, like in rows}

    def _joined(self, numbers: Written, known: Mapping[Root, Value], each: Folded) -> list[Value]:
        """Return what ``each`` adds up to, given the numbers of the segments and those of the row."""
        neutral = each.nothing(self._e, self._lanes, wide=True)

        def add(at: Index, mask: Value | None, now: list[Value]) -> list[Value]:
            paddings = each.fold.nothings(self._e, [output.element for output in each.outputs])
            pairs = zip(each.outputs, paddings, strict=True)
            terms = [self._terms(numbers, known, output, (at, mask, padding)) for output, padding in pairs]
            if mask is not None:
                live = zip(terms, neutral, strict=True)
                terms = [self._e.select(mask, *pair) for pair in live]
            return each.fold.joined(now, terms)

        found = self._e.vectors(self._count, self._lanes, neutral, add)
        totals = zip(each.fold.totals(self._e, found), each.outputs, strict=True)
        return [self._e.cast(total, output.element) for total, output in totals]

    def _terms(
        self,
        numbers: Written,
        known: Mapping[Root, Value],
        output: Output,
        place: tuple[Index, Value | None, Value],
    ) -> Value:
        """Return what ``output`` takes of some segments: of those at a ``place`` that a mask has on."""
        at, mask, neutral = place
        element, wide = output.element, output.fold.wider(output.element)
        relative = next((each for each in self._stage.relative if each.result == output.result), None)
        type_, nothing = self._e.vector_type(self._lanes, element), self._e.number(element, 0)

        def read(name: str, of: Value | None, padding: Value = nothing) -> Value:
            return self._e.read(type_, numbers[name, of], [at], padding, mask)

        if relative is None:
            return self._e.cast(read("total", output.result, neutral), wide)
        return _TERMS[relative.kind](self._e, relative, read, known[relative.centre], wide)


def _all(name: str, parts: list[Value]) -> Value:
    """Emit operation ``name`` of all ``parts``."""
    return functools.reduce(combiner_named(name).combine, parts)


def _exponentials(e: Emitter, sum_: Relative, read: Read, centre: Value, wide: Type) -> Value:
    """Return the sums of some segments, as if the maximum of the row had been subtracted.

    Where the maximum of a segment is minus infinity, its sum is zero, and so is the factor unless all of
    the row is minus infinity: then it is NaN, as it would be in one segment.
    """
    greatest = read("total", sum_.source, e.number(centre.type, -math.inf))
    totals = read("total", sum_.result)
    less = arith.SubFOp(greatest, e.broadcast(greatest.type, centre)).result
    factor = e.cast(math_.ExpOp(less).result, wide)
    return arith.MulFOp(e.cast(totals, wide), factor).result


def _squares(e: Emitter, sum_: Relative, read: Read, centre: Value, wide: Type) -> Value:
    """Return the sums of some segments, as if the number of the row had been subtracted."""
    total, rest = (e.cast(read(name, sum_.result), wide) for name in ("total", "rest"))
    count = e.cast(read("count", None), wide)
    narrow = read("own", sum_.result)
    own = e.cast(narrow, wide)
    row = e.cast(e.broadcast(narrow.type, centre), wide)
    two = e.number(total.type, 2.0)
    apart = arith.SubFOp(own, row).result
    inner = arith.AddFOp(arith.MulFOp(two, rest).result, arith.MulFOp(count, apart).result).result
    return arith.AddFOp(total, arith.MulFOp(apart, inner).result).result


_TERMS = {
    RelativeKind.EXPONENTIALS: _exponentials,
    RelativeKind.SQUARES: _squares,
}
