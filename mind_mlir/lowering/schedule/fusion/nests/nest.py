"""Emits a group as one loop nest over vectors, as its schedule says.

The loops over chunks are outermost, those over parallel dimensions inside of them; `vector_loops` has what is
innermost. What does not depend on a loop is read before it. Where a reduced loop was cut in parts, a second,
short nest joins their results (see `partial_results`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Output, Place, Range
from mind_mlir.lowering.schedule.fusion.nests.partial_results import PartialResults
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import columns, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.schedule import Cut, FusedSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class Chunks:
    """Emits chunks of a nest, and the loops within one.

    Attributes:
        e: The emitter.
        group: The group, whose loops are cut, the vector loop but for what is left after its full steps.
        schedule: How they are cut.
    """

    e: Emitter
    group: Group
    schedule: FusedSchedule

    def emit(
        self,
        cuts: Sequence[Cut],
        place: Place,
        carried: list[Value],
        body: Callable[[Place, list[Value]], list[Value]],
        *,
        parallel: bool,
    ) -> list[Value]:
        """Run ``body`` for each of the chunks that ``cuts`` make of what is to be computed at ``place``."""
        if not cuts:
            return body(place, carried)
        count = math.prod(cut.count for cut in cuts)

        def chunk(number: Index, inside: list[Value]) -> list[Value]:
            return body(self._chunk_place(cuts, number, place), inside)

        if not parallel:
            return self.e.loop((0, count, 1), carried, chunk)
        split = Split(1, count, self.schedule.reason, self.schedule.brief, self.schedule.epilogue)
        return self.e.chunks(split, count, carried, lambda first, _, inside: chunk(first, inside))

    def loops(
        self,
        dims: Sequence[int],
        place: Place,
        carried: list[Value],
        inner: Callable[[Place, list[Value]], list[Value]],
        at: Callable[[Place, Env], Place] = Place.at,
    ) -> list[Value]:
        """Run ``inner`` in the loops ``dims``, outermost first, ``at`` places within the chunk ``place``."""
        if not dims:
            return inner(place, carried)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            return self.loops(dims[1:], at(place, place.env | {dims[0]: i}), inside, inner, at)

        return self.e.loop((*self.bounds(place, dims[0]), 1), carried, body)

    def bounds(self, place: Place, dim: int) -> tuple[Index, Index]:
        """Return the first iteration of loop ``dim`` in the chunk ``place``, and the one behind the last."""
        range_ = place.ranges.get(dim, Range(0, self._extent(dim)))
        return range_.lower, range_.upper

    def _extent(self, dim: int) -> int:
        extent = self.group.extents[dim]
        return extent - extent % self.schedule.width if dim == self.group.vector else extent

    def _chunk_place(self, cuts: Sequence[Cut], number: Index, place: Place) -> Place:
        """Return the place of chunk ``number``."""
        for position, cut in reversed(list(enumerate(cuts))):
            own = self.e.modulo(number, cut.count) if position else number
            number = self.e.floordiv(number, cut.count) if position else number
            if cut is self.schedule.parts:
                place = dataclasses.replace(place, slot=own)
            if cut.step == 1 and cut.dim not in self.group.reductions:
                place = place.at(place.env | {cut.dim: own})
            else:
                place = place.within(cut.dim, self._range(cut, own))
        return place

    def _range(self, cut: Cut, number: Index) -> Range:
        extent = self._extent(cut.dim)
        lower = self.e.mul(number, cut.step)
        upper = self.e.add(lower, cut.step)
        end = cut.dim != self.group.vector
        last = None if end or self.schedule.epilogue is None else upper
        upper = self.e.minimum(upper, extent) if extent != cut.count * cut.step else upper
        return Range(lower, upper, end=end, last=last)


class GroupEmitter:
    """Emits one group."""

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        outputs: Sequence[Output],
        schedule: FusedSchedule,
        target: Target,
    ) -> None:
        self._e = emitter
        self._g = group
        self._s = schedule
        self._outputs = outputs
        self._b = NestBody(emitter, group, outputs, schedule, target)
        innermost = rows if group.vector in group.reductions else columns
        self._inside = functools.partial(innermost, self._b)
        self._chunks = Chunks(emitter, group, schedule)

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order."""
        reducers, count = self._b.reducers, len(self._b.streams)
        outputs = [*self._b.streams, *reducers]
        carried = [output.destination for output in outputs]
        parts = self._s.parts
        if parts is None:
            carried = self._nest(known, carried)
        else:
            slots = parts.count + (parts.dim == self._g.vector and self._has_end())
            last = self._g.vector in self._g.reductions
            partial = PartialResults(self._e, self._s.lanes, slots, last=last)
            carried = self._nest(known, [*carried[:count], *map(partial.memory, reducers)])
            carried = [*carried[:count], *map(partial.join, reducers, carried[count:])]
        by_output = dict(zip(map(id, outputs), carried, strict=True))
        return [by_output[id(output)] for output in self._outputs]

    def _has_end(self) -> bool:
        return self._b.full != self._g.extents[self._g.vector]

    def _nest(self, known: Known, carried: list[Value]) -> list[Value]:
        chunks, place, vector = self._chunks, Place({}, known), self._g.vector
        if vector < 0:
            known, elements = self._b.inside(place, {}).known, self._b.elements
            pairs = zip(self._b.streams, carried, strict=True)
            return [self._e.insert(elements.scalar(o.result, known), tensor, []) for o, tensor in pairs]
        carried = chunks.emit(self._s.cuts, place, carried, self._chunk, parallel=self._s.parallel)
        along = self._s.cut(vector)
        if along is None or not self._has_end() or self._s.epilogue is not None:
            return carried
        others = [cut for cut in self._s.cuts if cut is not along]
        end = {vector: Range(self._b.full, self._b.full)}
        place = Place({}, known, end, along.count if along is self._s.parts else None)
        return chunks.emit(others, place, carried, self._chunk, parallel=False)

    def _chunk(self, place: Place, carried: list[Value]) -> list[Value]:
        inside = {self._g.vector, *self._g.reductions, *place.env}
        outer = [dim for dim in range(len(self._g.extents)) if dim not in inside]
        here, inner = self._b.inside(place, place.env), self._inside
        if outer and self._s.beside > 1:
            inner = functools.partial(self._beside, outer.pop())
        return self._chunks.loops(outer, here, carried, inner, self._b.inside)

    def _beside(self, dim: int, place: Place, carried: list[Value]) -> list[Value]:
        """Emit the loop ``dim`` for some rows at once, and one by one where these are not all there."""
        inner, side = self._inside, self._s.beside
        lower, upper = self._chunks.bounds(place, dim)
        whole = self._b.most(dim) % side == 0 and self._g.extents[dim] % side == 0

        def one(i: Index, inside: list[Value]) -> list[Value]:
            return inner(self._b.inside(place, place.env | {dim: i}), inside)

        def some(i: Index, inside: list[Value]) -> list[Value]:
            env = place.env | {dim: i}
            end = self._e.add(i, side)
            fits = self._b.elements.fits(env, dim, side)
            conditions = [] if whole else [self._e.compare("ule", end, upper)]
            conditions += [] if fits is None else [fits]
            here = dataclasses.replace(place, env=env, side=dim)
            if not conditions:
                return inner(here, inside)
            last = end if whole else self._e.minimum(end, upper)
            return self._e.either(
                self._e.all(conditions),
                inside,
                lambda now: inner(here, now),
                lambda now: self._e.loop((i, last, 1), now, one),
            )

        return self._e.loop((lower, upper, side), carried, some)
