"""The innermost loops of nests: the vector loop, and the reductions inside or around it.

Where the vector loop is parallel, it runs in steps of a few registers, with reduction loops inside each step.
Where it is reduced, it is innermost, and its accumulators are joined at its end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import SHORT_COLUMN, SHORT_ROW
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Place, Range
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.fusion.groups.reductions import Accumulators
    from mind_mlir.mlir.bindings import Value

    #: Emits a step of the vector loop, given what is carried; returns what is carried on.
    Step: TypeAlias = Callable[[Chunk, list[Value]], list[Value]]


def along(
    body: NestBody, place: Place, carried: list[Value], step: Step, accumulators: Accumulators | None = None
) -> list[Value]:
    """Emit the vector loop at ``place``; what is left after its full steps is one step whose end is masked.

    Args:
        body: What is computed.
        place: Where it is.
        carried: What goes from step to step.
        step: Emits a step.
        accumulators: What steps add to: the last things that are carried, in as many levels as it takes.
    """
    e, columns, width = body.e, body.range_of(place, body.group.vector), body.schedule.width
    extent = body.group.extents[body.group.vector]
    bounds = (columns.lower, columns.upper, width)

    def full(i: Index, inside: list[Value]) -> list[Value]:
        return step(Chunk(i), inside)

    def end(inside: list[Value]) -> list[Value]:
        return step(Chunk(body.full, e.mask(width, extent - body.full)), inside)

    if accumulators is None:
        streaming = body.schedule.lanes if body.schedule.streaming else 0
        carried = e.loop(bounds, carried, full, streaming=streaming)
    else:
        carried = accumulators.loop(bounds, -(-body.most(body.group.vector) // width), 1, carried, full)
    if extent == body.full:
        return carried
    if columns.last is not None:
        last = (body.full, e.minimum(columns.last, extent), width)
        return e.loop(last, carried, lambda _, inside: end(inside))
    return end(carried) if columns.end else carried


class Columns:
    """Emits the vector loop, where it is parallel, and what is inside of it."""

    def __init__(self, body: NestBody) -> None:
        self._b = body
        self._e = body.e
        self._g = body.group
        self._s = body.schedule

    def emit(self, place: Place, carried: list[Value]) -> list[Value]:
        """Emit it at ``place``; ``carried`` are the tensors of the streams, then those of the reducers."""
        if not self._g.reductions or not self._s.strip:
            return self._steps(place, {}, carried)
        dim, strip = self._g.reductions[0], self._s.strip
        if self._s.parts is not None:
            carried = self._clear(place, carried)
        rows = self._b.range_of(place, dim)
        whole = self._b.most(dim) % strip == 0 and self._g.extents[dim] % strip == 0

        def rows_from(i: Index, inside: list[Value]) -> list[Value]:
            end = self._e.add(i, strip)
            end = end if whole else self._e.minimum(end, rows.upper)
            return self._steps(place, {dim: Range(i, end)}, inside)

        return self._e.loop((rows.lower, rows.upper, strip), carried, rows_from)

    def _clear(self, place: Place, carried: list[Value]) -> list[Value]:
        """Write what changes nothing to the partial results of ``place``."""
        count = len(self._b.streams)

        def clear(chunk: Chunk, inside: list[Value]) -> list[Value]:
            return self._stored(
                place, chunk, inside, [self._b.neutral(number) for number in range(len(inside))]
            )

        return [*carried[:count], *along(self._b, place, carried[count:], clear)]

    def _steps(self, place: Place, strip: dict[int, Range], carried: list[Value]) -> list[Value]:
        return along(self._b, place, carried, lambda chunk, inside: self._step(place, strip, chunk, inside))

    def _step(self, place: Place, strip: dict[int, Range], chunk: Chunk, carried: list[Value]) -> list[Value]:
        if not self._g.reductions:
            return self._b.stream(place, chunk, carried)
        count = len(self._b.streams)
        streams, results = carried[:count], carried[count:]
        accumulators = self._b.accumulators(place)
        starts = accumulators.neutral
        if self._s.parts is None or self._s.strip:
            starts = [
                self._b.stores.start(output, result, place.env, chunk, place.slot)
                for output, result in zip(self._b.reducers, results, strict=True)
            ]

        def body(here: Place, inside: list[Value]) -> list[Value]:
            return self._b.accumulate(here, chunk, inside)

        dims, starts = self._g.reductions, [*streams, *starts]
        values = reduced(self._b, dims, place, strip, accumulators, starts, body, SHORT_COLUMN)
        return [*values[:count], *self._stored(place, chunk, results, values[count:])]

    def _stored(
        self, place: Place, chunk: Chunk, results: list[Value], totals: Sequence[Value]
    ) -> list[Value]:
        """Store what each reducer adds up to; return the tensors of the reducers."""
        rows = zip(self._b.reducers, results, totals, strict=True)
        return [
            self._b.stores.store(output, result, place.env, chunk, total, place.slot)
            for output, result, total in rows
        ]


class Rows:
    """Emits the loops that are reduced, the vector loop among them."""

    def __init__(self, body: NestBody) -> None:
        self._b = body
        self._g = body.group

    def emit(self, place: Place, carried: list[Value]) -> list[Value]:
        """Emit them at ``place``; ``carried`` are the tensors of the streams, then those of the reducers."""
        count = len(self._b.streams)
        values = self._accumulated(place, carried[:count])
        results, left = carried[count:], iter(values[count:])
        for row in range(self._b.rows_at(place)):
            env = self._b.env_of(place, row)
            totals = [combiner.horizontal(next(left)) for combiner in self._b.combiners]
            rows = zip(self._b.reducers, self._b.combiners, results, totals, strict=True)
            results = [
                self._b.stores.store_total(output, result, env, combiner.combine, total, place.slot)
                for output, combiner, result, total in rows
            ]
        return [*values[:count], *results]

    def totals(self, place: Place, streams: list[Value]) -> tuple[list[Value], list[Value]]:
        """Emit them at ``place``; return the tensors of the ``streams``, and what each reducer adds up to."""
        values = self._accumulated(place, streams)
        totals = zip(self._b.combiners, values[len(streams) :], strict=True)
        return values[: len(streams)], [combiner.horizontal(total) for combiner, total in totals]

    def _accumulated(self, place: Place, streams: list[Value]) -> list[Value]:
        """Emit them; return the tensors of the ``streams``, and the accumulators."""
        accumulators = self._b.accumulators(place)
        others = tuple(dim for dim in self._g.reductions if dim != self._g.vector)

        def row(here: Place, inside: list[Value]) -> list[Value]:
            return along(
                self._b,
                here,
                inside,
                lambda chunk, now: self._b.accumulate_alone(here, chunk, now),
                accumulators,
            )

        steps = -(-self._b.most(self._g.vector) // self._b.schedule.width)
        carried = [*streams, *accumulators.neutral]
        return reduced(self._b, others, place, {}, accumulators, carried, row, SHORT_ROW, steps)


def reduced(
    body: NestBody,
    dims: tuple[int, ...],
    place: Place,
    ranges: Mapping[int, Range],
    accumulators: Accumulators,
    carried: list[Value],
    inner: Callable[[Place, list[Value]], list[Value]],
    short: int,
    each: int = 1,
) -> list[Value]:
    """Emit the reduced loops ``dims`` around ``inner``, in as many levels of accumulators as it takes.

    Args:
        body: What is computed.
        dims: The loops, outermost first.
        place: Where they are.
        ranges: Iterations of some of them, where these are not those of the place.
        accumulators: What is added to.
        carried: The tensors of the streams, and then the accumulators.
        inner: Emits what is within all of them.
        short: So many terms within a loop, or fewer, go on with its accumulators.
        each: Terms that ``inner`` adds to an accumulator, at most.
    """
    if not dims:
        return inner(place, carried)
    dim, *others = dims
    terms = each * math.prod(body.most(other) for other in others)
    apart = terms > short and accumulators.folds(terms * body.most(dim))
    count = len(body.streams)

    def iteration(i: Index, inside: list[Value]) -> list[Value]:
        env = place.env | {dim: i}
        here = place.at(env, body.elements.advance(env, place.known))
        values = [*inside[:count], *accumulators.neutral] if apart else inside
        values = reduced(body, tuple(others), here, ranges, accumulators, values, inner, short, each)
        if not apart:
            return values
        return [*values[:count], *accumulators.join(inside[count:], values[count:])]

    rows = ranges.get(dim) or body.range_of(place, dim)
    most = min(body.most(dim), body.schedule.strip) if dim in ranges else body.most(dim)
    return accumulators.loop((rows.lower, rows.upper, 1), most, 1 if apart else terms, carried, iteration)
