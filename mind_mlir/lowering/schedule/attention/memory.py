"""The memory that an attention works on."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.memory import metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.attention.elements import Elements
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
        queries: The rows of each kind of scores, ``[depth][query]``; of words, a row more, for what is noted.
        values: The values of each output in words, panel after panel, and a row for what is noted: those of a
            block of queries where an output has rows for keys.
        least: What is noted of the keys of each kind of scores.
        arrays: Scores and what becomes of them, ``[key][query]``.
        halves: What becomes of scores as bf16, ``[key][query]``, by the array that has it otherwise.
        tiles: Elements of inputs that were turned, ``[key][query]``, by number.
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
        least: What is noted of keys; none if nothing is.
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
