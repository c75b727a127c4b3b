"""Emits quantised products on memory: activations are arranged, then chunks of columns are computed.

Each element of a result is computed by one call, in an order that depends on the shape, the format and the
target alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.activations import ACTIVATION_ARGUMENTS
from mind_mlir.lowering.schedule.contraction.kernels.library import Buffer, Library
from mind_mlir.lowering.schedule.contraction.kernels.quantized import QUANTIZED_ARGUMENTS
from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.quantized.marked import QUANTIZED_ATTRIBUTE, QuantizedProduct, schedule_of
from mind_mlir.mlir.bindings import Module, Operation, Value, func, ir, linalg, memref
from mind_mlir.mlir.passes import find_all
from mind_mlir.ops.quantized_formats import BLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel


def emit_quantized_products(module: Module) -> None:
    """Replace the marked products of a bufferized ``module`` by loops around calls of kernels."""
    library = Library(module)
    for function in list(module.body.operations):
        if not isinstance(function, func.FuncOp) or not function.regions[0].blocks:
            continue
        marked = [op for op in find_all(function, linalg.GenericOp) if QUANTIZED_ATTRIBUTE in op.attributes]
        emitter = Emitter(function) if marked else None
        for op in marked:
            assert emitter is not None
            with ir.InsertionPoint(op), op.location:
                _Emission(op.operation, emitter, library).emit()
            op.operation.erase()


class _Emission:
    """Emits one product at the insertion point."""

    def __init__(self, op: Operation, emitter: Emitter, library: Library) -> None:
        self._p, self._s = QuantizedProduct.of(op), schedule_of(op)
        self._e, self._library = emitter, library
        self._buffers = [Buffer.of(value) for value in op.operands]

    def emit(self) -> None:
        """Emit the product."""
        e, s, p = self._e, self._s, self._p
        kernel = p.activations(s)
        steps = p.depth // BLOCK // s.blocks
        row = (steps + (kernel.rest > 0)) * kernel.step.bytes
        left = self._arranged(steps, row)
        split = Split(s.nc, -(-p.columns // s.nc), "", s.brief)
        e.chunks(split, p.columns, [], lambda first, end, _: self._chunk(left, first, end, (steps, row)))

    def _arranged(self, steps: int, row: int) -> Value:
        """Emit activations as the kernel of products takes them; return where they begin."""
        p, x = self._p, self._buffers[0]
        byte = ir.IntegerType.get_signless(8)
        base = Buffer.of(memref.AllocOp(ir.MemRefType.get([p.rows * row], byte), [], []).result).base
        numbers = {
            "source_first": x.first,
            "target_first": 0,
            "rows": p.rows,
            "steps": steps,
            "source_row": x.strides[0],
            "target_row": row,
        }
        self._call(p.activations(self._s), ACTIVATION_ARGUMENTS, (x.base, base), numbers)
        return base

    def _chunk(self, left: Value, first: Index, end: Index, sizes: tuple[int, int]) -> list[Value]:
        """Emit the columns from ``first`` to ``end``, for some rows of activations after others."""
        e, s, p = self._e, self._s, self._p
        whole = p.rows // s.rows

        def rows(at: Index, count: int) -> list[Value]:
            self._product(left, (at, count), (first, end), sizes)
            return []

        e.loop((0, whole, 1), [], lambda number, _: rows(e.mul(number, s.rows), s.rows))
        if p.rows % s.rows:
            rows(whole * s.rows, p.rows % s.rows)
        return []

    def _product(
        self, left: Value, rows: tuple[Index, int], columns: tuple[Index, Index], sizes: tuple[int, int]
    ) -> None:
        e, s, p = self._e, self._s, self._p
        (at, count), (first, end), (steps, row) = rows, columns, sizes
        weights, out = self._buffers[1], self._buffers[-1]
        # Of what is not there, the weights stand in the place.
        scales = self._buffers[2] if p.groups else None
        zeros = self._buffers[3] if p.zeros else None
        numbers = {
            "left_first": e.mul(at, row),
            "out_first": e.add(e.add(out.first, e.mul(at, out.strides[0])), first),
            "columns": e.sub(end, first),
            "steps": steps,
            "left_row": row,
            "out_row": out.strides[0],
        }
        for name, buffer in (("weights", weights), ("scales", scales), ("zeros", zeros)):
            numbers[f"{name}_row"] = 0 if buffer is None else buffer.strides[0]
            start = 0 if buffer is None else e.add(buffer.first, e.mul(first, buffer.strides[0]))
            numbers[f"{name}_first"] = start
        buffers = [left, *((each or weights).base for each in (weights, scales, zeros)), out.base]
        self._call(p.kernel(s, count), QUANTIZED_ARGUMENTS, buffers, numbers)

    def _call(
        self, kernel: Kernel, names: Sequence[str], buffers: Sequence[Value], numbers: Mapping[str, Index]
    ) -> None:
        self._library.call(kernel, [*buffers, *(self._e.index(numbers[name]) for name in names)])
