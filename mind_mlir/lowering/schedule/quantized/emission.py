"""Emits quantised products on memory: activations are arranged, then chunks of columns are computed.

Each element of a result is computed by one call, in an order that depends on the shape, the format and the
target alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.split import emit_ranges, split
from mind_mlir.lowering.kernels.library import KernelBuffer, Library, macro_tile_memory, marked_operations
from mind_mlir.lowering.kernels.quantized_tiles import block_bytes
from mind_mlir.lowering.schedule.contraction.costs import ARRANGED_NS
from mind_mlir.lowering.schedule.contraction.schedule import round_up
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
from mind_mlir.lowering.schedule.quantized.marked import QUANTIZED_ATTRIBUTE, QuantizedProduct, schedule_of
from mind_mlir.mlir.bindings import Module, Operation, Value, ir, memref
from mind_mlir.ops.quantized_formats import BLOCK
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.emission.emitter import Emitter, Index


def emit_quantized_products(module: Module) -> None:
    """Replace the marked products of a bufferized ``module`` by loops around calls of kernels."""
    library = Library(module)
    for emitter, marked in marked_operations(module, QUANTIZED_ATTRIBUTE):
        for op in marked:
            with ir.InsertionPoint(op), op.location:
                _Emission(op, emitter, library).emit()
            op.erase()


class _Emission:
    """Emits one product at the insertion point."""

    def __init__(self, op: Operation, emitter: Emitter, library: Library) -> None:
        self._p, self._s = p, s = QuantizedProduct.of(op), schedule_of(op)
        self._e, self._library = emitter, library
        self._buffers = [Buffer.of(value) for value in op.operands]
        #: The whole steps of a row.
        self._steps = p.depth // BLOCK // s.blocks
        arranged = p.activations(s)
        row = (self._steps + (arranged.rest > 0)) * arranged.step.bytes
        #: The bytes of a row of activations: rows of f32 are no multiple of a page apart.
        self._row = row if p.integers else row + ALIGNMENT
        #: The elements of a packed strip.
        self._strip = s.panels * (block_bytes(s.lanes, zeros=p.zeros) if p.integers else BLOCK * s.lanes)

    def emit(self) -> None:
        """Emit the product."""
        e, s, p = self._e, self._s, self._p
        left = self._arranged()
        chunk, extent = (self._packed, p.columns) if s.panels else (self._in_place, p.columns // s.columns)
        emit_ranges(e, extent, s.nc, lambda first, end: chunk(left, first, end), brief=s.brief)

    def _arranged(self) -> Value:
        """Emit activations as kernels of products take them; return where they begin."""
        p, x, row = self._p, self._buffers[0], self._row
        byte = ir.IntegerType.get_signless(8)
        base = Buffer.of(memref.AllocOp(ir.MemRefType.get([p.rows * row], byte), [], []).result).base
        kernel = p.activations(self._s)

        def rows(first: Index, end: Index) -> None:
            operands = self._rows(x, first), KernelBuffer(base, self._e.mul(first, row), row=row)
            numbers = {"rows": self._e.sub(end, first), "steps": self._steps}
            self._library.call_with(self._e, kernel, operands, numbers)

        cut = split(p.rows, p.rows * p.depth * ARRANGED_NS)
        emit_ranges(self._e, p.rows, cut.step, rows, brief=cut.brief)
        return base

    def _rows(self, buffer: Buffer, row: Index, column: Index = 0) -> KernelBuffer:
        """Return a matrix from an element of it on."""
        e, stride = self._e, buffer.strides[0]
        return KernelBuffer(buffer.base, e.add(e.add(buffer.first, e.mul(row, stride)), column), row=stride)

    def _by_rows(self, call: Callable[[Index, int], None]) -> None:
        """Emit ``call`` for some rows of activations after others."""
        e, s, p = self._e, self._s, self._p
        whole, rest = divmod(p.rows, s.rows)
        e.each((0, whole, 1), lambda number: call(e.mul(number, s.rows), s.rows))
        if rest:
            call(whole * s.rows, rest)

    def _in_place(self, left: Value, first: Index, end: Index) -> None:
        """Emit columns from ``first`` to ``end`` of each stream, whose weights are read as they lie."""
        self._by_rows(lambda at, count: self._product(left, (at, count), (first, end)))

    # Packed weights

    def _packed(self, left: Value, first: Index, end: Index) -> None:
        """Emit the columns from ``first`` to ``end``, some blocks of all of them after others."""
        e, s, p = self._e, self._s, self._p
        element = ir.IntegerType.get_signless(8) if p.integers else ir.F32Type.get()
        size = round_up(s.nc, s.columns) // s.lanes * self._strip
        is_shared = p.columns > s.nc
        panels = Buffer.of(macro_tile_memory(ir.MemRefType.get([size], element), is_shared=is_shared))
        blocks = p.depth // BLOCK

        def some(number: Index) -> None:
            start = e.mul(number, s.panels)
            live = s.panels if blocks % s.panels == 0 else e.minimum(e.sub(blocks, start), s.panels)
            self._pack(panels, (first, end), (start, live))
            self._tiles((left, panels), (first, end), (start, live))

        e.each((0, -(-blocks // s.panels), 1), some)

    def _pack(self, panels: Buffer, columns: tuple[Index, Index], blocks: tuple[Index, Index]) -> None:
        e, s, p = self._e, self._s, self._p
        (first, end), (start, live) = columns, blocks
        kernel = p.panel(s)
        vectors = s.columns // s.lanes
        count = e.sub(end, first)
        strips = e.floordiv(e.add(count, s.lanes - 1), s.lanes)

        def strip(number: Index) -> None:
            column = e.mul(number, s.lanes)
            target = e.mul(number, self._strip)
            if not p.integers:  # strips of a panel lie side by side
                within = e.mul(e.modulo(number, vectors), s.lanes)
                target = e.add(e.mul(e.floordiv(number, vectors), vectors * self._strip), within)
            weights = self._weights(e.add(first, column))
            operands = [*weights, KernelBuffer(panels.base, target, step=s.columns)]
            numbers = {"columns": e.sub(count, column), "first": start, "blocks": live}
            self._library.call_with(self._e, kernel, operands, numbers)

        e.each((0, strips, 1), strip)

    def _tiles(
        self, factors: tuple[Value, Buffer], columns: tuple[Index, Index], blocks: tuple[Index, Index]
    ) -> None:
        """Emit the products of some blocks, which are added to what there is but for the first ones."""
        e, s, p = self._e, self._s, self._p
        (left, panels), (first, end), (start, live) = factors, columns, blocks
        out = self._buffers[-1]
        count = e.sub(end, first)
        begin = e.number(ir.F32Type.get(), 0)
        adds = e.flag(False) if isinstance(start, int) else e.compare("ne", start, 0)
        out_first, out_row = e.add(out.first, first), out.strides[0]
        if not p.integers:
            depth, row = e.mul(live, BLOCK), self._row // 4
            operands = (
                KernelBuffer(left, e.mul(start, BLOCK), row=row, tile=row * s.rows, step=1),
                KernelBuffer(panels.base, panel=s.panels * BLOCK * s.columns, step=s.columns),
                KernelBuffer(out.base, out_first, row=out_row),
            )
            numbers = {"rows": p.rows, "columns": count, "depth": depth, "last_depth": depth}
            self._library.call_with(self._e, p.tiles(s, s.rows), operands, numbers, (begin, adds))
            return

        def rows(at: Index, many: int) -> None:
            size = p.activations(s).step.bytes
            operands = (
                KernelBuffer(left, e.add(e.mul(at, self._row), e.mul(start, size)), row=self._row),
                KernelBuffer(panels.base),
                KernelBuffer(out.base, e.add(out_first, e.mul(at, out_row)), row=out_row),
            )
            strips = e.floordiv(e.add(count, s.lanes - 1), s.lanes)
            numbers = {"columns": count, "strips": strips, "blocks": live, "strip": self._strip}
            self._library.call_with(self._e, p.tiles(s, many), operands, numbers, (begin, adds))

        self._by_rows(rows)

    # Weights in place

    def _weights(self, first: Index) -> list[KernelBuffer]:
        """Return weights, scales and zero points from row ``first`` on.

        Of what is not there, the weights stand in the place.
        """
        _, weights, *others = self._buffers
        given = zip(others, (self._p.groups, self._p.zeros), strict=False)
        there = [weights, *(buffer for buffer, is_there in given if is_there)]
        found = [self._rows(buffer, first) for buffer in there]
        return [*found, *[KernelBuffer(weights.base)] * (3 - len(found))]

    def _product(self, left: Value, rows: tuple[Index, int], columns: tuple[Index, Index]) -> None:
        e, s, p = self._e, self._s, self._p
        (at, count), (first, end) = rows, columns
        out = self._buffers[-1]
        weights = self._weights(first)
        apart, singles = divmod(p.columns, s.columns)
        rest: Index = singles
        if singles and not isinstance(end, int):  # the last chunk has them
            rest = e.select(e.compare("eq", end, apart), e.index(singles), e.index(0))
        activations = KernelBuffer(left, e.mul(at, self._row), row=self._row)
        operands = activations, *weights, self._rows(out, at, first)
        numbers = {"columns": e.sub(end, first), "apart": apart, "rest": rest, "steps": self._steps}
        numbers |= {"behind": e.sub(apart * s.columns, first)}
        self._library.call_with(self._e, p.kernel(s, count), operands, numbers)
