"""Emits a group as one loop nest over vectors, as its schedule says, and joins partial results.

The loops over chunks are outermost, those over parallel dimensions inside of them; `vector_loops` has what is
innermost. What does not depend on a loop is read before it. Where a reduced loop was cut in parts, a second,
short nest joins their results: sums in f64, which costs nothing beside the parts, and rounds once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.folds.reductions import Accumulators, Combiner
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Output, Place, Range
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import Columns, Rows
from mind_mlir.mlir.bindings import Type, Value, ir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.schedule import Cut, FusedSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.target import Target


def partial_results(emitter: Emitter, output: Output, parts: int, *, last: bool) -> Value:
    """Return a new tensor for ``parts`` partial results of ``output``.

    Args:
        emitter: Where to emit.
        output: A reduction.
        parts: How many.
        last: Whether the parts of an element lie beside one another, rather than those of a part.
    """
    type_ = ir.RankedTensorType(output.destination.type)
    shape = [*type_.shape, parts] if last else [parts, *type_.shape]
    return emitter.empty(shape, type_.element_type)


class Joiner:
    """Joins partial results."""

    def __init__(self, emitter: Emitter, lanes: int) -> None:
        self._e = emitter
        self._lanes = lanes

    def join(self, output: Output, combiner: Combiner, partial: Value, *, last: bool) -> Value:
        """Return ``output``'s destination with the joined ``partial`` results (see `partial_results`)."""
        shape = list(output.destination.type.shape)
        parts = partial.type.shape[-1 if last else 0]
        count = math.prod(shape)
        flat = collapse_value(output.destination, [count] if shape else [])
        partial = collapse_value(partial, ([count, parts] if last else [parts, count]) if shape else [parts])
        if not last:
            flat = self._columns(output, combiner, partial, flat)
        elif not shape:
            flat = self._element(output, combiner, partial, [], flat)
        else:
            (flat,) = self._e.loop(
                (0, count, 1), [flat], lambda i, now: [self._element(output, combiner, partial, [i], now[0])]
            )
        return expand_value(flat, shape)

    def _element(
        self, output: Output, combiner: Combiner, partial: Value, at: list[Index], result: Value
    ) -> Value:
        """Join the parts of one element, which lie beside one another."""
        element = ir.RankedTensorType(partial.type).element_type
        parts = partial.type.shape[-1]
        width = 1 << (parts - 1).bit_length()
        padding = self._e.splat(element, combiner.neutral_attribute(element))
        mask = self._e.mask(width, parts)
        vector = self._e.read(self._e.vector_type(width, element), partial, [*at, 0], padding, mask)
        wide = wider(combiner, element)
        total = self._e.cast(combiner.horizontal(self._e.cast(vector, wide)), element)
        start = self._e.extract(result, at) if output.start is None else output.start
        return self._e.insert(combiner.combine(start, total), result, at)

    def _columns(self, output: Output, combiner: Combiner, partial: Value, result: Value) -> Value:
        """Join parts that lie one after the other, a vector of elements at a time."""
        element = ir.RankedTensorType(partial.type).element_type
        type_ = self._e.vector_type(self._lanes, element)
        parts, count = partial.type.shape
        wide = wider(combiner, element)
        neutral = self._e.splat(self._e.vector_type(self._lanes, wide), combiner.neutral_attribute(wide))
        padding = self._e.splat(element, combiner.neutral_attribute(element))
        accumulators = Accumulators(self._e, [combiner], [neutral])

        def vector(at: Index, mask: Value | None, now: list[Value]) -> list[Value]:
            (total,) = accumulators.loop(
                (0, parts, 1),
                parts,
                1,
                accumulators.neutral,
                lambda part, inside: [
                    combiner.combine(
                        inside[0],
                        self._e.cast(self._e.read(type_, partial, [part, at], padding, mask), wide),
                    )
                ],
            )
            total = self._e.cast(total, element)
            start = self._start(output, type_, now[0], at, mask)
            return [self._e.write(combiner.combine(start, total), now[0], [at], mask)]

        return self._e.vectors(count, self._lanes, [result], vector)[0]

    def _start(self, output: Output, type_: Type, result: Value, at: Index, mask: Value | None) -> Value:
        if output.start is not None:
            return self._e.broadcast(type_, output.start)
        element = ir.VectorType(type_).element_type
        return self._e.read(type_, result, [at], self._e.number(element, 0), mask)


def wider(combiner: Combiner, element: Type) -> Type:
    """Return the type that parts are joined in: a wider one where that keeps the sum from rounding again."""
    if combiner.name == "arith.addf" and not isinstance(element, ir.F64Type):
        return ir.F64Type.get()
    return element


class Chunks:
    """Emits them.

    Args:
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
    """Emits one group."""

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
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order."""
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
