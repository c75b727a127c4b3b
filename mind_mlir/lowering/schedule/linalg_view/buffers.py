"""The operands of linalg operations on memory, and vectors of them along their last dimension."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Value, ir, memref, vector
from mind_mlir.mlir.memory import metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env
    from mind_mlir.mlir.bindings import Type


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
    def of(value: Value, access: Access | None = None) -> Buffer:
        """Emit what says where ``value`` lies, whose dimensions are loops in their order by default."""
        base, first, steps = metadata_of(value)
        if access is None:
            return Buffer(value, base, first, dict(enumerate(steps)), 0, ())
        strides: dict[int, int] = {}
        constant = 0
        for index, step in zip(access, steps, strict=True):
            constant += index.constant * step
            for dim, factor in index.terms:
                strides[dim] = strides.get(dim, 0) + factor * step
        return Buffer(value, base, first, strides, constant, access)

    @property
    def element(self) -> Type:
        """The type of its elements."""
        return self.value.type.element_type

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


class Lanes:
    """Loads and stores vectors.

    Attributes:
        e: The emitter.
        count: Elements in a vector.
        vectors: Vectors that are computed together: those of a row of a thread's memory.
        element: The type of accumulators.
    """

    def __init__(self, emitter: Emitter, count: int, vectors: int, element: Type) -> None:
        self.e = emitter
        self.count = count
        self.vectors = vectors
        self.element = element

    def type(self, element: Type) -> Type:
        """Return the type of a vector of ``element``."""
        return self.e.vector_type(self.count, element)

    def splat(self, number: float) -> Value:
        """Return a vector of accumulators that are all ``number``."""
        return self.e.number(self.type(self.element), number)

    def broadcast(self, value: Value) -> Value:
        """Emit a vector of accumulators that are all ``value``."""
        return self.e.broadcast(self.type(self.element), value)

    def load(self, source: Value, indices: Sequence[Index], lanes: int = 0) -> Value:
        """Emit a load of a vector of a buffer, or of so many elements, all of which are there."""
        type_ = self.e.vector_type(lanes or self.count, source.type.element_type)
        return vector.LoadOp(type_, source, [self.e.index(each) for each in indices]).result

    def load_live(
        self, source: Value, indices: Sequence[Index], live: Index, *, offset: int = 0, lanes: int = 0
    ) -> Value:
        """Emit a load from ``offset`` behind ``indices`` on, of which ``live`` elements are there."""
        type_ = self.e.vector_type(lanes or self.count, source.type.element_type)
        mask = self._mask(live, lanes)
        places = [self.e.index(each) for each in (*indices[:-1], self.e.add(indices[-1], offset))]
        return vector.MaskedLoadOp(type_, source, places, mask, self.e.number(type_, 0)).result

    def store(self, value: Value, target: Value, indices: Sequence[Index]) -> None:
        """Emit a store of a vector to a buffer, all of which is there."""
        vector.StoreOp(value, target, [self.e.index(each) for each in indices])

    def element_at(self, source: Value, indices: Sequence[Index]) -> Value:
        """Emit a load of one element of a buffer."""
        return memref.LoadOp(source, [self.e.index(each) for each in indices]).result

    def row(self, memory: Value, row: Index) -> list[Value]:
        """Emit loads of a row of a thread's memory."""
        return [self.load(memory, [row, c * self.count]) for c in range(self.vectors)]

    def store_row(self, values: Sequence[Value], memory: Value, row: Index) -> None:
        """Emit stores of a row of a thread's memory, whose elements are accumulators."""
        for c, value in enumerate(values):
            self.store(self.e.cast(value, self.element), memory, [row, c * self.count])

    def read(self, buffer: Buffer, env: Env, live: int) -> Value:
        """Emit accumulators of a vector of ``buffer``, of whose row ``live`` elements are left."""
        indices = buffer.indices(self.e, env)
        whole = live >= self.count
        value = self.load(buffer.value, indices) if whole else self.load_live(buffer.value, indices, live)
        return self.e.cast(value, self.element)

    def write(self, value: Value, buffer: Buffer, env: Env, live: int) -> None:
        """Emit a store of accumulators to the vector of ``buffer`` at ``env``."""
        indices = buffer.indices(self.e, env)
        value = self.e.cast(value, buffer.element)
        if live >= self.count:
            self.store(value, buffer.value, indices)
            return
        mask = self._mask(live)
        vector.MaskedStoreOp(buffer.value, [self.e.index(each) for each in indices], mask, value)

    def _mask(self, live: Index, lanes: int = 0) -> Value:
        type_ = ir.VectorType.get([lanes or self.count], ir.IntegerType.get_signless(1))
        return vector.CreateMaskOp(type_, [self.e.index(live)]).result
