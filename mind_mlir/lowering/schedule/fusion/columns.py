"""Nests whose vector loop is parallel: elementwise ones, and reductions of loops around the vector loop.

The vector loop runs in steps of a few vectors, with reduction loops inside each step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import SHORT_COLUMN
from mind_mlir.lowering.schedule.emission.emitter import STREAMING_ATTRIBUTE
from mind_mlir.lowering.schedule.fusion.body import Range
from mind_mlir.lowering.schedule.fusion.elements import Chunk

if TYPE_CHECKING:
    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.fusion.body import Body, Place
    from mind_mlir.lowering.schedule.fusion.cascade import Accumulators


class Columns:
    """Emits the vector loop, where it is parallel, and what is inside of it."""

    def __init__(self, body: Body) -> None:
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
        count, lanes = len(self._b.streams), self._s.lanes
        results = carried[count:]

        def clear(chunk: Chunk, inside: list[Value]) -> list[Value]:
            return [
                self._b.stores.store(output, result, place.env, chunk, [self._b.neutral(number)], place.slot)
                for number, (output, result) in enumerate(zip(self._b.reducers, inside, strict=True))
            ]

        columns, extent = self._b.range_of(place, self._g.vector), self._g.extents[self._g.vector]
        results = self._e.loop(
            (columns.lower, columns.upper, lanes), results, lambda i, inside: clear(Chunk(i, 1, None), inside)
        )
        for at in range(self._b.full, extent, lanes) if columns.end else ():
            results = clear(Chunk(at, 1, self._e.mask(lanes, extent - at)), results)
        return [*carried[:count], *results]

    def _steps(self, place: Place, strip: dict[int, Range], carried: list[Value]) -> list[Value]:
        """Run the vector loop; what is left after its full steps is one shorter step with a masked end."""
        columns = self._b.range_of(place, self._g.vector)
        vectors, lanes = self._s.vectors, self._s.lanes
        carried = self._e.loop(
            (columns.lower, columns.upper, vectors * lanes),
            carried,
            lambda i, inside: self._step(place, strip, Chunk(i, vectors, None), inside),
            mark=STREAMING_ATTRIBUTE if self._s.streaming else None,
        )
        full, extent = self._b.full, self._g.extents[self._g.vector]
        if extent == full or not columns.end:
            return carried
        count = -(-(extent - full) // lanes)
        mask = self._e.mask(lanes, extent - full - (count - 1) * lanes)
        return self._step(place, strip, Chunk(full, count, mask), carried)

    def _step(self, place: Place, strip: dict[int, Range], chunk: Chunk, carried: list[Value]) -> list[Value]:
        if not self._g.reductions:
            return self._b.stream(place, chunk, carried)
        count = len(self._b.streams)
        streams, results = carried[:count], carried[count:]
        accumulators = self._b.accumulators(chunk.vectors)
        starts = accumulators.neutral
        if self._s.parts is None or self._s.strip:
            starts = [
                self._b.stores.start(output, result, place.env, chunk, v, place.slot)
                for output, result in zip(self._b.reducers, results, strict=True)
                for v in range(chunk.vectors)
            ]
        values = self._reduce(self._g.reductions, place, strip, chunk, accumulators, [*streams, *starts])
        streams, totals = values[:count], values[count:]
        for number, output in enumerate(self._b.reducers):
            own = totals[number * chunk.vectors : (number + 1) * chunk.vectors]
            results[number] = self._b.stores.store(output, results[number], place.env, chunk, own, place.slot)
        return [*streams, *results]

    def _reduce(
        self,
        dims: tuple[int, ...],
        place: Place,
        strip: dict[int, Range],
        chunk: Chunk,
        accumulators: Accumulators,
        carried: list[Value],
    ) -> list[Value]:
        if not dims:
            return self._b.accumulate(place, chunk, carried)
        dim, *inner = dims
        terms = math.prod(self._b.most(other) for other in inner)
        apart = terms > SHORT_COLUMN and accumulators.folds(terms * self._b.most(dim))
        count = len(self._b.streams)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            env = place.env | {dim: i}
            here = place.at(env, self._b.elements.advance(env, place.known))
            given = [*inside[:count], *accumulators.neutral] if apart else inside
            given = self._reduce(tuple(inner), here, strip, chunk, accumulators, given)
            if not apart:
                return given
            return [*given[:count], *accumulators.join(inside[count:], given[count:])]

        rows = strip.get(dim) or self._b.range_of(place, dim)
        most = min(self._b.most(dim), self._s.strip) if dim in strip else self._b.most(dim)
        return accumulators.loop((rows.lower, rows.upper, 1), most, 1 if apart else terms, carried, body)
