"""The body of a group's nest in its innermost loop: compute, store, accumulate, prefetch."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import LINE
from mind_mlir.lowering.schedule.folds.reductions import (
    Accumulators,
    Combiner,
    combined_value,
    match_combiners,
)
from mind_mlir.lowering.schedule.fusion.nests.elements import Beside, Chunk, Elements, Known, read_vector
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.mlir.bindings import Type, Value, vector
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, View
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class Output:
    """A result that leaves the nest.

    Attributes:
        member: the operation.
        number: number among its results.
        destination: the tensor it is written to; holds what a reduction starts from unless ``start`` does.
        start: the number that a reduction starts from, or None.
        adds: whether each element is combined with what is in memory by then: a sum over rows.
        instead: what is reduced rather than what the operation does, a value of its body.
    """

    member: View
    number: int
    destination: Value
    start: Value | None = None
    adds: bool = False
    instead: Value | None = None

    @property
    def access(self) -> Access:
        """The access to the result: its indices."""
        return self.member.accesses[len(self.member.inputs) + self.number]

    @property
    def result(self) -> Value:
        """The result itself."""
        return self.member.op.results[self.number]

    @property
    def element(self) -> Type:
        """The type of an element."""
        return self.destination.type.element_type

    @cached_property
    def combiner(self) -> Combiner:
        """How a reduction is combined."""
        combiners = match_combiners(self.member.body, self.member.results)
        assert combiners is not None  # `vector_dims` is empty otherwise
        return dataclasses.replace(combiners[self.number], location=self.member.op.location)

    @cached_property
    def value(self) -> Value:
        """What is stored, or combined with an accumulator."""
        if self.instead is not None:
            return self.instead
        reduces = self.member.reductions
        return combined_value(self.member.body, self.member.results, self.number) if reduces else self.result

    def indices(self, e: Emitter, env: Env) -> list[Index]:
        """Emit the indices of the element at ``env``."""
        return [index.emit(e, env) for index in self.access]

    def begin(self, e: Emitter, tensor: Value, indices: Sequence[Index]) -> Value:
        """Emit what a reduction starts from, which ``tensor`` holds unless it is known."""
        return e.extract(tensor, indices) if self.start is None else self.start


def reductions_of(views: Iterable[View]) -> list[Output]:
    """Return the results of ``views``, which reduce, as results that are given as they are found."""
    inits = [(view, number, init) for view in views for number, init in enumerate(view.inits)]
    return [Output(*each, start=filler(each[-1])) for each in inits]


@dataclasses.dataclass(frozen=True)
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


@dataclasses.dataclass(frozen=True)
class Range:
    """Iterations of one loop.

    Attributes:
        lower: The first one.
        upper: The one behind the last.
        end: For the vector loop: whether what follows its last full step belongs to it.
        last: For the vector loop: what follows its last full step belongs to it if that is before this.
    """

    lower: Index
    upper: Index
    end: bool = True
    last: Index | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of a computation in the nest.

    Attributes:
        env: The loops around it.
        known: The elements that they determine.
        ranges: The iterations of loops that are not run as a whole.
        slot: Which of the partial results is computed; None where there are none.
        now: Tensors that have been written to since, by what is read of them, and what they are by now.
        side: The loop of which some iterations are computed at once, from the one in ``env`` on, if any.
    """

    env: Env
    known: Known
    ranges: Mapping[int, Range] = dataclasses.field(default_factory=dict)
    slot: Index | None = None
    now: Mapping[Value, Value] = dataclasses.field(default_factory=dict)
    side: int | None = None

    def at(self, env: Env, known: Known | None = None) -> Place:
        """Return the place within further loops, and what is known there if that is more."""
        return dataclasses.replace(self, env=env, known=self.known if known is None else known)

    def within(self, dim: int, range_: Range) -> Place:
        """Return the place in some iterations of loop ``dim``."""
        return dataclasses.replace(self, ranges={**self.ranges, dim: range_})


