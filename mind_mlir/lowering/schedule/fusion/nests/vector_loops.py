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
    from mind_mlir.lowering.schedule.folds.reductions import Accumulators
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


def columns(body: NestBody, place: Place, carried: list[Value]) -> list[Value]:
    """Emit the vector loop at ``place``, where it is parallel, and what is inside of it.

    Args:
        body: What is computed.
        place: Where it is.
        carried: The tensors of the streams, then those of the reducers.
    """
    e, extents, schedule = body.e, body.group.extents, body.schedule

    def steps(ranges: dict[int, Range], now: list[Value]) -> list[Value]:
        return along(body, place, now, lambda chunk, inside: _column(body, place, ranges, chunk, inside))

    if not body.group.reductions or not schedule.strip:
        return steps({}, carried)
    dim, strip = body.group.reductions[0], schedule.strip
    if schedule.parts is not None:
        count = len(body.streams)

        def clear(chunk: Chunk, now: list[Value]) -> list[Value]:
            neutral = [body.neutral(number) for number in range(len(body.reducers))]
            return _stored(body, place, chunk, now, neutral)

        cleared = along(body, place, carried[count:], clear)
        carried = [*carried[:count], *cleared]
    rows = body.range_of(place, dim)
    whole = body.most(dim) % strip == 0 and extents[dim] % strip == 0

    def rows_from(i: Index, inside: list[Value]) -> list[Value]:
        end = e.add(i, strip)
        return steps({dim: Range(i, end if whole else e.minimum(end, rows.upper))}, inside)

    return e.loop((rows.lower, rows.upper, strip), carried, rows_from)


def _column(
    body: NestBody, place: Place, strip: dict[int, Range], chunk: Chunk, carried: list[Value]
) -> list[Value]:
    """Emit a step of a parallel vector loop, and what is reduced inside of it."""
    if not body.group.reductions:
        return body.stream(place, chunk, carried)
    count = len(body.streams)
    streams, results = carried[:count], carried[count:]
    accumulators = body.accumulators(place)
    starts = accumulators.neutral
    if body.schedule.parts is None or body.schedule.strip:
        starts = [
            body.stores.start(output, result, place.env, chunk, place.slot)
            for output, result in zip(body.reducers, results, strict=True)
        ]

    def inner(here: Place, inside: list[Value]) -> list[Value]:
        return body.accumulate(here, chunk, inside)

    dims, starts = body.group.reductions, [*streams, *starts]
    values = reduced(body, dims, place, strip, accumulators, starts, inner, SHORT_COLUMN)
    return [*values[:count], *_stored(body, place, chunk, results, values[count:])]


def _stored(
    body: NestBody, place: Place, chunk: Chunk, results: list[Value], totals: Sequence[Value]
) -> list[Value]:
    """Store what each reducer adds up to; return the tensors of the reducers."""
    return [
        body.stores.store(output, result, place.env, chunk, total, place.slot)
        for output, result, total in zip(body.reducers, results, totals, strict=True)
    ]


def rows(body: NestBody, place: Place, carried: list[Value]) -> list[Value]:
    """Emit the loops at ``place`` that are reduced, the vector loop among them; else it is as `columns`."""
    count = len(body.streams)
    values = _accumulated(body, place, carried[:count])
    results, left = carried[count:], iter(values[count:])
    for row in range(body.rows_at(place)):
        env = body.env_of(place, row)
        totals = [combiner.horizontal(next(left)) for combiner in body.combiners]
        results = [
            body.stores.store_total(output, result, env, combiner.combine, total, place.slot)
            for output, combiner, result, total in zip(
                body.reducers, body.combiners, results, totals, strict=True
            )
        ]
    return [*values[:count], *results]


def row_totals(body: NestBody, place: Place, streams: list[Value]) -> tuple[list[Value], list[Value]]:
    """Emit the same; return the tensors of the ``streams``, and what each reducer adds up to."""
    values = _accumulated(body, place, streams)
    totals = zip(body.combiners, values[len(streams) :], strict=True)
    return values[: len(streams)], [combiner.horizontal(total) for combiner, total in totals]


def _accumulated(body: NestBody, place: Place, streams: list[Value]) -> list[Value]:
    """Emit the same; return the tensors of the ``streams``, and the accumulators."""
    accumulators, vector = body.accumulators(place), body.group.vector

    def row(here: Place, inside: list[Value]) -> list[Value]:
        def step(chunk: Chunk, now: list[Value]) -> list[Value]:
            return body.accumulate_alone(here, chunk, now)

        return along(body, here, inside, step, accumulators)

    others = tuple(dim for dim in body.group.reductions if dim != vector)
    steps = -(-body.most(vector) // body.schedule.width)
    carried = [*streams, *accumulators.neutral]
    return reduced(body, others, place, {}, accumulators, carried, row, SHORT_ROW, steps)


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
