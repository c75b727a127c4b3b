"""The body of a group's nest in its innermost loop: compute, store, accumulate, prefetch."""

from __future__ import annotations

import dataclasses
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import LINE
from mind_mlir.lowering.schedule.folds.fold import by_parts
from mind_mlir.lowering.schedule.folds.reductions import Accumulators
from mind_mlir.lowering.schedule.fusion.nests.elements import Beside, Chunk, Elements, Known, read_vector
from mind_mlir.lowering.schedule.fusion.nests.program import Folded, folded
from mind_mlir.mlir.bindings import Value, vector
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.plan import LiveIns
    from mind_mlir.lowering.schedule.fusion.nests.program import NestProgram, Output, Place
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env


@dataclass(frozen=True)
class Prefetch:
    """A tensor of which each step of the vector loop prefetches what is soon to be read or written.

    Attributes:
        tensor: The tensor.
        access: How it is indexed.
        env: Where all loops but the vector loop are to be; None: where they are.
        write: Whether it is to be written.
    """

    tensor: Value
    access: Access
    env: Env | None = None
    write: bool = False


class NestBody:
    """The innermost part of a nest.

    Args:
        nest: What is computed: a group, or what a pass over a row does.
        live_ins: Results that are known as single elements (see `Plan`).
        prefetches: What is prefetched meanwhile.
    """

    def __init__(
        self,
        emitter: Emitter,
        nest: NestProgram,
        live_ins: LiveIns = MappingProxyType({}),
        prefetches: Sequence[Prefetch] = (),
    ) -> None:
        self.e, self.nest = emitter, nest
        self.group, self.schedule = nest.group, nest.schedule
        wanted = [output.value for output in nest.outputs]
        through = self.schedule.beside > 1 and not self.group.reductions
        self.elements = Elements(emitter, self.group, self.schedule.width, wanted, live_ins, through=through)
        self.reducers = [output for output in nest.outputs if output.member.reductions and not output.adds]
        self.folded = folded(self.reducers)
        self.streams = [output for output in nest.outputs if not output.member.reductions or output.adds]
        self._prefetches = list(prefetches)
        if self.schedule.prefetch_distance:
            self._prefetches += [Prefetch(*read) for read in self.elements.long_reads(nest.target.l2_bytes)]

    def inside(self, place: Place, env: Env) -> Place:
        """Return the place within further loops, and what these determine."""
        return place.at(env, self.elements.advance(env, place.known))

    @property
    def neutral(self) -> list[Value]:
        """The vector of each reducer that stands for no terms."""
        found = (each.nothing(self.e, self.schedule.width) for each in self.folded)
        return [value for values in found for value in values]

    def accumulators(self, place: Place) -> Accumulators:
        """Return an accumulator for each reducer, of each of the rows at ``place``."""
        rows = self.rows_at(place)
        return Accumulators(self.e, [each.fold for each in self.folded] * rows, self.neutral * rows)

    def rows(self, place: Place, chunk: Chunk, carried: Sequence[Value]) -> Iterator[tuple[int, Known]]:
        """Compute one chunk of each of the rows at ``place``; yield their numbers and what is known then."""
        tensors = zip([output.destination for output in self.streams], carried, strict=False)
        now = {**place.now, **dict(tensors)}
        first = None if place.side is None else Beside(place.side)
        for row in range(self.rows_at(place)):
            beside = first and dataclasses.replace(first, row=row)
            yield row, self.elements.chunk(place.env, place.known, chunk, now, beside)

    def rows_at(self, place: Place) -> int:
        """Return how many rows are computed at once at ``place``."""
        return 1 if place.side is None else self.schedule.beside

    def at_row(self, place: Place, row: int) -> Place:
        """Return the place of one of the rows at ``place``."""
        if place.side is None:
            return place
        return place.at(place.env | {place.side: self.e.add(place.env[place.side], row)})

    def stream(self, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute and store one chunk of a group without reductions."""
        for row, computed in list(self.rows(place, chunk, carried)):
            carried = self.store_streams(self.at_row(place, row), chunk, computed, carried)
        return carried

    def accumulate(self, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute one chunk and combine its reductions with the accumulators, which follow the streams.

        Where several rows are computed at once, nothing is stored but what they add up to. Along a reduced
        vector loop, lanes that are off add nothing.
        """
        count = len(self.streams)
        following, accumulators = carried[:count], iter(carried[count:])
        for _, computed in self.rows(place, chunk, carried):
            if place.side is None:
                following = self.store_streams(place, chunk, computed, following)
            for each in self.folded:
                own = list(islice(accumulators, each.fold.parts))
                following += self._folded(each, own, computed)
        if chunk.mask is None or self.group.vector not in self.group.reductions:
            return following
        pairs = zip(following[count:], carried[count:], strict=True)
        return [*following[:count], *(self.e.select(chunk.mask, new, old) for new, old in pairs)]

    def store_streams(self, place: Place, chunk: Chunk, computed: Known, carried: list[Value]) -> list[Value]:
        """Store the results that are not reduced, which ``carried`` starts with."""
        stored = list(carried)
        if chunk.mask is None:
            self._prefetch(place, chunk)
        for number, output in enumerate(self.streams):
            if output.adds:
                start = self.start(output, stored[number], place, chunk)
                (value,) = self._folded(Folded((output,)), [start], computed)
            else:
                value = self.elements.vector(output.value, computed)
            stored[number] = self.store(output, stored[number], place, chunk, value)
        return stored

    def store_totals(
        self, place: Place, chunk: Chunk, results: Sequence[Value], totals: Sequence[Value]
    ) -> list[Value]:
        """Store what each reducer adds up to in ``chunk``; return the tensors of the reducers."""
        rows = zip(self.reducers, results, totals, strict=True)
        return [self.store(output, result, place, chunk, total) for output, result, total in rows]

    def store(self, output: Output, result: Value, place: Place, chunk: Chunk, value: Value) -> Value:
        """Write the vector of a chunk to ``result``, to part of it if it holds partial results.

        Each register is stored by itself: LLVM would store those of one vector last one first, which takes up
        to twice as long where they are not aligned.
        """
        indices, lanes = self._indices(output, place, chunk), self.schedule.lanes
        if chunk.mask is not None or self.schedule.vectors == 1:
            return self.e.write(value, result, indices, chunk.mask)
        for first in range(0, self.schedule.width, lanes):
            part = self.e.part(value, first, lanes)
            result = self.e.write(part, result, [*indices[:-1], self.e.add(indices[-1], first)])
        return result

    def start(self, output: Output, result: Value, place: Place, chunk: Chunk) -> Value:
        """Return what the accumulator of ``chunk`` starts from: a number, or elements of ``result``."""
        width = self.schedule.width
        if output.start is not None and place.slot is None:
            return self.e.broadcast(self.e.vector_type(width, output.start.type), output.start)
        return read_vector(self.e, width, result, self._indices(output, place, chunk), chunk.mask)

    def _indices(self, output: Output, place: Place, chunk: Chunk) -> list[Index]:
        indices = output.indices(self.e, place.env | {self.group.vector: chunk.start})
        return indices if place.slot is None or not output.member.reductions else [place.slot, *indices]

    def store_row(self, place: Place, results: Sequence[Value], totals: Sequence[Value]) -> list[Value]:
        """Join the ``totals`` of a row with what their elements of ``results`` start from, and store that.

        Partial results start from nothing.
        """
        stored: list[Value] = []
        for each, (own, total) in by_parts(self.folded, results, totals):
            indices = each.outputs[0].indices(self.e, place.env)
            if place.slot is None:
                pairs = zip(each.begun(self.e, own, indices, total), own, strict=True)
            else:
                pairs, indices = zip(total, own, strict=True), [*indices, place.slot]
            stored += [self.e.insert(value, result, indices) for value, result in pairs]
        return stored

    def _prefetch(self, place: Place, chunk: Chunk) -> None:
        """Prefetch the cache lines that a step from ``chunk`` on needs, or one a little further on."""
        start, distance = chunk.start, self.schedule.prefetch_distance
        if distance and self._prefetches:
            last = self.group.extents[self.group.vector] - self.schedule.width
            start = self.e.minimum(self.e.add(start, distance), last)
        for each in self._prefetches:
            env = place.env if each.env is None else each.env
            line = max(1, LINE * 8 // each.tensor.type.element_type.width)
            for first in range(0, self.schedule.width, line):
                here = env | {self.group.vector: self.e.add(start, first)}
                indices = [index.emit(self.e, here) for index in each.access]
                self.e.prefetch(each.tensor, indices, write=each.write, once=distance > 0)

    def _folded(self, each: Folded, accumulators: list[Value], known: Known) -> list[Value]:
        """Return accumulators that have taken what a reduction computed, fused if it is a product."""
        fold, terms = each.fold, [self.elements.vector(output.value, known) for output in each.outputs]
        op = definition(terms[0]) if self.nest.target.fma and fold.name == "arith.addf" else None
        if op is not None and op.name == "arith.mulf":
            return [vector.FMAOp(*op.operands, *accumulators, loc=fold.location).result]
        return fold.joined(accumulators, terms)
