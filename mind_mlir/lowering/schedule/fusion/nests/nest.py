"""Emits a nest as its schedule says: the loops over chunks, and those of a group within one.

The loops over chunks are outermost, those over parallel dimensions inside of them; `vector_loops` has what is
innermost. What does not depend on a loop is read before it. Where a reduced loop was cut in parts, a second,
short nest joins their results (see `partial_results`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.split import Split
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody
from mind_mlir.lowering.schedule.fusion.nests.partial_results import PartialResults
from mind_mlir.lowering.schedule.fusion.nests.program import NestProgram, Place, Range
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import columns, rows
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.program import Folded, Output
    from mind_mlir.lowering.schedule.fusion.nests.schedule import Cut
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.mlir.bindings import Value

    #: Emits what is computed at a place, given tensors; returns what becomes of these.
    PlaceBody: TypeAlias = Callable[[Place, list[Value]], list[Value]]


@dataclass(frozen=True)
class Chunks:
    """Emits chunks of a nest, and the loops within one.

    Attributes:
        e: The emitter.
        nest: The nest, whose loops are cut, the vector loop but for what is left after its full steps.
    """

    e: Emitter
    nest: NestProgram

    def emit(
        self,
        body: PlaceBody,
        known: Known,
        outputs: Sequence[Output],
        partial: PartialResults,
        joined: Sequence[Folded],
    ) -> list[Value]:
        """Emit all chunks; return the tensors of the nest's outputs, in their order.

        Args:
            body: Emits what is within a chunk.
            known: Numbers from outside that are known as others.
            outputs: The outputs in the order in which chunks carry their tensors.
            partial: Emits what is done with partial results.
            joined: Those that have such.
        """
        tensors = {output.result: output.destination for output in outputs}
        tensors.update([(each.result, partial.memory(each)) for fold in joined for each in fold.outputs])
        carried = self._all(body, known, list(tensors.values()))
        tensors = dict(zip(tensors, carried, strict=True))
        for each in joined:
            found = partial.join(each, [tensors[result] for result in each.results])
            tensors.update(zip(each.results, found, strict=True))
        return [tensors[output.result] for output in self.nest.outputs]

    def _all(self, body: PlaceBody, known: Known, carried: list[Value]) -> list[Value]:
        """Emit all chunks, and what is left of the vector loop behind those that cut it."""
        schedule, vector = self.nest.schedule, self.nest.group.vector
        carried = self._some(body, schedule.cuts, Place({}, known), carried, parallel=schedule.parallel)
        along = schedule.cut(vector)
        if along is None or not self.nest.has_end or schedule.epilogue is not None:
            return carried
        slot = along.count if along is schedule.parts else None
        place = Place({}, known, {vector: Range(self.nest.full, self.nest.full)}, slot)
        others = [cut for cut in schedule.cuts if cut is not along]
        return self._some(body, others, place, carried, parallel=False)

    def _some(
        self, body: PlaceBody, cuts: Sequence[Cut], place: Place, carried: list[Value], *, parallel: bool
    ) -> list[Value]:
        """Emit the chunks that ``cuts`` make of what is to be computed at ``place``."""
        if not cuts:
            return body(place, carried)
        count, schedule = math.prod(cut.count for cut in cuts), self.nest.schedule

        def chunk(number: Index, inside: list[Value]) -> list[Value]:
            return body(self._chunk_place(cuts, number, place), inside)

        if not parallel:
            return self.e.loop((0, count, 1), carried, chunk)
        split = Split(1, count, schedule.reason, schedule.brief, schedule.epilogue)
        return self.e.chunks(split, count, carried, lambda first, _, inside: chunk(first, inside))

    def loops(
        self,
        dims: Sequence[int],
        place: Place,
        carried: list[Value],
        inner: PlaceBody,
        at: Callable[[Place, Env], Place] = Place.at,
    ) -> list[Value]:
        """Run ``inner`` in the loops ``dims``, outermost first, ``at`` places within the chunk ``place``."""
        if not dims:
            return inner(place, carried)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            return self.loops(dims[1:], at(place, place.env | {dims[0]: i}), inside, inner, at)

        range_ = self.nest.range_of(place, dims[0])
        unrolled = dims[0] in self.nest.schedule.unrolled
        return self.e.loop((range_.lower, range_.upper, 1), carried, body, unrolled=unrolled)

    def _chunk_place(self, cuts: Sequence[Cut], number: Index, place: Place) -> Place:
        """Return the place of chunk ``number``."""
        for position, cut in reversed(list(enumerate(cuts))):
            own = self.e.modulo(number, cut.count) if position else number
            number = self.e.floordiv(number, cut.count) if position else number
            if cut is self.nest.schedule.parts:
                place = dataclasses.replace(place, slot=own)
            if cut.step == 1 and cut.dim not in self.nest.group.reductions:
                place = place.at(place.env | {cut.dim: own})
            else:
                place = place.within(cut.dim, self._range(cut, own))
        return place

    def _range(self, cut: Cut, number: Index) -> Range:
        is_vector = cut.dim == self.nest.group.vector
        extent = self.nest.full if is_vector else self.nest.group.extents[cut.dim]
        lower = self.e.mul(number, cut.step)
        upper = self.e.add(lower, cut.step)
        last = upper if is_vector and self.nest.schedule.epilogue is not None else None
        upper = self.e.minimum(upper, extent) if extent != cut.count * cut.step else upper
        return Range(lower, upper, end=not is_vector, last=last)


class GroupEmitter:
    """Emits one group."""

    def __init__(self, emitter: Emitter, nest: NestProgram) -> None:
        self._e = emitter
        self._nest = nest
        self._g = nest.group
        self._b = NestBody(emitter, nest)
        innermost = rows if self._g.vector in self._g.reductions else columns
        self._inside = functools.partial(innermost, self._b)
        self._chunks = Chunks(emitter, nest)

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order."""
        parts, reducers = self._nest.schedule.parts, self._b.reducers
        slots = 0 if parts is None else parts.count + (parts.dim == self._g.vector and self._nest.has_end)
        last = self._g.vector in self._g.reductions
        partial = PartialResults(self._e, self._nest.schedule.lanes, slots, last=last)
        return self._chunks.emit(
            self._chunk, known, [*self._b.streams, *reducers], partial, self._b.folded if slots else ()
        )

    def _chunk(self, place: Place, carried: list[Value]) -> list[Value]:
        here, inner, elements = self._b.inside(place, place.env), self._inside, self._b.elements
        if self._g.vector < 0:
            pairs = zip(self._b.streams, carried, strict=True)
            return [self._e.insert(elements.scalar(o.result, here.known), tensor, []) for o, tensor in pairs]
        inside = {self._g.vector, *self._g.reductions, *place.env}
        outer = [dim for dim in range(len(self._g.extents)) if dim not in inside]
        if outer and self._nest.schedule.beside > 1:
            inner = functools.partial(self._beside, outer.pop())
        return self._chunks.loops(outer, here, carried, inner, self._b.inside)

    def _beside(self, dim: int, place: Place, carried: list[Value]) -> list[Value]:
        """Emit the loop ``dim`` for some rows at once, and one by one where these are not all there."""
        inner, side = self._inside, self._nest.schedule.beside
        bounds, whole = self._nest.range_of(place, dim), self._nest.divides(dim, side)

        def one(i: Index, inside: list[Value]) -> list[Value]:
            return inner(self._b.inside(place, place.env | {dim: i}), inside)

        def some(i: Index, inside: list[Value]) -> list[Value]:
            env = place.env | {dim: i}
            end = self._e.add(i, side)
            fits = self._b.elements.fits(env, dim, side)
            conditions = [] if whole else [self._e.compare("ule", end, bounds.upper)]
            conditions += [] if fits is None else [fits]
            here = dataclasses.replace(place, env=env, side=dim)
            if not conditions:
                return inner(here, inside)
            last = end if whole else self._e.minimum(end, bounds.upper)
            return self._e.either(
                self._e.all(conditions),
                inside,
                lambda now: inner(here, now),
                lambda now: self._e.loop((i, last, 1), now, one),
            )

        return self._e.loop((bounds.lower, bounds.upper, side), carried, some)
