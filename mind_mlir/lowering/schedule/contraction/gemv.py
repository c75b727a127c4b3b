"""Products of few rows, which read their right factor once, on through memory: schedules, and loops.

An axpy product is cut along the products: each part has results of its own, in a buffer, and these are added
up in order. So each part of the right factor is a macro-tile of memory without gaps, however short its rows
are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import WAKING_NS
from mind_mlir.lowering.emission.split import emit_ranges, least, split
from mind_mlir.lowering.kernels.library import KernelBuffer
from mind_mlir.lowering.schedule.contraction.costs import NEAR_COLUMNS
from mind_mlir.lowering.schedule.contraction.kernel_choice import (
    axpy_kernel,
    dot_kernel,
    dot_rows,
    join_kernel,
)
from mind_mlir.lowering.schedule.contraction.phases import ProductEmission
from mind_mlir.lowering.schedule.contraction.schedule import DOTS, round_up
from mind_mlir.mlir.bindings import ir, memref
from mind_mlir.mlir.memory import metadata_of
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.contraction.factors import Run
    from mind_mlir.lowering.schedule.contraction.marked import Product
    from mind_mlir.mlir.bindings import Value


class GemvEmission(ProductEmission):
    """Emits one product of few rows."""

    def __init__(self, product: Product, run: Run) -> None:
        super().__init__(product, run)
        places = zip(self._buffers, product.loops.first, strict=True)
        firsts = [(buffer.base, self._e.add(buffer.first, first)) for buffer, first in places]
        self._left, self._right, self._out = (partial(self._operand, *each) for each in firsts)
        self._row, self._start = product.loops.rows[0], self._starts()
        self._join: Callable[[], None] = lambda: None

    def _operand(self, base: Value, first: Index, at: Index, **strides: Index) -> KernelBuffer:
        """Return a factor, or the result, from the element ``at`` of it on."""
        return KernelBuffer(base, self._e.add(first, at), **strides)

    def compute(self) -> None:
        """Emit the product, or its parts."""
        (self._dot if self._s.strategy == DOTS else self._axpy)()

    def finish(self) -> None:
        """Emit what adds up the parts, if there are any."""
        self._join()

    def _dot(self) -> None:
        e, s, g = self._e, self._s, self._g
        n, k, rows = g.columns.extent, g.steps, dot_rows(s)
        blocks = -(-k // s.kc)
        steps = {"depth": s.kc, "last_depth": k - (blocks - 1) * s.kc, "blocks": blocks}
        near = max(1, NEAR_COLUMNS // (k * self._c.element.width // 8 * s.beside)) * s.beside

        def columns(first: Index, count: Index) -> None:
            for number, each in enumerate(rows):
                operands = (
                    self._left(number * s.rows * self._row.left, row=self._row.left),
                    self._right(e.mul(first, g.columns.right), column=g.columns.right),
                    self._out(e.add(first, number * s.rows * self._row.out), row=self._row.out),
                )
                numbers = {"columns": count, **steps}
                self._library.call_with(e, dot_kernel(self._p, each), operands, numbers, self._start)

        def piece(first: Index, end: Index) -> None:
            if len(rows) == 1:
                columns(first, e.sub(end, first))
            else:
                e.each((first, end, near), lambda at: columns(at, e.minimum(e.sub(end, at), near)))

        emit_ranges(e, n, s.nc, piece, brief=s.brief)

    def _axpy(self) -> None:
        e, s, g = self._e, self._s, self._g
        n, k, element = g.columns.extent, g.steps, self._c.element
        tiles, parts = -(-n // s.nc), -(-k // s.kc)
        row = round_up(n, s.lanes)
        part = s.rows * row
        own = memref.AllocOp(ir.MemRefType.get([parts * part], element), [], []).result
        base, _, _ = metadata_of(own)
        step = g.depth[0]

        def piece(number: Index, _: Index) -> None:
            which, tile = e.floordiv(number, tiles), e.modulo(number, tiles)
            first, column = e.mul(which, s.kc), e.mul(tile, s.nc)
            operands = (
                self._left(e.mul(first, step.left), row=self._row.left, step=step.left),
                self._right(e.add(e.mul(first, step.right), column), step=step.right),
                KernelBuffer(base, e.add(e.mul(which, part), column), row=row),
            )
            numbers = {"columns": least(e, n, tile, s.nc), "depth": least(e, k, which, s.kc)}
            self._library.call_with(e, axpy_kernel(self._p), operands, numbers)

        emit_ranges(e, tiles * parts, 1, piece)

        def joined(first: Index, end: Index) -> None:
            operands = KernelBuffer(base, first, row=row, part=part), self._out(first, row=self._row.out)
            numbers = {"rows": s.rows, "columns": e.sub(end, first), "parts": parts}
            self._library.call_with(e, join_kernel(self._p), operands, numbers, self._start)

        nanoseconds = parts * part * element.width // 8 * REFERENCE.byte_ns
        size = n if nanoseconds < WAKING_NS else split(n, nanoseconds, multiple=s.lanes).step
        self._join = lambda: emit_ranges(e, n, size, joined)
