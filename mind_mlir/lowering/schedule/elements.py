"""Emits the bodies of a group for one chunk of vectors: reads, arithmetic and writes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.bindings import arith, ir, vector
from mind_mlir.lowering.schedule.body import repeat
from mind_mlir.lowering.schedule.combiner import combined_value
from mind_mlir.lowering.schedule.values import filler

if TYPE_CHECKING:
    from mind_mlir.bindings import Operation, Type, Value
    from mind_mlir.lowering.schedule.combiner import Combiner
    from mind_mlir.lowering.schedule.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.group import Group
    from mind_mlir.lowering.schedule.nest import Output
    from mind_mlir.lowering.schedule.view import Access, Env, View

#: Operands already read, as vectors: by operand and access.
Cache: TypeAlias = "dict[tuple[Value, Access], Value]"


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Vectors at consecutive places of the vector dimension.

    Attributes:
        start: the first element.
        vectors: how many vectors.
        mask: the live lanes of the last vector; None for all.
    """

    start: Index
    vectors: int
    mask: Value | None

    def mask_of(self, v: int) -> Value | None:
        """Return the mask of vector ``v``."""
        return self.mask if v == self.vectors - 1 else None


@dataclasses.dataclass(frozen=True)
class Computed:
    """What a chunk leaves behind: the written tensors, and the values of the bodies for each vector."""

    streams: list[Value]
    values: list[dict[Value, Value]]


