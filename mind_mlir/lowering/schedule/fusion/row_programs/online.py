"""Emits sums of exponentials along a row that are relative to its maximum so far.

A step compares its elements with the maximum so far, and rarely finds a greater one: then that is the maximum
from here on, and what has been summed is scaled. So elements are read once, and in a steady stream.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.exponentials import OnlineExponentials
from mind_mlir.lowering.schedule.folds.reductions import combined
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk, Known
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import along
from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.folds.reductions import Combiner
    from mind_mlir.lowering.schedule.fusion.nests.body import Place, Range
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Stage
    from mind_mlir.lowering.schedule.fusion.row_programs.row_memory import Block
    from mind_mlir.lowering.schedule.fusion.row_programs.row_passes import RowPasses
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowPlan


class Online:
    """Emits a stage that sums exponentials relative to a maximum.

    What goes from step to step is the maximum so far, what is subtracted for it, and the sums. While all
    elements are minus infinity, that is zero: exponentials are zero then.

    Args:
        first: The number of its first pass.
    """

    def __init__(self, emitter: Emitter, plan: RowPlan, stage: Stage, first: int, passes: RowPasses) -> None:
        self._e = emitter
        self._schedule = plan.schedule.passes[first]
        self._centre = stage.relative[0].centre
        self._first = first
        self._passes = passes
        self._fold = OnlineExponentials(emitter, self._centre.type.element_type)

    def begin(self) -> list[Value]:
        """Return the maximum of nothing, and what is subtracted for it."""
        return self._fold.begin()

    def run(
        self, place: Place, block: Block, range_: Range, running: list[Value]
    ) -> tuple[dict[Value, Value], list[Value]]:
        """Go over a segment of a row.

        Returns:
            The maximum so far and the sums of the segment, and ``running`` behind it: the maximum of what was
            before, and what is subtracted for it.
        """
        first, here = self._passes.body(self._first, place, block)
        second, other = self._passes.body(self._first + 1, place, block, [self._centre])
        (maximum,) = first.reducers
        (value,) = maximum.wanted
        lowest = self._e.number(self._e.vector_type(self._schedule.width, maximum.element), -math.inf)

        def step(chunk: Chunk, inside: list[Value]) -> list[Value]:
            computed = first.elements.chunk(here.env, here.known, chunk, here.now)
            elements = first.elements.vector(value, computed)
            if chunk.mask is not None:
                elements = self._e.select(chunk.mask, elements, lowest)
            greatest, subtracted, *sums = self._raised(elements, maximum.combiner, inside)
            scalars = {**other.known.scalars, self._centre: subtracted}
            there = other.at(other.env, Known(scalars, other.known.vectors))
            return [greatest, subtracted, *second.accumulate_alone(there, chunk, sums)]

        segment = here.within(second.group.vector, range_)
        greatest, subtracted, *sums = along(second, segment, [*running, *second.neutral], step)
        totals = {maximum.result: greatest}
        for output, total in zip(second.reducers, sums, strict=True):
            totals[output.result] = output.combiner.horizontal(total)
        return totals, [greatest, subtracted]

    def _raised(self, elements: Value, combiner: Combiner, inside: list[Value]) -> list[Value]:
        """Return what goes from step to step, once ``elements`` are no greater than the maximum."""
        lanes, width = self._schedule.lanes, self._schedule.width
        parts = [self._e.part(elements, first, lanes) for first in range(0, width, lanes)]
        greatest = self._e.broadcast(parts[0].type, inside[0])
        found = [arith.CmpFOp(arith.CmpFPredicate.UGT, part, greatest).result for part in parts]
        kind = ir.Attribute.parse("#vector.kind<or>")
        boolean = ir.IntegerType.get_signless(1)
        any_ = vector.ReductionOp(boolean, kind, _all("arith.ori", found)).result

        def raise_(now: list[Value]) -> list[Value]:
            before, _, *sums = now
            own = combiner.horizontal(_all(combiner.name, parts))
            maximum = combiner.combine(before, own)
            subtracted = self._fold.subtracted(maximum)
            # A vector as elsewhere, so that the loop has one set of constants.
            factor = self._fold.factor(before, subtracted, elements.type)
            return [maximum, subtracted, *(self._fold.scaled(total, factor) for total in sums)]

        return self._e.either(any_, inside, raise_, lambda now: now)


def _all(name: str, parts: list[Value]) -> Value:
    """Emit operation ``name`` of all ``parts``."""
    return functools.reduce(functools.partial(combined, name), parts)
