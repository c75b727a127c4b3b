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
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.folds.reductions import Accumulators
    from mind_mlir.mlir.bindings import Value

    #: Adds a step of the vector loop to what is carried.
    _Step: TypeAlias = Callable[[Chunk, list[Value]], list[Value]]


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

    def emit_beside(self, place: Place, dim: int, carried: list[Value]) -> list[Value]:
        """Emit it for several iterations of ``dim`` from ``place`` on at once; nothing is reduced."""

        def rows(_: Place, __: object, chunk: Chunk, inside: list[Value]) -> list[Value]:
            return self._b.stream_beside(place, dim, chunk, inside)

        return self._steps(place, {}, carried, rows)

    def _clear(self, place: Place, carried: list[Value]) -> list[Value]:
        """Write what changes nothing to the partial results of ``place``."""
        count, width = len(self._b.streams), self._s.width
        results = carried[count:]

        def clear(chunk: Chunk, inside: list[Value]) -> list[Value]:
            return [
                self._b.stores.store(output, result, place.env, chunk, self._b.neutral(number), place.slot)
                for number, (output, result) in enumerate(zip(self._b.reducers, inside, strict=True))
            ]

        columns, extent = self._b.range_of(place, self._g.vector), self._g.extents[self._g.vector]
        results = self._e.loop(
            (columns.lower, columns.upper, width), results, lambda i, inside: clear(Chunk(i), inside)
        )
        if columns.end and extent != self._b.full:
            results = clear(self._end(), results)
        return [*carried[:count], *results]

    def _end(self) -> Chunk:
        """Return what is left of the vector loop after its full steps."""
        full = self._b.full
        return Chunk(full, self._e.mask(self._s.width, self._g.extents[self._g.vector] - full))

    def _steps(
        self,
        place: Place,
        strip: dict[int, Range],
        carried: list[Value],
        step: Callable[[Place, dict[int, Range], Chunk, list[Value]], list[Value]] | None = None,
    ) -> list[Value]:
        """Run the vector loop; what is left after its full steps is one masked step."""
        step = step or self._step
        columns = self._b.range_of(place, self._g.vector)
        carried = self._e.loop(
            (columns.lower, columns.upper, self._s.width),
            carried,
            lambda i, inside: step(place, strip, Chunk(i), inside),
            streaming=self._s.lanes if self._s.streaming else 0,
        )
        extent = self._g.extents[self._g.vector]
        if extent == self._b.full:
            return carried
        if columns.last is not None:
            return self._e.loop(
                (self._b.full, self._e.minimum(columns.last, extent), self._s.width),
                carried,
                lambda _, inside: self._step(place, strip, self._end(), inside),
            )
        if not columns.end:
            return carried
        return step(place, strip, self._end(), carried)

    def _step(self, place: Place, strip: dict[int, Range], chunk: Chunk, carried: list[Value]) -> list[Value]:
        if not self._g.reductions:
            return self._b.stream(place, chunk, carried)
        count = len(self._b.streams)
        streams, results = carried[:count], carried[count:]
        accumulators = self._b.accumulators()
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
        streams, totals = values[:count], values[count:]
        for number, (output, total) in enumerate(zip(self._b.reducers, totals, strict=True)):
            results[number] = self._b.stores.store(
                output, results[number], place.env, chunk, total, place.slot
            )
        return [*streams, *results]


