"""Emits the elements of a group: single ones for all lanes, and vectors of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import arith, ir, vector
from mind_mlir.lowering.schedule.fusion.plan import Plan, Read
from mind_mlir.lowering.schedule.reading.body import repeat
from mind_mlir.lowering.schedule.reading.values import filler

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.bindings import Attribute, Operation, Type, Value
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.group import Group
    from mind_mlir.lowering.schedule.fusion.plan import Root, Step
    from mind_mlir.lowering.schedule.reading.view import Env


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A step of the vector loop.

    Attributes:
        start: the first element.
        mask: the live lanes; None for all.
    """

    start: Index
    mask: Value | None = None


@dataclasses.dataclass(frozen=True)
class Known:
    """The elements computed so far, as scalars and as vectors."""

    scalars: dict[Root, Value] = dataclasses.field(default_factory=dict)
    vectors: dict[Root, Value] = dataclasses.field(default_factory=dict)


class Elements:
    """Emits elements of one group in vectors of ``lanes``.

    Args:
        emitter: where to emit.
        group: what to compute.
        lanes: elements in a vector.
        wanted: values of the bodies, or results, that will be asked for as vectors.
        given: Results that are known as single elements (see `Plan`).
    """

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        lanes: int,
        wanted: Iterable[Value],
        given: Mapping[Value, frozenset[int]] | None = None,
    ) -> None:
        self._e = emitter
        self._dim = group.vector
        self._lanes = lanes
        self._plan = Plan(group, given or {})
        self._now: Mapping[Value, Value] = {}
        self._wide = self._plan.needed(group.vector, wanted) if group.vector >= 0 else set()

    def scalar(self, value: Value, known: Known) -> Value:
        """Return the one element that ``value`` is."""
        return self._scalar(self._plan.root(value), known)

    def vector(self, value: Value, known: Known) -> Value:
        """Return ``value`` as a vector."""
        return self._vector(self._plan.root(value), known)

    def advance(self, env: Env, known: Known) -> Known:
        """Return ``known`` and all that the loops in ``env`` determine, computed once for all lanes."""
        new = Known(dict(known.scalars), dict(known.vectors))
        for step in self._plan.steps:
            if step.root not in new.scalars and self._dim not in step.dims and step.dims <= env.keys():
                new.scalars[step.root] = self._single(step, env, new)
                if step.root in self._wide:
                    new.vectors[step.root] = self._spread(step, new.scalars[step.root])
        return new

    def spread(self, known: Known) -> None:
        """Make vectors of what is known as single elements and needed in all lanes."""
        for root, scalar in known.scalars.items():
            if root in self._wide and root not in known.vectors:
                known.vectors[root] = self._e.broadcast(self._e.vector_type(self._lanes, scalar.type), scalar)

    def chunk(self, env: Env, known: Known, chunk: Chunk, now: Mapping[Value, Value]) -> Known:
        """Return what is known of ``chunk``.

        Args:
            env: All loops but the vector loop.
            known: What is known outside of the vector loop.
            chunk: Where the vectors are.
            now: Tensors that results are written over, and what they are by now.
        """
        self._now = now
        here = env | {self._dim: chunk.start}
        new = Known(known.scalars, dict(known.vectors))
        for step in self._plan.steps:
            if self._dim in step.dims:
                new.vectors[step.root] = self._many(step, here, new, chunk.mask)
        return new

    def _scalar(self, root: Root, known: Known) -> Value:
        return known.scalars.get(root, root)

    def _vector(self, root: Root, known: Known) -> Value:
        """Return the vector of ``root``; what is the same in all lanes and not yet a vector becomes one."""
        if root not in known.vectors:
            scalar = self._scalar(root, known)
            known.vectors[root] = self._e.broadcast(self._e.vector_type(self._lanes, scalar.type), scalar)
        return known.vectors[root]

    # One element.

    def _single(self, step: Step, env: Env, known: Known) -> Value:
        root, op = step.root, step.op
        if isinstance(root, Read):
            return self._load(root, env)
        assert op is not None
        if op.name == "linalg.index":
            return self._e.index(env[ir.IntegerAttr(op.attributes["dim"]).value])
        if op.name == "arith.constant":
            return self._e.splat(root.type, op.attributes["value"])
        operands = [self._scalar(self._plan.root(operand), known) for operand in op.operands]
        return repeat(op, operands, ())[root.result_number]

    def _load(self, read: Read, env: Env) -> Value:
        number = filler(read.value)
        if number is not None:
            return number
        if not isinstance(read.value.type, ir.RankedTensorType):
            return read.value
        return self._e.extract(read.value, [index.emit(self._e, env) for index in read.access])

    def _spread(self, step: Step, scalar: Value) -> Value:
        type_ = self._e.vector_type(self._lanes, scalar.type)
        if step.op is not None and step.op.name == "arith.constant":
            return self._e.splat(type_, step.op.attributes["value"])
        return self._e.broadcast(type_, scalar)

    # One vector.

    def _many(self, step: Step, env: Env, known: Known, mask: Value | None) -> Value:
        root, op = step.root, step.op
        if isinstance(root, Read):
            source = self._now.get(root.value, root.value)
            indices = [index.emit(self._e, env) for index in root.access]
            return read_vector(self._e, self._lanes, source, indices, mask)
        assert op is not None
        if op.name == "linalg.index":
            return self._positions(env[self._dim])
        if op.name == "tensor.extract":
            return self._row(op, env, known, mask)
        operands = [self._vector(self._plan.root(operand), known) for operand in op.operands]
        return repeat(op, operands, (self._lanes,))[root.result_number]

    def _positions(self, first: Index) -> Value:
        type_ = self._e.vector_type(self._lanes, self._e.index_type)
        start = self._e.broadcast(type_, self._e.index(first))
        return arith.AddIOp(start, vector.StepOp(type_).result).result

    def _row(self, op: Operation, env: Env, known: Known, mask: Value | None) -> Value:
        """Emit a ``tensor.extract`` whose last index alone depends on the vector loop, and is it."""
        source, *indices = op.operands
        outer: list[Index] = [self._scalar(self._plan.root(index), known) for index in indices[:-1]]
        return read_vector(self._e, self._lanes, source, [*outer, env[self._dim]], mask)


def read_vector(
    emitter: Emitter, lanes: int, value: Value, indices: list[Index], mask: Value | None
) -> Value:
    """Read ``lanes`` elements of a tensor; those that are off hold one."""
    element = ir.RankedTensorType(value.type).element_type
    padding = emitter.splat(element, _one(element))
    return emitter.read(emitter.vector_type(lanes, element), value, indices, padding, mask)


def _one(element: Type) -> Attribute:
    """Return one: what lanes that are off hold, for they are divided by too."""
    if isinstance(element, ir.IntegerType):
        return ir.IntegerAttr.get(element, 1)
    return ir.FloatAttr.get(element, 1.0)
