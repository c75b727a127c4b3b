"""Nests whose vector loop is reduced: it is innermost, its accumulators are joined at its end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import SHORT_ROW
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.fusion.groups.reductions import Accumulators
    from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Place
    from mind_mlir.mlir.bindings import Value

    #: Adds a step of the vector loop to what is carried.
    _Step: TypeAlias = Callable[[Chunk, list[Value]], list[Value]]


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

    def _terms(self, others: tuple[int, ...]) -> int:
        """Return how many terms an accumulator takes in the loops ``others`` and the vector loop, at most."""
        along = -(-self._b.most(self._g.vector) // self._s.width)
        return along * math.prod(self._b.most(dim) for dim in others)

    def _loops(
        self, others: tuple[int, ...], place: Place, accumulators: Accumulators, carried: list[Value]
    ) -> list[Value]:
        if not others:
            return self._row(
                place, accumulators, carried, lambda chunk, inside: self._b.accumulate(place, chunk, inside)
            )
        dim, *inner = others
        terms = self._terms(tuple(inner))
        apart = terms > SHORT_ROW and accumulators.folds(terms * self._b.most(dim))
        count = len(self._b.streams)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            env = place.env | {dim: i}
            here = place.at(env, self._b.elements.advance(env, place.known))
            values = [*inside[:count], *accumulators.neutral] if apart else inside
            values = self._loops(tuple(inner), here, accumulators, values)
            if not apart:
                return values
            return [*values[:count], *accumulators.join(inside[count:], values[count:])]

        rows = self._b.range_of(place, dim)
        bounds = rows.lower, rows.upper, 1
        return accumulators.loop(bounds, self._b.most(dim), 1 if apart else terms, carried, body)

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