class Rows:
    """Emits the loops that are reduced, the vector loop among them."""

    def __init__(self, body: NestBody) -> None:
        self._b = body
        self._e = body.e
        self._g = body.group
        self._s = body.schedule

    def emit(self, place: Place, carried: list[Value]) -> list[Value]:
        """Emit them at ``place``; ``carried`` are the tensors of the streams, then those of the reducers."""
        count = len(self._b.streams)
        results = carried[count:]
        streams, totals = self.totals(place, carried[:count])
        for number, (output, combiner) in enumerate(zip(self._b.reducers, self._b.combiners, strict=True)):
            results[number] = self._b.stores.store_total(
                output, results[number], place.env, combiner.combine, totals[number], place.slot
            )
        return [*streams, *results]

    def emit_beside(self, place: Place, dim: int, carried: list[Value]) -> list[Value]:
        """Emit them for several iterations of ``dim`` from ``place`` on; the vector loop alone is reduced."""
        rows = self._s.beside
        accumulators = self._b.accumulators(rows)

        def step(chunk: Chunk, inside: list[Value]) -> list[Value]:
            return self._b.accumulate_beside(place, dim, chunk, inside)

        totals = iter(self._row(place, accumulators, accumulators.neutral, step))
        results = list(carried)
        for row in range(rows):
            env = place.env | {dim: self._e.add(place.env[dim], row)}
            for number, (output, combiner) in enumerate(
                zip(self._b.reducers, self._b.combiners, strict=True)
            ):
                total = combiner.horizontal(next(totals))
                results[number] = self._b.stores.store_total(
                    output, results[number], env, combiner.combine, total, place.slot
                )
        return results

    def totals(self, place: Place, streams: list[Value]) -> tuple[list[Value], list[Value]]:
        """Emit them at ``place``; return the tensors of the ``streams``, and what each reducer adds up to."""
        count = len(streams)
        accumulators = self._b.accumulators()
        others = tuple(dim for dim in self._g.reductions if dim != self._g.vector)
        values = self._loops(others, place, accumulators, [*streams, *accumulators.neutral])
        totals = zip(self._b.combiners, values[count:], strict=True)
        return values[:count], [combiner.horizontal(total) for combiner, total in totals]

    def _loops(
        self, others: tuple[int, ...], place: Place, accumulators: Accumulators, carried: list[Value]
    ) -> list[Value]:
        def row(here: Place, inside: list[Value]) -> list[Value]:
            return self._row(
                here, accumulators, inside, lambda chunk, now: self._b.accumulate(here, chunk, now)
            )

        along = -(-self._b.most(self._g.vector) // self._s.width)
        return reduced(self._b, others, place, {}, accumulators, carried, row, SHORT_ROW, along)

    def _row(
        self, place: Place, accumulators: Accumulators, carried: list[Value], accumulate: _Step
    ) -> list[Value]:
        columns = self._b.range_of(place, self._g.vector)
        step = self._s.width
        carried = accumulators.loop(
            (columns.lower, columns.upper, step),
            -(-self._b.most(self._g.vector) // step),
            1,
            carried,
            lambda i, inside: accumulate(Chunk(i), inside),
        )
        return self._end(carried, accumulate) if columns.end else carried

    def _end(self, carried: list[Value], accumulate: _Step) -> list[Value]:
        """Accumulate what is left of a row after its full steps: one step whose end is masked."""
        full, extent = self._b.full, self._g.extents[self._g.vector]
        if full == extent:
            return carried
        mask = self._e.mask(self._s.width, extent - full)
        following = accumulate(Chunk(full, mask), carried)
        count = len(self._b.streams)
        kept = [
            self._e.select(mask, new, old)
            for new, old in zip(following[count:], carried[count:], strict=True)
        ]
        return [*following[:count], *kept]


def reduced(
    body: NestBody,
    dims: tuple[int, ...],
    place: Place,
    ranges: Mapping[int, Range],
    accumulators: Accumulators,
    carried: list[Value],
    inner: Callable[[Place, list[Value]], list[Value]],
    short: int,
    along: int = 1,
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
        along: Terms that ``inner`` adds to an accumulator, at most.
    """
    if not dims:
        return inner(place, carried)
    dim, *others = dims
    terms = along * math.prod(body.most(other) for other in others)
    apart = terms > short and accumulators.folds(terms * body.most(dim))
    count = len(body.streams)

    def iteration(i: Index, inside: list[Value]) -> list[Value]:
        env = place.env | {dim: i}
        here = place.at(env, body.elements.advance(env, place.known))
        values = [*inside[:count], *accumulators.neutral] if apart else inside
        values = reduced(body, tuple(others), here, ranges, accumulators, values, inner, short, along)
        if not apart:
            return values
        return [*values[:count], *accumulators.join(inside[count:], values[count:])]

    rows = ranges.get(dim) or body.range_of(place, dim)
    most = min(body.most(dim), body.schedule.strip) if dim in ranges else body.most(dim)
    return accumulators.loop((rows.lower, rows.upper, 1), most, 1 if apart else terms, carried, iteration)
