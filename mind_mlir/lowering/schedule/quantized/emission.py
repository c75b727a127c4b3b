"""Emits quantised products on memory: activations are arranged, then chunks of columns are computed.

Each element of a result is computed by one call, in an order that depends on the shape, the format and the
target alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.split import emit_ranges, split
from mind_mlir.lowering.kernels.library import Library, macro_tile_memory, marked_operations
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
            numbers = {
                "source_first": self._e.add(x.first, self._e.mul(first, x.strides[0])),
                "target_first": self._e.mul(first, row),
                "rows": self._e.sub(end, first),
                "steps": self._steps,
                "source_row": x.strides[0],
                "target_row": row,
            }
            self._library.call_with(self._e, kernel, (x.base, base), numbers)

        cut = split(p.rows, p.rows * p.depth * ARRANGED_NS)
        emit_ranges(self._e, p.rows, cut.step, rows, brief=cut.brief)
        return base

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
            buffers, numbers = self._weights(e.add(first, column))
            numbers |= {
                "target_first": target,
                "columns": e.sub(count, column),
                "first": start,
                "blocks": live,
                "target_step": s.columns,
            }
            self._library.call_with(self._e, kernel, [*buffers, panels.base], numbers)

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
        buffers = [left, panels.base, out.base]
        out_first = e.add(out.first, first)
        if not p.integers:
            depth = e.mul(live, BLOCK)
            numbers = {
                "left_first": e.mul(start, BLOCK),
                "out_first": out_first,
                "rows": p.rows,
                "columns": count,
                "depth": depth,
                "last_depth": depth,
                "left_row": self._row // 4,
                "left_tile": self._row // 4 * s.rows,
                "left_step": 1,
                "right_panel": s.panels * BLOCK * s.columns,
                "right_step": s.columns,
                "out_row": out.strides[0],
            }
            self._library.call_with(self._e, p.tiles(s, s.rows), buffers, numbers, (begin, adds))
            return

        def rows(at: Index, many: int) -> None:
            step = p.activations(s).step
            numbers = {
                "left_first": e.add(e.mul(at, self._row), e.mul(start, step.bytes)),
                "panel_first": 0,
                "out_first": e.add(out_first, e.mul(at, out.strides[0])),
                "columns": count,
                "strips": e.floordiv(e.add(count, s.lanes - 1), s.lanes),
                "blocks": live,
                "left_row": self._row,
                "strip": self._strip,
                "out_row": out.strides[0],
            }
            self._library.call_with(self._e, p.tiles(s, many), buffers, numbers, (begin, adds))

        self._by_rows(rows)

    # Weights in place

    def _weights(self, first: Index) -> tuple[list[Value], dict[str, Index]]:
        """Return weights, scales and zero points as kernels take them, and where row ``first`` of each is.

        Of what is not there, the weights stand in the place.
        """
        e, p = self._e, self._p
        weights = self._buffers[1]
        scales = self._buffers[2] if p.groups else None
        zeros = self._buffers[3] if p.zeros else None
        numbers: dict[str, Index] = {}
        for name, buffer in (("weights", weights), ("scales", scales), ("zeros", zeros)):
            numbers[f"{name}_row"] = 0 if buffer is None else buffer.strides[0]
            start = 0 if buffer is None else e.add(buffer.first, e.mul(first, buffer.strides[0]))
            numbers[f"{name}_first"] = start
        return [(each or weights).base for each in (weights, scales, zeros)], numbers

    def _product(self, left: Value, rows: tuple[Index, int], columns: tuple[Index, Index]) -> None:
        e, s, p = self._e, self._s, self._p
        (at, count), (first, end) = rows, columns
        out = self._buffers[-1]
        buffers, numbers = self._weights(first)
        apart, singles = divmod(p.columns, s.columns)
        rest: Index = singles
        if singles and not isinstance(end, int):  # the last chunk has them
            rest = e.select(e.compare("eq", end, apart), e.index(singles), e.index(0))
        numbers |= {
            "left_first": e.mul(at, self._row),
            "out_first": e.add(e.add(out.first, e.mul(at, out.strides[0])), first),
            "columns": e.sub(end, first),
            "apart": apart,
            "rest": rest,
            "behind": e.sub(apart * s.columns, first),
            "steps": self._steps,
            "left_row": self._row,
            "out_row": out.strides[0],
        }
        self._library.call_with(self._e, p.kernel(s, count), [left, *buffers, out.base], numbers)
