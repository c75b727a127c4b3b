"""Emits the memory that an attention works on."""

from __future__ import annotations

from mind_mlir.lowering.schedule.attention.choice import has_tiles, query_pack
from mind_mlir.lowering.schedule.attention.memory import Scratch, Shared
from mind_mlir.lowering.schedule.attention.online import Online
from mind_mlir.lowering.schedule.attention.passes import TERMS
from mind_mlir.lowering.schedule.emission.emitter import PRIVATE_ATTRIBUTE
from mind_mlir.mlir.bindings import Type, Value, ir, memref


class Scratches(Online):
    """Emits the memory of chunks of one attention."""

    def _scratch(self, shared: Shared, *, parallel: bool) -> Scratch:
        """Emit the memory of a chunk, but for what is ``shared``."""
        s = self._s
        square = query_pack(s, str(self._element), self._stored, transposed=True).square
        rounded = [-(-self._extents[dim] // square) * square for dim in self._depths]
        tiled = [
            node
            for node in self._p.inputs
            if has_tiles(self._p, node, self._buffers[self._input(node)].access)
        ]

        def memory(rows: int, type_: Type, columns: int = s.queries) -> Value:
            return self._memory(rows, type_, columns, parallel=parallel)

        columns = s.out_vectors * s.lanes
        words = [self._word_rows(number) for number in range(len(self._widths))] if s.pairs else []
        values = [
            shared.values[number] if number in shared.values else memory(count, self._word, columns)
            for number, count in enumerate(words)
        ]
        half = ir.IntegerType.get_signless(16)
        even = 2 * self._value_words
        column_places = self._places_of(self._p.column_terms) if s.pairs else []
        halves = [-(-self._extents[dim] // 2 // square) * square for dim in self._depths]
        queries = [memory(depth + 1, self._word) for depth in halves] if s.pairs else []
        row, greatest, sums = (memory(1, self._element) for _ in range(3))
        return Scratch(
            queries=[memory(depth, self._element) for depth in rounded] if not s.pairs else queries,
            values=values,
            least=shared.least or memory(len(self._m.scores), self._word, 1),
            arrays=[
                shared.arrays[place] if place in shared.arrays else memory(s.keys, self._element)
                for place in range(self._p.arrays)
            ],
            halves={place: memory(even, half) for place in column_places},
            tiles={
                node.number: memory(-(-TERMS // square) * square, _in_memory(node.type)) for node in tiled
            },
            row=row,
            greatest=greatest,
            sums=sums,
            outputs={
                number: memory(s.queries, self._element, -(-self._extents[width] // s.lanes) * s.lanes)
                for number, width in enumerate(self._widths)
                if self._rounds(number)
            },
        )

    def _memory(self, rows: int, type_: Type, columns: int, *, parallel: bool) -> Value:
        shape = ir.MemRefType.get([rows, columns], type_)
        if not parallel:
            return memref.AllocOp(shape, [], []).result
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            PRIVATE_ATTRIBUTE: ir.UnitAttr.get(),
        }
        return ir.Operation.create("memref.alloca", [shape], [], attributes).result


def _in_memory(type_: Type) -> Type:
    """Return the type of elements that are kept: a condition is a byte."""
    return ir.IntegerType.get_signless(8) if str(type_) == "i1" else type_
