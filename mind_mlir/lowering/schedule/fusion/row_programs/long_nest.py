"""Emits a row program over long rows: one row after the other, and each in stages.

A stage goes along the row segment by segment, and what its passes reduce of the segments is joined behind it.
Where rows are many, threads share these; where they are few, the segments of each. What the stage before has
read is then still in the cache that all of them share, if that is large enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.reductions import match_combiners
from mind_mlir.lowering.schedule.fusion.groups.group import Group
from mind_mlir.lowering.schedule.fusion.nests.body import Place
from mind_mlir.lowering.schedule.fusion.nests.elements import Elements, Known
from mind_mlir.lowering.schedule.fusion.nests.nest import Chunks
from mind_mlir.lowering.schedule.fusion.row_programs.long_schedule import LongSchedule, Stage, stages_of
from mind_mlir.lowering.schedule.fusion.row_programs.long_segments import (
    SegmentJoiner,
    Segments,
    SegmentValues,
)

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.emission.split import Split
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowPlan
    from mind_mlir.mlir.bindings import Value


class LongRowEmitter:
    """Emits one row program over long rows."""

    def __init__(self, emitter: Emitter, plan: RowPlan[LongSchedule]) -> None:
        self._e, self._g, self._s = emitter, plan.group, plan.schedule
        self._stages = stages_of(plan.passes, plan.group.produced)
        self._outputs = {output.result: output for output in plan.outputs}
        self._starts = plan.starts
        self._segments = [
            Segments(emitter, plan.group, self._outputs, *each, plan.target)
            for each in zip(self._stages, plan.schedule.stages, strict=True)
        ]

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order."""
        rows = self._s.rows
        chunks = Chunks(self._e, self._g.extents, self._g.vector, self._g.reductions, rows)
        carried = [output.destination for output in self._outputs.values()]
        begin = Place({}, known, {})
        return chunks.emit(rows.cuts, begin, carried, self._rows, parallel=rows.parallel)

    def _rows(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over the rows of a chunk."""
        dim = next((dim for dim in range(self._g.vector) if dim not in place.env), None)
        if dim is None:
            return self._row(place, carried)
        range_ = place.ranges.get(dim)
        bounds = (0, self._g.extents[dim]) if range_ is None else (range_.lower, range_.upper)
        return self._e.loop(
            (*bounds, 1),
            carried,
            lambda i, inside: self._rows(place.at(place.env | {dim: i}, place.known), inside),
        )

    def _row(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run one stage after the other over a row."""
        results = dict(zip(self._outputs, carried, strict=True))
        for stage, segments, schedule in zip(self._stages, self._segments, self._s.stages, strict=True):
            numbers = self._along(stage, segments, schedule.split, place, results)
            joiner = SegmentJoiner(self._e, self._s.rows.lanes, segments.count)
            place = place.at(place.env, self._emit_scalars(stage, joiner, place, numbers, results))
        return list(results.values())

    def _along(
        self, stage: Stage, segments: Segments, split: Split, place: Place, results: dict[Value, Value]
    ) -> SegmentValues:
        """Run ``stage`` over all segments of a row; return what is reduced of each."""
        memory = segments.memory()
        stored = stage.stored

        def run(span: tuple[Index, Index] | None, inside: list[Value], numbers: SegmentValues) -> list[Value]:
            own = {**results, **dict(zip(stored, inside, strict=False))}
            there = numbers.at(inside[len(stored) :])
            segments.run(place, span, own, there)
            return [*(own[value] for value in stored), *there.values]

        def chunk(first: Index, end: Index, inside: list[Value]) -> list[Value]:
            if not stage.reduces:
                return run((first, end), inside, memory)
            numbers = segments.begin(memory.at(inside[len(stored) :]))
            found = self._e.loop(
                (first, end, 1),
                [*inside[: len(stored)], *numbers.values],
                lambda i, now: run((i, self._e.add(i, 1)), now, numbers),
            )
            return found[: len(inside)]

        carried = [*(results[value] for value in stored), *memory.values]
        carried = self._e.chunks(split, segments.whole, carried, chunk)
        if segments.count > segments.whole:
            numbers = segments.begin(memory.at(carried[len(stored) :]))
            carried = run(None, [*carried[: len(stored)], *numbers.values], numbers)[: len(carried)]
        results.update(zip(stored, carried, strict=False))
        return memory.at(carried[len(stored) :])

    def _emit_scalars(
        self,
        stage: Stage,
        joiner: SegmentJoiner,
        place: Place,
        numbers: SegmentValues,
        results: dict[Value, Value],
    ) -> Known:
        """Emit the numbers that a row has after ``stage``, and store those that are results."""
        known = place.known
        relative = {each.result: each for each in stage.relative}
        for part in stage.passes:
            scalars = dict(known.scalars)
            for view in part.reduced:
                combiners = match_combiners(view.body, view.results) or []
                for number, (result, combiner) in enumerate(zip(view.op.results, combiners, strict=True)):
                    if result in relative:
                        centre = known.scalars[relative[result].centre]
                        total = joiner.relative(relative[result], view, numbers, centre)
                    else:
                        total = joiner.total(view, number, numbers)
                    scalars[result] = combiner.combine(self._start(result, view.inits[number], place), total)
            known = self._row_scalars(part, place, Known(scalars, known.vectors), results)
        return known

    def _row_scalars(self, part: Pass, place: Place, known: Known, results: dict[Value, Value]) -> Known:
        """Compute the row scalars of ``part``, and store those numbers that are results."""
        group = Group(self._g.extents, self._g.vector, part.row_scalars)
        outer = frozenset(range(self._g.vector))
        elements = Elements(self._e, group, 1, (), dict.fromkeys(known.scalars, outer))
        computed = elements.advance(place.env, known)
        scalars = dict(known.scalars)
        for view in (*part.reduced, *part.row_scalars):
            for result in view.op.results:
                scalars[result] = elements.scalar(result, computed)
                if result in results:
                    indices = [index.emit(self._e, place.env) for index in self._outputs[result].access]
                    results[result] = self._e.insert(scalars[result], results[result], indices)
        return Known(scalars, known.vectors)

    def _start(self, result: Value, init: Value, place: Place) -> Value:
        """Return what the reduction of a row starts from."""
        if result in self._starts:
            return self._starts[result]
        view = self._g.produced[result]
        access = view.accesses[len(view.inputs) + result.result_number]
        return self._e.extract(init, [index.emit(self._e, place.env) for index in access])
