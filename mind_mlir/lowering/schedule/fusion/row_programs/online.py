"""Emits sums of exponentials along a row that are relative to its maximum so far.

A step compares its elements with the maximum so far, and rarely finds a greater one: then that is the maximum
from here on, and what has been summed is scaled. So elements are read once, and in a steady stream.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.exponentials import OnlineExponentials
from mind_mlir.lowering.schedule.folds.reductions import match_combiners
from mind_mlir.lowering.schedule.fusion.groups.group import Group
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Place, Range, reductions_of, wanted_values
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk, Known
from mind_mlir.mlir.bindings import arith, ir, vector

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.row_programs.long_schedule import Stage, StageSchedule
    from mind_mlir.mlir.bindings import Type, Value
    from mind_mlir.target import Target


class Online:
    """Emits a stage that sums exponentials relative to a maximum.

    What goes from step to step is the maximum so far, what is subtracted for it, and the sums. While all
    elements are minus infinity, that is zero: exponentials are zero then.
    """

    def __init__(
        self, emitter: Emitter, group: Group, stage: Stage, schedule: StageSchedule, target: Target
    ) -> None:
        self._e = emitter
        self._g = group
        self._stage = stage
        self._schedules = schedule.passes
        self._target = target
        self._type: Type = stage.relative[0].centre.type.element_type
        (view,) = stage.passes[0].reduced
        (self._combiner,) = match_combiners(view.body, 1) or []
        self._fold = OnlineExponentials(emitter, self._type)

    def begin(self) -> list[Value]:
        """Return the maximum of nothing, and what is subtracted for it."""
        return self._fold.begin()

    def run(
        self, place: Place, range_: Range, running: list[Value]
    ) -> tuple[dict[Value, Value], list[Value]]:
        """Go over a segment of a row.

        Args:
            place: The loops over the rows, and the numbers of the row so far.
            range_: The segment.
            running: The maximum of what was before, and what is subtracted for it.

        Returns:
            The maximum so far and the sums of the segment, and ``running`` behind it.
        """
        first, second = (self._body(number, place) for number in range(2))
        known = [self._known(body, place) for body in (first, second)]
        (result,) = (output.result for output in first.reducers)
        (value,) = wanted_values(first.reducers[0])
        lowest = self._e.number(self._e.vector_type(first.schedule.width, self._type), -math.inf)

        def step(chunk: Chunk, inside: list[Value]) -> list[Value]:
            computed = first.elements.chunk(place.env, known[0], chunk, place.now)
            elements = first.elements.vector(value, computed)
            if chunk.mask is not None:
                elements = self._e.select(chunk.mask, elements, lowest)
            greatest, subtracted, *sums = self._raised(elements, inside)
            scalars = {**known[1].scalars, self._stage.relative[0].centre: subtracted}
            here = place.at(place.env, Known(scalars, known[1].vectors))
            following = second.accumulate(here, chunk, sums)
            if chunk.mask is not None:
                pairs = zip(following, sums, strict=True)
                following = [self._e.select(chunk.mask, new, old) for new, old in pairs]
            return [greatest, subtracted, *following]

        sums = [second.neutral(number) for number in range(len(second.reducers))]
        carried = self._e.loop(
            (range_.lower, range_.upper, first.schedule.width),
            [*running, *sums],
            lambda i, inside: step(Chunk(i), inside),
        )
        extent = self._g.extents[self._g.vector]
        if range_.end and extent != first.full:
            carried = step(
                Chunk(first.full, self._e.mask(first.schedule.width, extent - first.full)), carried
            )
        greatest, subtracted, *sums = carried
        totals = {result: greatest}
        for output, combiner, total in zip(second.reducers, second.combiners, sums, strict=True):
            totals[output.result] = combiner.horizontal(total)
        return totals, [greatest, subtracted]

    def _raised(self, elements: Value, inside: list[Value]) -> list[Value]:
        """Return what goes from step to step, once ``elements`` are no greater than the maximum."""
        lanes = self._schedules[0].lanes
        width = self._schedules[0].width
        parts = [self._e.part(elements, first, lanes) for first in range(0, width, lanes)]
        greatest = self._e.broadcast(parts[0].type, inside[0])
        found = [arith.CmpFOp(arith.CmpFPredicate.UGT, part, greatest).result for part in parts]
        kind = ir.Attribute.parse("#vector.kind<or>")
        boolean = ir.IntegerType.get_signless(1)
        any_ = vector.ReductionOp(boolean, kind, self._tree("arith.ori", found)).result

        def raise_(now: list[Value]) -> list[Value]:
            before, _, *sums = now
            own = self._combiner.horizontal(self._tree(self._combiner.name, parts))
            maximum = self._combiner.combine(before, own)
            subtracted = self._fold.subtracted(maximum)
            # A vector as elsewhere, so that the loop has one set of constants.
            factor = self._fold.factor(before, subtracted, elements.type)
            return [maximum, subtracted, *(self._fold.scaled(total, factor) for total in sums)]

        return self._e.either(any_, inside, raise_, lambda now: now)

    def _tree(self, name: str, parts: list[Value]) -> Value:
        return functools.reduce(
            lambda left, right: ir.Operation.create(name, [left.type], [left, right]).result, parts
        )

    def _body(self, number: int, place: Place) -> NestBody:
        """Return what a step computes in pass ``number``."""
        part = self._stage.passes[number]
        group = Group(self._g.extents, self._g.vector, part.members, (self._g.vector,))
        known = [value for value in part.live_ins if value in place.known.scalars]
        if number:
            known.append(self._stage.relative[0].centre)
        live_ins = dict.fromkeys(known, frozenset(range(self._g.vector)))
        outputs = reductions_of(part.reduced)
        return NestBody(self._e, group, outputs, self._schedules[number], self._target, live_ins)

    def _known(self, body: NestBody, place: Place) -> Known:
        known = body.elements.advance(place.env, Known(dict(place.known.scalars)))
        body.elements.spread(known)
        return known
