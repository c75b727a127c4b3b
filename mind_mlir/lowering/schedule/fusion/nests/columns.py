"""Nests whose vector loop is parallel: elementwise ones, and reductions of loops around the vector loop.

The vector loop runs in steps of a few registers, with reduction loops inside each step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import SHORT_COLUMN
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Place, Range
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.fusion.groups.reductions import Accumulators
    from mind_mlir.mlir.bindings import Value


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
        values = self._reduce(self._g.reductions, place, strip, chunk, accumulators, [*streams, *starts])
        streams, totals = values[:count], values[count:]
        for number, (output, total) in enumerate(zip(self._b.reducers, totals, strict=True)):
            results[number] = self._b.stores.store(
                output, results[number], place.env, chunk, total, place.slot
            )
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
            values = [*inside[:count], *accumulators.neutral] if apart else inside
            values = self._reduce(tuple(inner), here, strip, chunk, accumulators, values)
            if not apart:
                return values
            return [*values[:count], *accumulators.join(inside[count:], values[count:])]

        rows = strip.get(dim) or self._b.range_of(place, dim)
        most = min(self._b.most(dim), self._s.strip) if dim in strip else self._b.most(dim)
        return accumulators.loop((rows.lower, rows.upper, 1), most, 1 if apart else terms, carried, body)
