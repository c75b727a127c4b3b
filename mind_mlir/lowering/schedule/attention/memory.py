"""The memory that an attention works on, and elements of its graph: scalars, or vectors along queries."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.nodes import Node, ordered
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Operation, Value, arith, ir, memref, vector
from mind_mlir.mlir.memory import metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env


@dataclasses.dataclass(frozen=True)
class Buffer:
    """An operand in memory.

    Attributes:
        value: The whole of it.
        base: The pointer to its elements, a memref of rank 0.
        first: Where it starts there, in elements.
        strides: By how many elements each dimension moves in it.
        constant: Where the element at 0 in each dimension is, from ``first`` on.
        access: How it is indexed.
    """

    value: Value
    base: Value
    first: Index
    strides: Mapping[int, int]
    constant: int
    access: Access

    @staticmethod
    def of(value: Value, access: Access) -> Buffer:
        """Emit what says where ``value`` lies."""
        base, first, steps = metadata_of(value)
        strides: dict[int, int] = {}
        constant = 0
        for index, step in zip(access, steps, strict=True):
            constant += index.constant * step
            for dim, factor in index.terms:
                strides[dim] = strides.get(dim, 0) + factor * step
        return Buffer(value, base, first, strides, constant, access)

    def at(self, emitter: Emitter, env: Env) -> Index:
        """Return where the element is, other dimensions than those of ``env`` being 0."""
        place = emitter.add(self.first, self.constant)
        for dim, step in self.strides.items():
            if dim in env:
                place = emitter.add(place, emitter.mul(env[dim], step))
        return place

    def indices(self, emitter: Emitter, env: Env) -> list[Index]:
        """Return the indices of the element at ``env``."""
        return [index.emit(emitter, env) for index in self.access]


@dataclasses.dataclass(frozen=True)
class Scratch:
    """Memory of a thread.

    Attributes:
        queries: The rows of each kind of scores, ``[depth][query]``; of words, a row more, for packing info.
        values: The values of each output in words, panel after panel, and a row for packing info: those of a
            block of queries where an output has rows for keys.
        least: Packing info of the keys of each kind of scores.
        arrays: Scores and what becomes of them, ``[key][query]``.
        halves: What becomes of scores as bf16, ``[key][query]``, by the array that has it otherwise.
        tiles: Elements of inputs that were transposed, ``[key][query]``, by number.
        row: A number for each query.
        greatest: The greatest score of each query so far.
        sums: The sum of each query so far.
        outputs: The sums of outputs that are rounded when they are complete, ``[query][column]``, by number.
    """

    queries: list[Value]
    values: list[Value]
    least: Value
    arrays: list[Value]
    halves: dict[int, Value]
    tiles: dict[int, Value]
    row: Value
    greatest: Value
    sums: Value
    outputs: dict[int, Value]


@dataclasses.dataclass(frozen=True)
class Shared:
    """Memory that all threads see, for some heads, one after the other.

    Attributes:
        arrays: Arrays of `Scratch`, by number.
        values: Values of it in words, by number.
        least: Packing info of keys; none if nothing is.
    """

    arrays: dict[int, Value] = dataclasses.field(default_factory=dict)
    values: dict[int, Value] = dataclasses.field(default_factory=dict)
    least: Value | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """A block of queries.

    Attributes:
        env: The dimensions that are known; of the queries, the first one.
        live: How many queries there are.
        elements: What is known of them.
        own: Memory.
    """

    env: Env
    live: Index
    elements: Elements
    own: Scratch


def base_of(scratch: Value) -> Value:
    """Emit the pointer to the elements of memory of a thread."""
    return metadata_of(scratch)[0]


def start_of(scratch: Value) -> Index:
    """Emit where memory begins behind that pointer: other heads may come first."""
    return metadata_of(scratch)[1]


def extents_of(op: Operation, accesses: Sequence[Access]) -> list[int]:
    """Return the extent of each dimension of a marked operation."""
    found: dict[int, int] = {}
    for operand, access in zip(op.operands, accesses, strict=True):
        for extent, index in zip(operand.type.shape, access, strict=True):
            if index.dim is not None:
                found[index.dim] = extent
    dims = len(ir.ArrayAttr(op.attributes["iterator_types"]))
    return [found.get(dim, 1) for dim in range(dims)]  # nobody has to index a dimension of one


class Elements:
    """The elements that are known at a place, in the loops around it too.

    What does not depend on the query is a scalar, all else a vector for each register of queries.

    Args:
        vectors: Vectors of queries.
        row: The dimension of the queries.
    """

    def __init__(self, emitter: Emitter, lanes: int, vectors: int, row: int) -> None:
        self._e = emitter
        self._lanes = lanes
        self._vectors = vectors
        self._row = row
        self._scalars: dict[Node, Value] = {}
        self._several: dict[Node, list[Value]] = {}
        self._env: dict[int, Index] = {}
        self._read: Callable[[Node], Value | list[Value]] | None = None

    def inside(
        self, env: Mapping[int, Index], read: Callable[[Node], Value | list[Value]] | None = None
    ) -> Elements:
        """Return the elements at a place within: where dimensions are known, and ``read`` reads inputs."""
        inner = Elements(self._e, self._lanes, self._vectors, self._row)
        inner._scalars, inner._several = dict(self._scalars), dict(self._several)
        inner._env = {**self._env, **env}
        inner._read = read or self._read
        return inner

    def know(self, node: Node, vectors: Sequence[Value]) -> None:
        """Let ``node`` be ``vectors``."""
        self._several[node] = list(vectors)

    def compute(self, roots: Iterable[Node], stop: Collection[Node], without: int) -> None:
        """Emit what ``roots`` are computed from down to ``stop``, where it does not depend on ``without``.

        Reductions have to be known.
        """
        for node in ordered(roots, stop=stop):
            if without not in node.dims and node not in stop and node.kind != "row":
                self.vectors(node)

    def vectors(self, node: Node) -> list[Value]:
        """Return ``node`` as vectors; emits what it is computed from."""
        if node not in self._several:
            self._several[node] = self._vectors_of(node)
        return self._several[node]

    def _vectors_of(self, node: Node) -> list[Value]:
        type_ = self._e.vector_type(self._lanes, node.type)
        if node.kind == "constant":
            return [self._e.splat(type_, node.value)] * self._vectors
        if self._is_scalar(node):
            return [self._e.broadcast(type_, self.scalar(node))] * self._vectors
        if node.kind == "index":
            return [self._positions(type_, number) for number in range(self._vectors)]
        if node.kind == "input":
            assert self._read is not None
            found = self._read(node)
            return found if isinstance(found, list) else [found] * self._vectors
        assert node.op is not None, f"{node.kind} is not known yet"
        operands = [self.vectors(operand) for operand in node.operands]
        return [
            repeat(node.op, [operand[number] for operand in operands], (self._lanes,))[0]
            for number in range(self._vectors)
        ]

    def _is_scalar(self, node: Node) -> bool:
        return self._row not in node.dims and not node.scored

    def scalar(self, node: Node) -> Value:
        """Return ``node``, which is the same for all queries, as a scalar."""
        if node not in self._scalars:
            self._scalars[node] = self._scalar_of(node)
        return self._scalars[node]

    def _scalar_of(self, node: Node) -> Value:
        if node.kind == "constant":
            return self._e.constant(node.type, node.value)
        if node.kind == "index":
            return self._e.index(self._env[node.number])
        if node.kind == "input":
            assert self._read is not None
            found = self._read(node)
            assert not isinstance(found, list)
            return found
        assert node.op is not None
        return repeat(node.op, [self.scalar(operand) for operand in node.operands], ())[0]

    def _positions(self, type_: ir.Type, number: int) -> Value:
        first = self._e.add(self._env[self._row], number * self._lanes)
        start = self._e.broadcast(type_, self._e.index(first))
        return arith.AddIOp(start, vector.StepOp(type_).result).result


def load(emitter: Emitter, lanes: int, source: Value, indices: Sequence[Index]) -> Value:
    """Emit a load of ``lanes`` elements of a buffer, all of which are there."""
    type_ = emitter.vector_type(lanes, source.type.element_type)
    return vector.LoadOp(type_, source, [emitter.index(each) for each in indices]).result


def store(emitter: Emitter, value: Value, target: Value, indices: Sequence[Index]) -> None:
    """Emit a store of a vector to a buffer, all of which is there."""
    vector.StoreOp(value, target, [emitter.index(each) for each in indices])


def element(emitter: Emitter, source: Value, indices: Sequence[Index]) -> Value:
    """Emit a load of one element of a buffer."""
    return memref.LoadOp(source, [emitter.index(each) for each in indices]).result
