"""The operands of linalg operations on memory, and vectors of them along their last dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Value, memref, vector
from mind_mlir.mlir.memory import metadata_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env
    from mind_mlir.mlir.bindings import Type


@dataclass(frozen=True)
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

    def load(
        self, source: Value, indices: Sequence[Index], live: Index | None = None, lanes: int = 0
    ) -> Value:
        """Emit a load of a vector of a buffer, or of so many lanes; of these, ``live`` are there if given."""
        lanes = lanes or self.count
        type_ = self.e.vector_type(lanes, source.type.element_type)
        mask = None if live is None else self.e.mask(lanes, live)
        places = [self.e.index(each) for each in indices]
        if mask is None:
            return vector.LoadOp(type_, source, places).result
        return vector.MaskedLoadOp(type_, source, places, mask, self.e.number(type_, 0)).result

    def store(self, value: Value, target: Value, indices: Sequence[Index], live: Index | None = None) -> None:
        """Emit a store of a vector to a buffer, of which ``live`` elements are there: all if that is None."""
        mask = None if live is None else self.e.mask(self.count, live)
        places = [self.e.index(each) for each in indices]
        if mask is None:
            vector.StoreOp(value, target, places)
        else:
            vector.MaskedStoreOp(target, places, mask, value)

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

    def read(self, buffer: Buffer, env: Env, live: Index) -> Value:
        """Emit accumulators of a vector of ``buffer``, of whose row ``live`` elements are left."""
        return self.e.cast(self.load(buffer.value, buffer.indices(self.e, env), live), self.element)

    def write(self, value: Value, buffer: Buffer, env: Env, live: Index) -> None:
        """Emit a store of accumulators to the vector of ``buffer`` at ``env``."""
        indices = buffer.indices(self.e, env)
        self.store(self.e.cast(value, buffer.element), buffer.value, indices, live)
