"""Emits a group as one loop nest over vectors, as its schedule says.

The loops over chunks are outermost, those over parallel dimensions inside of them; `columns` and `rows` are
what is innermost. What does not depend on a loop is read before it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Place, Range
from mind_mlir.lowering.schedule.fusion.nests.columns import Columns
from mind_mlir.lowering.schedule.fusion.nests.join import Joiner, partial_results
from mind_mlir.lowering.schedule.fusion.nests.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.output import Output
    from mind_mlir.lowering.schedule.fusion.nests.schedule import Cut, FusedSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


class Chunks:
    """Emits them.

    Args:
        emitter: Where to emit.
        whole: Of each loop, the iterations that are cut.
        vector: The vector loop.
        reductions: The loops that are reduced.
        schedule: How they are cut.
    """

    def __init__(
        self,
        emitter: Emitter,
        whole: Sequence[int],
        vector: int,
        reductions: Sequence[int],
        schedule: FusedSchedule,
    ) -> None:
        self._e = emitter
        self._whole = whole
        self._vector = vector
        self._reductions = reductions
        self._s = schedule

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
            return self._e.loop((0, count, 1), carried, chunk)
        split = Split(1, count, self._s.reason, self._s.brief, self._s.epilogue)
        return self._e.chunks(split, count, carried, lambda first, _, inside: chunk(first, inside))

    def _chunk_place(self, cuts: Sequence[Cut], number: Index, place: Place) -> Place:
        """Return the place of chunk ``number``."""
        env: Env = dict(place.env)
        ranges, slot = dict(place.ranges), place.slot
        for position, cut in reversed(list(enumerate(cuts))):
            own = self._e.modulo(number, cut.count) if position else number
            number = self._e.floordiv(number, cut.count) if position else number
            if cut is self._s.parts:
                slot = own
            if cut.step == 1 and cut.dim not in self._reductions:
                env[cut.dim] = own
            else:
                ranges[cut.dim] = self._range(cut, own)
        return Place(env, place.known, ranges, slot)

    def _range(self, cut: Cut, number: Index) -> Range:
        extent = self._whole[cut.dim]
        lower = self._e.mul(number, cut.step)
        upper = self._e.add(lower, cut.step)
        end = cut.dim != self._vector
        last = None if end or self._s.epilogue is None else upper
        upper = self._e.minimum(upper, extent) if extent != cut.count * cut.step else upper
        return Range(lower, upper, end=end, last=last)


class GroupEmitter:
    """Emits one group.

    Args:
        emitter: Where to emit.
        group: What to compute.
        outputs: The results that are used outside of the group, reductions among them.
        schedule: How.
        target: The processor.
    """

    def __init__(
        self, emitter: Emitter, group: Group, outputs: list[Output], schedule: FusedSchedule, target: Target
    ) -> None:
        self._e = emitter
        self._g = group
        self._s = schedule
        self._outputs = outputs
        self._b = NestBody(emitter, group, outputs, schedule, target)
        self._inside = Rows(self._b) if group.vector in group.reductions else Columns(self._b)

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order.

        Args:
            known: Other values for some that the bodies take from outside.
        """
        outputs = [*self._b.streams, *self._b.reducers]
        last = self._g.vector in self._g.reductions
        carried = [output.destination for output in outputs]
        if self._s.parts is not None:
            slots = self._s.parts.count + bool(self._s.parts.dim == self._g.vector and self._has_end())
            carried[len(self._b.streams) :] = [
                partial_results(self._e, output, slots, last=last) for output in self._b.reducers
            ]
        carried = self._nest(known, carried)
        if self._s.parts is not None:
            joiner = Joiner(self._e, self._s.lanes)
            for place, (output, combiner) in enumerate(
                zip(self._b.reducers, self._b.combiners, strict=True), len(self._b.streams)
            ):
                carried[place] = joiner.join(output, combiner, carried[place], last=last)
        by_output = dict(zip(map(id, outputs), carried, strict=True))
        return [by_output[id(output)] for output in self._outputs]

    def _has_end(self) -> bool:
        return self._b.full != self._g.extents[self._g.vector]

    def _nest(self, known: Known, carried: list[Value]) -> list[Value]:
        if self._g.vector < 0:
            known = self._b.elements.advance({}, known)
            pairs = zip(self._b.streams, carried, strict=True)
            return [
                self._e.insert(self._b.elements.scalar(o.result, known), tensor, []) for o, tensor in pairs
            ]
        whole = list(self._g.extents)
        whole[self._g.vector] = self._b.full
        chunks = Chunks(self._e, whole, self._g.vector, self._g.reductions, self._s)
        place = Place({}, known, {})
        carried = chunks.emit(self._s.cuts, place, carried, self._chunk, parallel=self._s.parallel)
        along = self._s.cut(self._g.vector)
        if along is None or not self._has_end() or self._s.epilogue is not None:
            return carried
        others = [cut for cut in self._s.cuts if cut is not along]
        end = {self._g.vector: Range(self._b.full, self._b.full, end=True)}
        slot = along.count if along is self._s.parts else None
        return chunks.emit(others, Place({}, known, end, slot), carried, self._chunk, parallel=False)

    def _chunk(self, place: Place, carried: list[Value]) -> list[Value]:
        inside = {self._g.vector, *self._g.reductions, *place.env}
        outer = [dim for dim in range(len(self._g.extents)) if dim not in inside]
        known = self._b.elements.advance(place.env, place.known)
        return self._outer(outer, place.at(place.env, known), carried)

    def _outer(self, dims: list[int], place: Place, carried: list[Value]) -> list[Value]:
        if not dims:
            return self._inside.emit(place, carried)
        if len(dims) == 1 and self._s.beside > 1:
            return self._beside(dims[0], place, carried)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            env = place.env | {dims[0]: i}
            here = place.at(env, self._b.elements.advance(env, place.known))
            return self._outer(dims[1:], here, inside)

        rows = self._b.range_of(place, dims[0])
        return self._e.loop((rows.lower, rows.upper, 1), carried, body)

    def _beside(self, dim: int, place: Place, carried: list[Value]) -> list[Value]:
        """Emit the loop ``dim`` for some rows at once, and one by one where these are not all there."""
        columns, side = self._inside, self._s.beside
        rows = self._b.range_of(place, dim)
        whole = self._b.most(dim) % side == 0 and self._g.extents[dim] % side == 0

        def one(i: Index, inside: list[Value]) -> list[Value]:
            env = place.env | {dim: i}
            return columns.emit(place.at(env, self._b.elements.advance(env, place.known)), inside)

        def some(i: Index, inside: list[Value]) -> list[Value]:
            env = place.env | {dim: i}
            end = self._e.add(i, side)
            fits = self._b.elements.fits(env, dim, side)
            conditions = [] if whole else [self._e.compare("ule", end, rows.upper)]
            conditions += [] if fits is None else [fits]
            here = place.at(env, place.known)
            if not conditions:
                return columns.emit_beside(here, dim, inside)
            last = end if whole else self._e.minimum(end, rows.upper)
            return self._e.either(
                self._e.all(conditions),
                inside,
                lambda now: columns.emit_beside(here, dim, now),
                lambda now: self._e.loop((i, last, 1), now, one),
            )

        return self._e.loop((rows.lower, rows.upper, side), carried, some)