class Elements:
    """Emits elements of one group in vectors of ``lanes``."""

    def __init__(self, emitter: Emitter, group: Group, lanes: int) -> None:
        self._e = emitter
        self._g = group
        self._lanes = lanes
        self._shape = (lanes,)
        self._reads = self._distinct_reads()

    def _distinct_reads(self) -> list[tuple[Value, Access, frozenset[int]]]:
        seen: dict[tuple[Value, Access], frozenset[int]] = {}
        for view in self._g.members:
            for number, value in enumerate(view.operands):
                if view.used(number) and not self._internal(view, number):
                    dims = frozenset(dim for index in view.accesses[number] for dim, _ in index.terms)
                    if filler(value) is not None:
                        dims = frozenset()
                    seen[value, view.accesses[number]] = dims
        return [(value, access, dims) for (value, access), dims in seen.items()]

    def _internal(self, view: View, number: int) -> bool:
        """Return whether an operand is another member's result, or the accumulator of a reduction."""
        if view.reductions and number >= len(view.inputs):
            return True
        return view.operands[number] in self._g.produced

    def read_invariant(self, env: Env, cache: Cache) -> Cache:
        """Return ``cache`` and all operands that the dimensions in ``env`` determine, as vectors."""
        known = dict(cache)
        for value, access, dims in self._reads:
            if self._g.vector not in dims and dims <= env.keys() and (value, access) not in known:
                scalar = self._scalar(value, access, env)
                known[value, access] = self._e.broadcast(
                    self._e.vector_type(self._lanes, scalar.type), scalar
                )
        return known

    def _scalar(self, value: Value, access: Access, env: Env) -> Value:
        filled = filler(value)
        if filled is not None:
            return filled
        if not isinstance(value.type, ir.RankedTensorType):
            return value
        return self._e.extract(value, [index.emit(self._e, env) for index in access])

    def emit(
        self, env: Env, cache: Cache, chunk: Chunk, streams: list[Output], tensors: list[Value]
    ) -> Computed:
        """Emit all bodies for ``chunk`` and write the outputs ``streams`` to ``tensors``.

        Args:
            env: values of all dimensions but the vector dimension.
            cache: operands read before.
            chunk: where.
            streams: the results to be written.
            tensors: where they are written to, one each.
        """
        computed: list[dict[Value, Value]] = []
        for v in range(chunk.vectors):
            here = env | {self._g.vector: self._e.add(chunk.start, v * self._lanes)}
            values = self._vector(here, cache, chunk.mask_of(v))
            computed.append(values)
            for place, output in enumerate(streams):
                value = values[output.member.op.results[output.number]]
                access = output.member.accesses[len(output.member.inputs) + output.number]
                indices = [index.emit(self._e, here) for index in access]
                tensors = [
                    self._e.write(value, t, indices, chunk.mask_of(v)) if number == place else t
                    for number, t in enumerate(tensors)
                ]
        return Computed(tensors, computed)

    def _vector(self, env: Env, cache: Cache, mask: Value | None) -> dict[Value, Value]:
        """Compute all members for one vector; return the vector of each body value and member's result."""
        known = dict(cache)
        for value, access, dims in self._reads:
            if self._g.vector in dims:
                known[value, access] = self._read(value, access, env, mask)
        values: dict[Value, Value] = {}
        for view in self._g.members:
            for number, argument in enumerate(view.body.arguments):
                if not view.used(number):
                    continue
                operand = view.operands[number]
                if operand in values:
                    values[argument] = values[operand]
                elif not (view.reductions and number >= len(view.inputs)):
                    values[argument] = known[operand, view.accesses[number]]
            self._body(view, env, values)
        return values

    def _body(self, view: View, env: Env, values: dict[Value, Value]) -> None:
        skipped = None
        if view.reductions:  # the combination itself happens on the accumulators
            combined = combined_value(view.body)
            skipped = view.body.operations[len(view.body.operations) - 1].operation.operands[0].owner
            if isinstance(combined, ir.BlockArgument):
                return
        for op in view.body.operations:
            operation = op.operation
            if operation.name == "linalg.yield":
                if not view.reductions:
                    for result, value in zip(view.op.results, operation.operands, strict=True):
                        values[result] = self.value(value, values)
            elif skipped is None or operation != skipped:
                self._operation(operation, env, values)

    def _operation(self, op: Operation, env: Env, values: dict[Value, Value]) -> None:
        if op.name == "arith.constant":
            type_ = self._e.vector_type(self._lanes, op.result.type)
            values[op.result] = self._e.splat(type_, op.attributes["value"])
        elif op.name == "linalg.index":
            values[op.result] = self._position(ir.IntegerAttr(op.attributes["dim"]).value, env)
        else:
            operands = [self.value(operand, values) for operand in op.operands]
            values.update(zip(op.results, repeat(op, operands, self._shape), strict=True))

    def value(self, value: Value, values: dict[Value, Value]) -> Value:
        """Return the vector of a body value; one from outside of the body is the same in all lanes."""
        if value not in values:
            values[value] = self._e.broadcast(self._e.vector_type(self._lanes, value.type), value)
        return values[value]

    def _position(self, dim: int, env: Env) -> Value:
        type_ = self._e.vector_type(self._lanes, self._e.index_type)
        first = self._e.broadcast(type_, self._e.index(env[dim]))
        if dim != self._g.vector:
            return first
        return arith.AddIOp(first, vector.StepOp(type_).result).result

    def _read(self, value: Value, access: Access, env: Env, mask: Value | None) -> Value:
        element = ir.RankedTensorType(value.type).element_type
        indices = [index.emit(self._e, env) for index in access]
        return self._e.read(
            self._e.vector_type(self._lanes, element),
            value,
            indices,
            self._e.splat(element, _one(element)),
            mask,
        )

    # Reductions.

    def start(self, output: Output, result: Value, env: Env, chunk: Chunk, v: int) -> Value:
        """Return what the accumulators of vector ``v`` start from: the elements of ``result``."""
        if output.start is not None:
            return self._e.broadcast(self._e.vector_type(self._lanes, output.start.type), output.start)
        here = env | {self._g.vector: self._e.add(chunk.start, v * self._lanes)}
        return self._read(result, output.member.accesses[-1], here, chunk.mask_of(v))

    def store(
        self, output: Output, result: Value, env: Env, chunk: Chunk, accumulators: list[Value]
    ) -> Value:
        """Write the accumulators of a chunk to ``result``."""
        for v, value in enumerate(accumulators):
            here = env | {self._g.vector: self._e.add(chunk.start, v * self._lanes)}
            indices = [index.emit(self._e, here) for index in output.member.accesses[-1]]
            result = self._e.write(value, result, indices, chunk.mask_of(v))
        return result

    def store_total(self, output: Output, result: Value, env: Env, combiner: Combiner, total: Value) -> Value:
        """Combine ``total`` with the element of ``result`` that it belongs to."""
        indices = [index.emit(self._e, env) for index in output.member.accesses[-1]]
        start = self._e.extract(result, indices) if output.start is None else output.start
        return self._e.insert(combiner.combine(start, total), result, indices)


def _one(element: Type) -> object:
    """Return one: what dead lanes read, for they are divided by too."""
    if isinstance(element, ir.IntegerType):
        return ir.IntegerAttr.get(element, 1)
    return ir.FloatAttr.get(element, 1.0)