class NestBody:
    """The innermost part of the nest of one group.

    Args:
        live_ins: Results that are known as single elements (see `Plan`).
        prefetches: What is prefetched meanwhile.
    """

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        outputs: Sequence[Output],
        schedule: FusedSchedule,
        target: Target,
        live_ins: Mapping[Value, frozenset[int]] | None = None,
        prefetches: Sequence[Prefetch] = (),
    ) -> None:
        self.e = emitter
        self.group = group
        self.schedule = schedule
        self._fma = target.fma
        wanted = [output.value for output in outputs]
        through = schedule.beside > 1 and not group.reductions
        self.elements = Elements(emitter, group, schedule.width, wanted, live_ins, through=through)
        self.reducers = [output for output in outputs if output.member.reductions and not output.adds]
        self.streams = [output for output in outputs if not output.member.reductions or output.adds]
        self._prefetches = list(prefetches)
        if schedule.prefetch_distance:
            self._prefetches += [Prefetch(*read) for read in self.elements.long_reads(target.l2_bytes)]

    @property
    def full(self) -> int:
        """The iterations of the vector loop that are in full steps."""
        extent = self.group.extents[self.group.vector]
        return extent - extent % self.schedule.width

    def range_of(self, place: Place, dim: int) -> Range:
        """Return the iterations of loop ``dim``, of the vector loop those in full steps."""
        whole = self.full if dim == self.group.vector else self.group.extents[dim]
        return place.ranges.get(dim, Range(0, whole))

    def inside(self, place: Place, env: Env) -> Place:
        """Return the place within further loops, and what these determine."""
        return place.at(env, self.elements.advance(env, place.known))

    def most(self, dim: int) -> int:
        """Return the most iterations that a chunk runs of loop ``dim``."""
        cut = self.schedule.cut(dim)
        return self.group.extents[dim] if cut is None else cut.step

    @property
    def neutral(self) -> list[Value]:
        """The vector that each reducer combines with any other to that one."""
        width = self.schedule.width
        return [
            each.combiner.nothing(self.e, self.e.vector_type(width, each.element)) for each in self.reducers
        ]

    def accumulators(self, place: Place) -> Accumulators:
        """Return an accumulator for each reducer, of each of the rows at ``place``."""
        rows = self.rows_at(place)
        return Accumulators(self.e, [each.combiner for each in self.reducers] * rows, self.neutral * rows)

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
            following += [self._combine(each, next(accumulators), computed) for each in self.reducers]
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
                value = self._combine(output, self.start(output, stored[number], place, chunk), computed)
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

    def store_total(self, output: Output, result: Value, place: Place, total: Value) -> Value:
        """Combine ``total`` with what its element of ``result`` starts from, and store it there.

        Partial results start from nothing.
        """
        indices = output.indices(self.e, place.env)
        if place.slot is not None:
            return self.e.insert(total, result, [*indices, place.slot])
        start = output.begin(self.e, result, indices)
        return self.e.insert(output.combiner.combine(start, total), result, indices)

    def _prefetch(self, place: Place, chunk: Chunk) -> None:
        """Prefetch the cache lines that a step from ``chunk`` on needs, or one a little further on."""
        start, distance = chunk.start, self.schedule.prefetch_distance
        if distance and self._prefetches:
            last = self.group.extents[self.group.vector] - self.schedule.width
            start = self.e.minimum(self.e.add(start, distance), last)
        for each in self._prefetches:
            env = place.env if each.env is None else each.env
            for first in range(
                0, self.schedule.width, max(1, LINE * 8 // each.tensor.type.element_type.width)
            ):
                here = env | {self.group.vector: self.e.add(start, first)}
                indices = [index.emit(self.e, here) for index in each.access]
                self.e.prefetch(each.tensor, indices, write=each.write, once=distance > 0)

    def _combine(self, output: Output, accumulator: Value, known: Known) -> Value:
        """Combine what a reduction computed with an accumulator, fused if it is a product."""
        combiner, value = output.combiner, self.elements.vector(output.value, known)
        op = definition(value) if self._fma and combiner.name == "arith.addf" else None
        if op is not None and op.name == "arith.mulf":
            return vector.FMAOp(*op.operands, accumulator, loc=combiner.location).result
        return combiner.combine(accumulator, value)
