"""The body of a group's nest in its innermost loop: compute, store, accumulate, prefetch."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import LINE
from mind_mlir.lowering.schedule.fusion.groups.reductions import Accumulators, Combiner
from mind_mlir.lowering.schedule.fusion.nests.elements import Beside, Chunk, Elements, Known
from mind_mlir.lowering.schedule.fusion.nests.output import Output, Stores, combiner_of, wanted_values
from mind_mlir.mlir.bindings import Value, arith, ir, vector
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class Prefetch:
    """A tensor of which each step of the vector loop asks for what is soon to be read or written.

    Attributes:
        tensor: The tensor.
        access: How it is indexed.
        env: Where all loops but the vector loop are to be.
        write: Whether it is to be written.
    """

    tensor: Value
    access: Access
    env: Env
    write: bool


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
    """

    env: Env
    known: Known
    ranges: Mapping[int, Range]
    slot: Index | None = None
    now: Mapping[Value, Value] = dataclasses.field(default_factory=dict)

    def at(self, env: Env, known: Known) -> Place:
        """Return the place within further loops."""
        return dataclasses.replace(self, env=env, known=known)


class NestBody:
    """The innermost part of the nest of one group.

    Args:
        emitter: Where to emit.
        group: What to compute.
        outputs: The results that are used outside of the group, reductions among them.
        schedule: How.
        target: The processor.
        live_ins: Results that are known as single elements (see `Plan`).
        prefetches: What is asked for meanwhile.
    """

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        outputs: list[Output],
        schedule: FusedSchedule,
        target: Target,
        live_ins: Mapping[Value, frozenset[int]] | None = None,
        prefetches: Sequence[Prefetch] = (),
    ) -> None:
        self._prefetches = prefetches
        self.e = emitter
        self.group = group
        self.schedule = schedule
        self._fma = target.fma
        wanted = [value for output in outputs for value in wanted_values(output)]
        through = schedule.beside > 1 and not group.reductions
        self.elements = Elements(emitter, group, schedule.width, wanted, live_ins, through=through)
        self.stores = Stores(emitter, group, schedule.lanes, schedule.vectors)
        self.reducers = [output for output in outputs if output.member.reductions and not output.adds]
        self.streams = [output for output in outputs if not output.member.reductions or output.adds]
        self.combiners = [combiner_of(output) for output in self.reducers]
        self._prefetched = self.elements.long_reads(target.l2_bytes) if schedule.prefetch_distance else []

    @property
    def full(self) -> int:
        """The iterations of the vector loop that are in full steps."""
        extent = self.group.extents[self.group.vector]
        return extent - extent % self.schedule.width

    def range_of(self, place: Place, dim: int) -> Range:
        """Return the iterations of loop ``dim``, of the vector loop those in full steps."""
        whole = self.full if dim == self.group.vector else self.group.extents[dim]
        return place.ranges.get(dim, Range(0, whole))

    def most(self, dim: int) -> int:
        """Return the most iterations that a chunk runs of loop ``dim``."""
        cut = self.schedule.cut(dim)
        return self.group.extents[dim] if cut is None else cut.step

    def neutral(self, number: int) -> Value:
        """Return the vector that reducer ``number`` combines with any other to that one."""
        element = ir.RankedTensorType(self.reducers[number].destination.type).element_type
        type_ = self.e.vector_type(self.schedule.width, element)
        return self.e.splat(type_, self.combiners[number].neutral_attribute(element))

    def accumulators(self, rows: int = 1) -> Accumulators:
        """Return an accumulator for each reducer, of each of several rows."""
        neutral = [self.neutral(number) for number in range(len(self.reducers))]
        return Accumulators(self.e, self.combiners * rows, neutral * rows)

    def accumulate(self, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute one chunk and combine its reductions with the accumulators, which follow the streams."""
        count = len(self.streams)
        computed = self.elements.chunk(place.env, place.known, chunk, self._now(place, carried))
        following = self.store_streams(place, chunk, computed, carried[:count])
        self._prefetch_reads(place, chunk)
        accumulators = iter(carried[count:])
        for output, combiner in zip(self.reducers, self.combiners, strict=True):
            following.append(self._combine(output, combiner, next(accumulators), computed))
        return following

    def accumulate_beside(
        self, place: Place, dim: int, chunk: Chunk, accumulators: list[Value]
    ) -> list[Value]:
        """Compute one chunk of several rows, from ``place`` on along ``dim``; nothing else is stored."""
        beside, following, old = Beside(dim, 0), [], iter(accumulators)
        for _ in range(self.schedule.beside):
            computed = self.elements.chunk(place.env, place.known, chunk, place.now, beside)
            for output, combiner in zip(self.reducers, self.combiners, strict=True):
                following.append(self._combine(output, combiner, next(old), computed))
            beside = beside.next()
        return following

    def stream(self, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute and store one chunk of a group without reductions."""
        computed = self.elements.chunk(place.env, place.known, chunk, self._now(place, carried))
        return self.store_streams(place, chunk, computed, carried)

    def stream_beside(self, place: Place, dim: int, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute and store one chunk of several rows, which are iterations of ``dim`` from ``place`` on."""
        now = self._now(place, carried)
        beside, rows = Beside(dim, 0), []
        for _ in range(self.schedule.beside):
            rows.append(self.elements.chunk(place.env, place.known, chunk, now, beside))
            beside = beside.next()
        for row, computed in enumerate(rows):
            env = place.env | {dim: self.e.add(place.env[dim], row)}
            carried = self.store_streams(place.at(env, place.known), chunk, computed, carried)
        return carried

    def store_streams(self, place: Place, chunk: Chunk, computed: Known, carried: list[Value]) -> list[Value]:
        """Store the results that are not reduced, which ``carried`` starts with."""
        stored = list(carried)
        if chunk.mask is None:
            self._prefetch(chunk)
        for number, output in enumerate(self.streams):
            if output.adds:
                stored[number] = self._add(output, stored[number], place, chunk, computed)
                continue
            value = self.elements.vector(output.result, computed)
            stored[number] = self.stores.store(output, stored[number], place.env, chunk, value)
        return stored

    def _add(self, output: Output, result: Value, place: Place, chunk: Chunk, computed: Known) -> Value:
        """Combine what was computed for ``output`` with its partial result in memory."""
        before = self.stores.start(output, result, place.env, chunk, place.slot)
        total = self._combine(output, combiner_of(output), before, computed)
        return self.stores.store(output, result, place.env, chunk, total, place.slot)

    def _prefetch(self, chunk: Chunk) -> None:
        """Ask for the cache lines that lie ahead of ``chunk``."""
        for prefetches in self._prefetches:
            element = ir.RankedTensorType(prefetches.tensor.type).element_type
            for first in range(0, self.schedule.width, max(1, LINE * 8 // element.width)):
                env = prefetches.env | {self.group.vector: self.e.add(chunk.start, first)}
                indices = [index.emit(self.e, env) for index in prefetches.access]
                self.e.prefetch(prefetches.tensor, indices, write=prefetches.write)

    def _prefetch_reads(self, place: Place, chunk: Chunk) -> None:
        """Ask for what the reductions read a little further on, within the row."""
        if not self._prefetched or chunk.mask is not None:
            return
        last = self.group.extents[self.group.vector] - self.schedule.width
        start = self.e.minimum(self.e.add(chunk.start, self.schedule.prefetch_distance), last)
        for tensor, access in self._prefetched:
            element = ir.RankedTensorType(tensor.type).element_type
            for first in range(0, self.schedule.width, max(1, LINE * 8 // element.width)):
                env = place.env | {self.group.vector: self.e.add(start, first)}
                indices = [index.emit(self.e, env) for index in access]
                self.e.prefetch(tensor, indices, write=False, once=True)

    def _now(self, place: Place, carried: list[Value]) -> dict[Value, Value]:
        """Return what the destinations of the streams are by now, which ``carried`` starts with."""
        streams = zip(self.streams, carried, strict=False)
        return {**place.now, **{output.destination: now for output, now in streams}}

    def _combine(self, output: Output, combiner: Combiner, accumulator: Value, known: Known) -> Value:
        """Combine what a reduction computed with an accumulator, fused if it is a product."""
        values = [self.elements.vector(value, known) for value in wanted_values(output)]
        if len(values) == 1 and self._fma and combiner.name == "arith.addf":
            values = _factors(values[0])
        if len(values) == 1:
            return combiner.combine(accumulator, values[0])
        if self._fma:
            return vector.FMAOp(*values, accumulator, loc=combiner.location).result
        return combiner.combine(accumulator, arith.MulFOp(*values, loc=combiner.location).result)


def _factors(value: Value) -> list[Value]:
    """Return the factors of ``value`` if it is a product, as that of a centred value with itself; else it."""
    op = definition(value)
    return list(op.operands) if op is not None and op.name == "arith.mulf" else [value]
