"""The body of a group's nest in its innermost loop: compute, store, accumulate, prefetch."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import LINE
from mind_mlir.lowering.schedule.folds.reductions import (
    Accumulators,
    Combiner,
    combined_value,
    match_combiners,
)
from mind_mlir.lowering.schedule.fusion.nests.elements import Beside, Chunk, Elements, Known, read_vector
from mind_mlir.lowering.schedule.linalg_view.values import match_multiply_add
from mind_mlir.mlir.bindings import Value, arith, ir, vector
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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


def reductions_of(views: Iterable[View]) -> list[Output]:
    """Return the results of ``views``, which reduce, as results that are given as they are found."""
    return [Output(view, number, init) for view in views for number, init in enumerate(view.inits)]


def combiner_of(output: Output) -> Combiner:
    """Return how ``output``, a reduction, is combined."""
    combiners = match_combiners(output.member.body, output.member.results)
    assert combiners is not None  # `vector_dims` is empty otherwise
    return dataclasses.replace(combiners[output.number], location=output.member.op.location)


def wanted_values(output: Output) -> list[Value]:
    """Return what is needed in vectors for ``output``: a value, or both factors of a product to be summed."""
    member = output.member
    if output.instead is not None:
        return [output.instead]
    if not member.reductions:
        return [output.result]
    value = combined_value(member.body, member.results, output.number)
    product = match_multiply_add(member.body)
    return list(value.owner.operands) if product is not None and product.floating else [value]


class Stores:
    """Reads and writes the outputs of a group.

    Args:
        registers: Registers in a vector.
    """

    def __init__(self, emitter: Emitter, group: Group, lanes: int, registers: int) -> None:
        self._e = emitter
        self._dim = group.vector
        self._lanes = lanes
        self._registers = registers

    def store(
        self,
        output: Output,
        result: Value,
        env: Env,
        chunk: Chunk,
        value: Value,
        slot: Index | None = None,
    ) -> Value:
        """Write the vector of a chunk to ``result``, to part ``slot`` of it if it holds partial results.

        Each register is stored by itself: LLVM would store those of one vector last one first, which takes up
        to twice as long where they are not aligned.
        """
        indices = self._place(output, env, chunk, slot)
        if chunk.mask is not None or self._registers == 1:
            return self._e.write(value, result, indices, chunk.mask)
        for first in range(0, self._registers * self._lanes, self._lanes):
            part = self._e.part(value, first, self._lanes)
            result = self._e.write(part, result, [*indices[:-1], self._e.add(indices[-1], first)])
        return result

    def start(self, output: Output, result: Value, env: Env, chunk: Chunk, slot: Index | None) -> Value:
        """Return what the accumulator of ``chunk`` starts from: a number, or elements of ``result``."""
        if output.start is not None and slot is None:
            width = self._registers * self._lanes
            return self._e.broadcast(self._e.vector_type(width, output.start.type), output.start)
        indices = self._place(output, env, chunk, slot)
        return read_vector(self._e, self._registers * self._lanes, result, indices, chunk.mask)

    def _place(self, output: Output, env: Env, chunk: Chunk, slot: Index | None) -> list[Index]:
        here = env | {self._dim: chunk.start}
        indices = [index.emit(self._e, here) for index in output.access]
        return indices if slot is None else [slot, *indices]

    def store_total(
        self,
        output: Output,
        result: Value,
        env: Env,
        combine: Callable[[Value, Value], Value],
        total: Value,
        slot: Index | None,
    ) -> Value:
        """Combine ``total`` with what its element of ``result`` starts from, and store it there.

        Partial results, of which this is part ``slot``, start from nothing.
        """
        indices = [index.emit(self._e, env) for index in output.access]
        if slot is not None:
            return self._e.insert(total, result, [*indices, slot])
        start = self._e.extract(result, indices) if output.start is None else output.start
        return self._e.insert(combine(start, total), result, indices)


@dataclasses.dataclass(frozen=True)
class Prefetch:
    """A tensor of which each step of the vector loop prefetches what is soon to be read or written.

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
        side: The loop of which some iterations are computed at once, from the one in ``env`` on, if any.
    """

    env: Env
    known: Known
    ranges: Mapping[int, Range]
    slot: Index | None = None
    now: Mapping[Value, Value] = dataclasses.field(default_factory=dict)
    side: int | None = None

    def at(self, env: Env, known: Known) -> Place:
        """Return the place within further loops."""
        return dataclasses.replace(self, env=env, known=known)

    def within(self, env: Env) -> Place:
        """Return the place within further loops, where nothing else is known."""
        return dataclasses.replace(self, env=env)


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
        self._destinations = [output.destination for output in self.streams]
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
        return self.combiners[number].nothing(self.e, type_)

    def accumulators(self, place: Place) -> Accumulators:
        """Return an accumulator for each reducer, of each of the rows at ``place``."""
        rows = self.rows_at(place)
        neutral = [self.neutral(number) for number in range(len(self.reducers))]
        return Accumulators(self.e, self.combiners * rows, neutral * rows)

    def rows(self, place: Place, chunk: Chunk, carried: Sequence[Value]) -> Iterator[tuple[int, Known]]:
        """Compute one chunk of each of the rows at ``place``; yield their numbers and what is known then."""
        now = {**place.now, **dict(zip(self._destinations, carried, strict=False))}
        beside = None if place.side is None else Beside(place.side, 0)
        for row in range(self.rows_at(place)):
            yield row, self.elements.chunk(place.env, place.known, chunk, now, beside)
            beside = None if beside is None else beside.next()

    def rows_at(self, place: Place) -> int:
        """Return how many rows are computed at once at ``place``."""
        return 1 if place.side is None else self.schedule.beside

    def env_of(self, place: Place, row: int) -> Env:
        """Return the loops around the vector loop for one of the rows at ``place``."""
        if place.side is None:
            return place.env
        return place.env | {place.side: self.e.add(place.env[place.side], row)}

    def stream(self, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute and store one chunk of a group without reductions."""
        for row, computed in list(self.rows(place, chunk, carried)):
            here = place.at(self.env_of(place, row), place.known)
            carried = self.store_streams(here, chunk, computed, carried)
        return carried

    def accumulate(self, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Compute one chunk and combine its reductions with the accumulators, which follow the streams.

        Where several rows are computed at once, nothing is stored but what they add up to.
        """
        count = len(self.streams)
        following, accumulators = carried[:count], iter(carried[count:])
        for _, computed in self.rows(place, chunk, carried):
            if place.side is None:
                following = self.store_streams(place, chunk, computed, following)
                self._prefetch_reads(place, chunk)
            for output, combiner in zip(self.reducers, self.combiners, strict=True):
                following.append(self._combine(output, combiner, next(accumulators), computed))
        return following

    def accumulate_alone(self, place: Place, chunk: Chunk, carried: list[Value]) -> list[Value]:
        """Do the same along a reduced vector loop: lanes that are off add nothing to the accumulators."""
        following, count = self.accumulate(place, chunk, carried), len(self.streams)
        if chunk.mask is None:
            return following
        pairs = zip(following[count:], carried[count:], strict=True)
        return [*following[:count], *(self.e.select(chunk.mask, new, old) for new, old in pairs)]

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
        """Prefetch the cache lines that lie ahead of ``chunk``."""
        for each in self._prefetches:
            self._prefetch_lines(each.tensor, each.access, each.env, chunk.start, write=each.write)

    def _prefetch_reads(self, place: Place, chunk: Chunk) -> None:
        """Prefetch what the reductions read a little further on, within the row."""
        if not self._prefetched or chunk.mask is not None:
            return
        last = self.group.extents[self.group.vector] - self.schedule.width
        start = self.e.minimum(self.e.add(chunk.start, self.schedule.prefetch_distance), last)
        for tensor, access in self._prefetched:
            self._prefetch_lines(tensor, access, place.env, start, write=False, once=True)

    def _prefetch_lines(
        self, tensor: Value, access: Access, env: Env, start: Index, *, write: bool, once: bool = False
    ) -> None:
        """Prefetch the cache lines of ``tensor`` that a step of the vector loop from ``start`` on needs."""
        element = ir.RankedTensorType(tensor.type).element_type
        for first in range(0, self.schedule.width, max(1, LINE * 8 // element.width)):
            here = env | {self.group.vector: self.e.add(start, first)}
            indices = [index.emit(self.e, here) for index in access]
            self.e.prefetch(tensor, indices, write=write, once=once)

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
