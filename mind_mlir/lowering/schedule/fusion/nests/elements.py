"""Emits the elements of a group: single ones for all lanes, and vectors of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.nests.plan import LiveIns, Plan, Read, Root
from mind_mlir.lowering.schedule.linalg_view.layout import reach
from mind_mlir.lowering.schedule.linalg_view.values import filler, repeat
from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, Linear
from mind_mlir.mlir.bindings import Attribute, Value, arith, ir, vector
from mind_mlir.mlir.memory import bytes_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.scalars.graph import Scalar


@dataclass(frozen=True)
class Chunk:
    """A step of the vector loop.

    Attributes:
        start: the first element.
        mask: the live lanes; None for all.
    """

    start: Index
    mask: Value | None = None


@dataclass(frozen=True)
class Known:
    """The elements computed so far, as scalars and as vectors."""

    scalars: dict[Root, Value] = dataclasses.field(default_factory=dict)
    vectors: dict[Root, Value] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Beside:
    """One of several rows side by side.

    Attributes:
        dim: The loop over the rows; where it is, is the first of them.
        row: Which one.
        read: What they have read so far.
        places: The indices that this took.
    """

    dim: int
    row: int = 0
    read: dict[tuple[Value, Access], Value] = dataclasses.field(default_factory=dict)
    places: dict[Linear, Index] = dataclasses.field(default_factory=dict)


class Elements:
    """Emits elements of one group in vectors of ``lanes``.

    Args:
        lanes: elements in a vector.
        wanted: values of the bodies, or results, that will be asked for as vectors.
        live_ins: Results that are known as single elements (see `Plan`).
        through: Whether windows of tensors are read where these lie (see `Plan`).
    """

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        lanes: int,
        wanted: Iterable[Value],
        live_ins: LiveIns,
        *,
        through: bool,
    ) -> None:
        self._e, self._lanes = emitter, lanes
        self._extents, self._dim = group.extents, group.vector
        self._plan = Plan(group.members, live_ins, over=group.over, through=through)
        self._now: Mapping[Value, Value] = {}
        self._beside: Beside | None = None
        #: Whether indices that may leave a tensor are within it, and the same ones where they are.
        self._bounded: dict[tuple[Linear, int], tuple[Value, Value]] = {}
        self._wide = self._plan.needed(group.vector, wanted) if group.vector >= 0 else set()

    def scalar(self, value: Root, known: Known) -> Value:
        """Return the one element that ``value`` is."""
        scalar = self._plan.root(value)
        if scalar in known.scalars:
            return known.scalars[scalar]
        outside = self._plan.outside[scalar]
        return known.scalars.get(outside, outside)

    def vector(self, value: Root, known: Known) -> Value:
        """Return ``value`` as a vector; what is the same in all lanes and not yet a vector becomes one."""
        scalar = self._plan.root(value)
        if scalar not in known.vectors:
            known.vectors[scalar] = self._spread(self.scalar(scalar, known))
        return known.vectors[scalar]

    def advance(self, env: Env, known: Known) -> Known:
        """Return ``known`` and all that the loops in ``env`` determine, computed once for all lanes."""
        new = Known(dict(known.scalars), dict(known.vectors))
        self._bounded = {}
        for step in self._plan.steps:
            if step not in new.scalars and self._dim not in step.axes and step.axes <= env.keys():
                new.scalars[step] = self._computed(step, env, new, None, wide=False)
                if step in self._wide:
                    new.vectors[step] = self._spread(new.scalars[step], step.value)
        return new

    def spread(self, known: Known) -> None:
        """Make vectors of what is known as single elements and needed in all lanes."""
        for value in known.scalars:
            if self._plan.root(value) in self._wide:
                self.vector(value, known)

    def chunk(
        self, env: Env, known: Known, chunk: Chunk, now: Mapping[Value, Value], beside: Beside | None = None
    ) -> Known:
        """Return what is known of ``chunk`` in the loops ``env``, given what is ``known`` outside of it.

        Tensors that results are written over are what ``now`` says.
        """
        self._now, self._beside, self._bounded = now, beside, {}
        here = env | {self._dim: chunk.start}
        new = Known(known.scalars, dict(known.vectors))
        for step in self._plan.steps:
            if self._dim in step.axes:
                new.vectors[step] = self._computed(step, here, new, chunk.mask, wide=True)
        return new

    def long_reads(self, size: int) -> list[tuple[Value, Access]]:
        """Return the tensors of more than ``size`` bytes that are read along the vector loop, and how."""
        return [
            (read.value, read.access)
            for read in self._plan.reads.values()
            if read.margin is None
            and isinstance(read.value.type, ir.RankedTensorType)
            and bytes_of(read.value) > size
            and read.access
            and read.access[-1].terms[-1:] == ((self._dim, 1),)
        ]

    def fits(self, env: Env, dim: int, rows: int) -> Value | None:
        """Emit whether no read leaves its tensor in ``rows`` iterations of ``dim``; None if none ever does.

        The first of these is in ``env``, whose innermost loop ``dim`` is.
        """
        spans: dict[tuple[tuple[tuple[int, int], ...], int], tuple[int, int]] = {}
        for read in (read for read in self._plan.reads.values() if read.margin is not None):
            for index, extent in zip(read.access, read.value.type.shape, strict=True):
                first, last = spans.get((index.terms, extent), (index.constant, index.constant))
                spans[index.terms, extent] = min(first, index.constant), max(last, index.constant)
        conditions = []
        for (terms, extent), (first, last) in spans.items():
            low, high = reach((Linear(terms),), self._extents)[0]
            end = last + sum(factor * (rows - 1) for term, factor in terms if term == dim)
            place = Linear(terms).emit(self._e, env | {self._dim: 0})
            if low + first < 0:
                conditions.append(self._e.compare("uge", place, -first))
            if high + last >= extent:
                conditions.append(self._e.compare("ult", place, max(extent - end, 0)))
        return self._e.all(conditions) if conditions else None

    def _spread(self, value: Value, constant: Attribute | None = None) -> Value:
        """Return a vector of ``value``, which is that ``constant`` if it is one of a body."""
        type_ = self._e.vector_type(self._lanes, value.type)
        return self._e.broadcast(type_, value) if constant is None else self._e.splat(type_, constant)

    def _computed(self, step: Scalar, env: Env, known: Known, mask: Value | None, *, wide: bool) -> Value:
        """Emit one element, or a vector of them where the step is ``wide``."""
        if step in self._plan.reads:
            read = self._plan.reads[step]
            return self._read(read, env, mask) if wide else self._load(read, env)
        if step.kind == "index":
            place = env[step.number]
            return self._positions(place) if wide else self._e.index(place)
        if step.kind == "constant":
            return self._e.splat(step.type, step.value)
        if wide and step.name == "tensor.extract":
            return self._extracted(step, env, known, mask)
        assert step.op is not None
        operand = self.vector if wide else self.scalar
        operands = [operand(each, known) for each in step.operands]
        return repeat(step.op, operands, (self._lanes,) if wide else ())[0]

    def _load(self, read: Read, env: Env) -> Value:
        """Emit the one element that is read."""
        number = filler(read.value)
        if number is not None:
            return number
        if not isinstance(read.value.type, ir.RankedTensorType):
            return read.value
        indices = [index.emit(self._e, env) for index in read.access]
        inside, indices = self._inside(read, indices)
        value = self._e.extract(read.value, indices)
        return value if inside is None else self._e.select(inside, value, read.margin)

    def _inside(self, read: Read, indices: list[Index]) -> tuple[Value | None, list[Index]]:
        """Return whether ``indices`` are within the tensor, None if always, and indices that always are."""
        conditions, places = [], list(indices)
        if read.margin is None:
            return None, places
        spans = zip(read.value.type.shape, reach(read.access, self._extents), strict=True)
        for number, (extent, (low, high)) in enumerate(spans):
            if low < 0 or high >= extent:
                key = read.access[number], extent
                if key not in self._bounded:
                    place = self._e.index(indices[number])
                    inside = self._e.compare("ult", place, extent)
                    self._bounded[key] = inside, self._e.select(inside, place, self._e.index(0))
                inside, places[number] = self._bounded[key]
                conditions.append(inside)
        return (self._e.all(conditions) if conditions else None), places

    def _read(self, read: Read, env: Env, mask: Value | None) -> Value:
        """Emit a vector of what is read."""
        source = read.value if read.elsewhere else self._now.get(read.value, read.value)
        if self._beside is not None:
            return self._read_beside(source, read.access, env, mask, self._beside)
        inside, indices = self._inside(read, [index.emit(self._e, env) for index in read.access])
        value = read_vector(self._e, self._lanes, source, indices, mask)
        if inside is None:
            return value
        return self._e.select(self._spread(inside), value, self._e.broadcast(value.type, read.margin))

    def _read_beside(
        self, source: Value, read: Access, env: Env, mask: Value | None, beside: Beside
    ) -> Value:
        """Emit what one of several rows reads, unless another one has read it; nothing leaves its tensor."""
        access = tuple(
            Linear(index.terms, index.constant + beside.row * dict(index.terms).get(beside.dim, 0))
            for index in read
        )
        if (source, access) not in beside.read:
            for index in access:
                if index not in beside.places:
                    beside.places[index] = index.emit(self._e, env)
            indices = [beside.places[index] for index in access]
            beside.read[source, access] = read_vector(self._e, self._lanes, source, indices, mask)
        return beside.read[source, access]

    def _positions(self, first: Index) -> Value:
        type_ = self._e.vector_type(self._lanes, self._e.index_type)
        start = self._e.broadcast(type_, self._e.index(first))
        return arith.AddIOp(start, vector.StepOp(type_).result).result

    def _extracted(self, step: Scalar, env: Env, known: Known, mask: Value | None) -> Value:
        """Emit a ``tensor.extract`` in vectors: a row where only its last index varies, the loop's."""
        e, (source, *places) = self._e, step.operands
        tensor, last = self.scalar(source, known), places[-1]
        varying = [place for place in places if self._dim in place.axes]
        if varying == [last] and (last.kind, last.number) == ("index", self._dim):
            outer = [self.scalar(each, known) for each in places[:-1]]
            return read_vector(e, self._lanes, tensor, [*outer, env[self._dim]], mask)
        first: Index = 0
        apart: Value | None = None
        for place, extent in zip(places, tensor.type.shape, strict=True):
            first = e.mul(first, extent)
            if apart is not None:
                apart = arith.MulIOp(apart, e.number(apart.type, extent)).result
            if place not in varying:
                first = e.add(first, self.scalar(place, known))
                continue
            here = self.vector(place, known)
            apart = here if apart is None else arith.AddIOp(apart, here).result
        return self._gathered(tensor, first, apart, mask)

    def _gathered(self, source: Value, first: Index, apart: Value, mask: Value | None) -> Value:
        """Emit a vector of elements that are so far ``apart`` from ``first``, counted in row-major order.

        They are counted along the last dimension, beyond its end, until it is known where the tensor lies.
        """
        e, element = self._e, source.type.element_type
        begin = [*[0] * (source.type.rank - 1), first]
        on = mask or e.number(e.vector_type(self._lanes, ir.IntegerType.get_signless(1)), 1)
        off = e.number(e.vector_type(self._lanes, element), 1)
        return vector.GatherOp(off.type, source, list(map(e.index, begin)), apart, on, off).result


def read_vector(
    emitter: Emitter, lanes: int, value: Value, indices: list[Index], mask: Value | None
) -> Value:
    """Read ``lanes`` elements of a tensor; those that are off hold one, for they are divided by too."""
    element = value.type.element_type
    return emitter.read(emitter.vector_type(lanes, element), value, indices, emitter.number(element, 1), mask)
