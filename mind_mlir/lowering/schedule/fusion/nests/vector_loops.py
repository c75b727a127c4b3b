"""The innermost loops of nests: the vector loop, and the reductions inside or around it.

Where the vector loop is parallel, it runs in steps of a few registers, with reduction loops inside each step.
Where it is reduced, it is innermost, and its accumulators are joined at its end.
"""

from __future__ import annotations

import itertools
import math
from itertools import islice
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import SHORT_COLUMN, SHORT_ROW, WINDOW_TERMS
from mind_mlir.lowering.schedule.folds.fold import by_parts
from mind_mlir.lowering.schedule.fusion.nests.elements import Chunk
from mind_mlir.lowering.schedule.fusion.nests.program import Place, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.folds.reductions import Accumulators
    from mind_mlir.lowering.schedule.fusion.nests.body import NestBody
    from mind_mlir.mlir.bindings import Value

    #: Emits a step of the vector loop, given what is carried; returns what is carried on.
    Step: TypeAlias = Callable[[Chunk, list[Value]], list[Value]]


def along(
    body: NestBody, place: Place, carried: list[Value], step: Step, accumulators: Accumulators | None = None
) -> list[Value]:
    """Emit the vector loop at ``place``; what is left after its full steps is one step whose end is masked.

    Where steps add to ``accumulators``, the last things carried, these have as many levels as it takes.
    """
    e, columns, width = body.e, body.nest.range_of(place, body.group.vector), body.schedule.width
    extent = body.group.extents[body.group.vector]
    bounds = (columns.lower, columns.upper, width)

    def full(i: Index, inside: list[Value]) -> list[Value]:
        return step(Chunk(i), inside)

    def end(inside: list[Value]) -> list[Value]:
        return step(Chunk(body.nest.full, e.mask(width, extent - body.nest.full)), inside)

    if accumulators is None:
        streaming = body.schedule.lanes if body.schedule.streaming else 0
        carried = e.loop(bounds, carried, full, streaming=streaming)
    else:
        carried = accumulators.loop(bounds, -(-body.nest.most(body.group.vector) // width), 1, carried, full)
    if extent == body.nest.full:
        return carried
    if columns.last is not None:
        last = (body.nest.full, e.minimum(columns.last, extent), width)
        return e.loop(last, carried, lambda _, inside: end(inside))
    return end(carried) if columns.end else carried


def columns(body: NestBody, place: Place, carried: list[Value]) -> list[Value]:
    """Emit the vector loop at ``place``, where it is parallel, and what is inside of it.

    Carried are the tensors of the streams, and then those of the reducers.
    """
    e, strip, count = body.e, body.schedule.strip, len(body.streams)

    def steps(here: Place, now: list[Value]) -> list[Value]:
        return along(body, here, now, lambda chunk, inside: _column(body, here, chunk, inside))

    if not strip:
        return steps(place, carried)
    dim = body.group.reductions[0]
    if body.schedule.parts is not None:
        cleared = along(
            body,
            place,
            carried[count:],
            lambda chunk, now: body.store_totals(place, chunk, now, body.neutral),
        )
        carried = [*carried[:count], *cleared]
    rows = body.nest.range_of(place, dim)
    whole = body.nest.divides(dim, strip)

    def rows_from(i: Index, inside: list[Value]) -> list[Value]:
        end = e.add(i, strip)
        return steps(place.within(dim, Range(i, end if whole else e.minimum(end, rows.upper))), inside)

    return e.loop((rows.lower, rows.upper, strip), carried, rows_from)


def _column(body: NestBody, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
    """Emit a step of a parallel vector loop, and what is reduced inside of it."""
    if not body.group.reductions:
        return body.stream(place, chunk, carried)
    count = len(body.streams)
    results, accumulators = carried[count:], body.accumulators(place)
    starts = accumulators.neutral
    if body.schedule.parts is None or body.schedule.strip:
        pairs = zip(body.reducers, results, strict=True)
        starts = [body.start(output, result, place, chunk) for output, result in pairs]

    def inner(here: Place, inside: list[Value]) -> list[Value]:
        return body.accumulate(here, chunk, inside)

    dims, carried = body.group.reductions, [*carried[:count], *starts]
    terms = _few_terms(body, place)
    if terms is None:
        values = reduced(body, dims, place, accumulators, carried, inner, SHORT_COLUMN)
    else:
        values = carried
        for term in terms:
            values = inner(body.inside(place, place.env | dict(zip(dims, term, strict=True))), values)
    return [*values[:count], *body.store_totals(place, chunk, results, values[count:])]


def _few_terms(body: NestBody, place: Place) -> Iterable[tuple[int, ...]] | None:
    """Return the iterations of several loops that are reduced, if they are so few that none is needed."""
    ranges = [body.nest.range_of(place, dim) for dim in body.group.reductions]
    bounds = [(each.lower, each.upper) for each in ranges]
    known = [range(*pair) for pair in bounds if isinstance(pair[0], int) and isinstance(pair[1], int)]
    few = 1 < len(known) == len(bounds) and math.prod(map(len, known)) <= WINDOW_TERMS
    return itertools.product(*known) if few else None


def rows(body: NestBody, place: Place, carried: list[Value]) -> list[Value]:
    """Emit the loops at ``place`` that are reduced, the vector loop among them; else it is as `columns`."""
    count = len(body.streams)
    streams, totals = row_totals(body, place, carried[:count])
    results = carried[count:]
    for row in range(body.rows_at(place)):
        here = body.at_row(place, row)
        results = body.store_row(here, results, list(islice(totals, len(results))))
    return [*streams, *results]


def row_totals(body: NestBody, place: Place, streams: list[Value]) -> tuple[list[Value], Iterator[Value]]:
    """Emit the same; return the tensors of the ``streams``, and what each reducer of each row adds up to."""
    accumulators, vector = body.accumulators(place), body.group.vector

    def row(here: Place, inside: list[Value]) -> list[Value]:
        def step(chunk: Chunk, now: list[Value]) -> list[Value]:
            return body.accumulate(here, chunk, now)

        return along(body, here, inside, step, accumulators)

    others = tuple(dim for dim in body.group.reductions if dim != vector)
    steps = -(-body.nest.most(vector) // body.schedule.width)
    carried = [*streams, *accumulators.neutral]
    values = reduced(body, others, place, accumulators, carried, row, SHORT_ROW, steps)
    folds = [each.fold for each in body.folded] * body.rows_at(place)
    one_step = not others and body.group.extents[vector] <= body.schedule.width

    def totals() -> Iterator[Value]:
        for fold, (lanes,) in by_parts(folds, values[len(streams) :]):
            yield from fold.totals(body.e, lanes, one_step=one_step)

    return values[: len(streams)], totals()


def reduced(
    body: NestBody,
    dims: tuple[int, ...],
    place: Place,
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
        accumulators: The accumulators.
        carried: The tensors of the streams, and then the accumulators.
        inner: Emits what is within all of them.
        short: So many terms within a loop, or fewer, go on with its accumulators.
        each: Terms that ``inner`` adds to an accumulator, at most.
    """
    if not dims:
        return inner(place, carried)
    dim, *others = dims
    terms = each * math.prod(body.nest.most(other) for other in others)
    apart = terms > short and accumulators.folds(terms * body.nest.most(dim))
    count = len(body.streams)

    def iteration(i: Index, inside: list[Value]) -> list[Value]:
        here = body.inside(place, place.env | {dim: i})
        values = [*inside[:count], *accumulators.neutral] if apart else inside
        values = reduced(body, tuple(others), here, accumulators, values, inner, short, each)
        if not apart:
            return values
        return [*values[:count], *accumulators.join(inside[count:], values[count:])]

    rows, most, strip = body.nest.range_of(place, dim), body.nest.most(dim), body.schedule.strip
    most = min(most, strip) if strip and dim == body.group.reductions[0] else most
    bounds, terms = (rows.lower, rows.upper, 1), 1 if apart else terms
    unrolled = dim in body.schedule.unrolled
    return accumulators.loop(bounds, most, terms, carried, iteration, unrolled=unrolled)
