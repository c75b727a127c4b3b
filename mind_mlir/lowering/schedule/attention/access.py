"""Vectors of tensors on their way to an attention and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.elements import load, store
from mind_mlir.lowering.schedule.attention.marked import Marked, read
from mind_mlir.lowering.schedule.attention.memory import Buffer, Place, extents_of
from mind_mlir.lowering.schedule.attention.sources import batches_of
from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index, zero
from mind_mlir.mlir.bindings import Operation, Type, Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.contraction.kernels.library import Library
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env


class Accesses:
    """Reads and writes the operands of one attention."""

    def __init__(self, op: Operation, accesses: Sequence[Access], emitter: Emitter, library: Library) -> None:
        self._e = emitter
        self._library = library
        self._m: Marked = read(op, accesses)
        self._p = self._m.program
        self._s = self._m.schedule
        self._buffers = [
            Buffer.of(value, access) for value, access in zip(op.operands, accesses, strict=True)
        ]
        self._extents = extents_of(op, accesses)
        self._row, self._column = self._p.row, self._p.column
        self._element: Type = self._p.scores[0].type
        self._stored: Type = op.operands[self._m.values[0]].type.element_type
        self._bit = ir.IntegerType.get_signless(1)
        self._word = ir.IntegerType.get_signless(32)
        self._words = emitter.vector_type(self._s.lanes, self._word)
        #: Words of two keys of a value, which fill a column of its panel.
        self._value_words = -(-self._extents[self._column] // 2)
        self._queries = self._extents[self._row]
        self._keys = self._extents[self._column]
        self._depths = [self._row + 2 + number for number in range(len(self._m.scores))]
        self._widths = [self._buffers[number].access[-1].dim or 0 for number in self._m.outputs]

        #: The batches of tensors of elements, and those that these are summed over.
        kept = [self._buffers[number].access for number in self._m.kept]
        self._own = batches_of(kept[0], self._row) if kept else ()
        self._summed = tuple(
            dim for dim in range(self._row) if kept and dim not in self._own and self._extents[dim] > 1
        )

    def _places_of(self, nodes: Sequence[Node]) -> list[int]:
        """Return the arrays where nodes that passes compute are in the end."""
        places = {node: place for place, node in enumerate(self._p.scores)}
        places |= {node: place for stage in self._p.stages for place, node in stage.stores}
        return [places[node] for node in nodes]

    def _words_of(self, number: int) -> int:
        """Return the words of a column of the values of an output: of two keys, or of two queries."""
        return self._value_words if self._p.outputs[number].by_row else self._s.queries // 2

    def _word_rows(self, number: int) -> int:
        """Return the rows of these words: panel after panel, and one for what is noted."""
        panels = -(-self._extents[self._widths[number]] // (self._s.out_vectors * self._s.lanes))
        return panels * self._words_of(number) + 1

    def _input(self, node: Node) -> int:
        """Return the number of the operand that ``node`` is an element of."""
        return self._m.inputs[node.number]

    def _splat(self, number: float) -> Value:
        type_ = self._e.vector_type(self._s.lanes, self._element)
        return self._e.splat(type_, ir.FloatAttr.get(self._element, number))

    def _load_masked(
        self, source: Value, indices: Sequence[Index], offset: int, live: Index, lanes: int = 0
    ) -> Value:
        e = self._e
        lanes = lanes or self._s.lanes
        type_ = e.vector_type(lanes, source.type.element_type)
        mask = vector.CreateMaskOp(ir.VectorType.get([lanes], self._bit), [e.index(live)]).result
        places = [e.index(each) for each in (*indices[:-1], e.add(indices[-1], offset))]
        off = e.splat(type_, zero(source.type.element_type))
        return vector.MaskedLoadOp(type_, source, places, mask, off).result

    def _load_row(self, buffer: Buffer, env: Env, live: int) -> Value:
        """Emit a vector along the last dimension, which ends after ``live`` elements."""
        e, lanes = self._e, self._s.lanes
        indices = buffer.indices(e, env)
        if live >= lanes:
            value = load(e, lanes, buffer.value, indices)
        else:
            value = self._load_masked(buffer.value, indices, 0, live)
        type_ = e.vector_type(lanes, self._element)
        return value if value.type == type_ else arith.ExtFOp(type_, value).result

    def _rounds(self, number: int) -> bool:
        """Return whether sums of an output are rounded when they are complete."""
        return bool(self._buffers[self._m.outputs[number]].value.type.element_type != self._element)

    def _load_sums(self, place: Place, env: Env, local: Index, column: int, number: int) -> Value:
        """Emit what the row ``local`` of an output is so far."""
        if self._rounds(number):
            return load(self._e, self._s.lanes, place.own.outputs[number], [local, column])
        return self._load_columns(self._buffers[self._m.outputs[number]], env, column, number)

    def _store_sums(self, value: Value, place: Place, env: Env, local: Index, column: int) -> None:
        """Emit a store of the row ``local`` of the only output."""
        if self._rounds(0):
            store(self._e, value, place.own.outputs[0], [local, column])
        else:
            self._store_columns(value, self._buffers[self._m.outputs[0]], env, column, 0)

    def _load_columns(self, buffer: Buffer, env: Env, column: int, number: int) -> Value:
        return self._load_row(buffer, env, self._extents[self._widths[number]] - column)

    def _store_columns(self, value: Value, buffer: Buffer, env: Env, column: int, number: int) -> None:
        e, lanes = self._e, self._s.lanes
        live = self._extents[self._widths[number]] - column
        indices = buffer.indices(e, env)
        type_ = e.vector_type(lanes, buffer.value.type.element_type)
        if value.type != type_:
            value = arith.TruncFOp(type_, value).result
        if live >= lanes:
            store(e, value, buffer.value, indices)
            return
        mask = vector.CreateMaskOp(ir.VectorType.get([lanes], self._bit), [e.index(live)]).result
        vector.MaskedStoreOp(buffer.value, [e.index(each) for each in indices], mask, value)
