"""The phases in which products that are computed together are emitted, each for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import zero
from mind_mlir.lowering.schedule.contraction.marked import START_ATTRIBUTE
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.memory import is_row_major

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.factors import Run
    from mind_mlir.lowering.schedule.contraction.marked import Product


class ProductEmission:
    """Emits one product, with others of a ``run`` or by itself, at the insertion point."""

    def __init__(self, product: Product, run: Run) -> None:
        self._p, self._c, self._g, self._s = product, product.contraction, product.loops, product.schedule
        self._e, self._library = run.emitter, run.library
        out = self._c.view.operands[2]
        #: Whether results go past the cache.
        self._streams = self._s.streams and _only_written(out, self._c.view.op)
        #: The left factor, the right one and the result.
        self._buffers = [Buffer.of(each) for each in (self._c.left.value, self._c.right.value, out)]

    def prepare(self) -> None:
        """Emit the packing."""

    def check(self) -> None:
        """Emit what tells which kernel to call."""

    def compute(self) -> None:
        """Emit the product, or its parts."""
        raise NotImplementedError

    def finish(self) -> None:
        """Emit what is done with the results of parts."""

    def _starts(self) -> tuple[Value, Value]:
        """Return the number that sums start from, and whether they start from what is in the result."""
        start = self._c.view.op.attributes.get(START_ATTRIBUTE)
        return self._e.constant(self._c.element, start or zero(self._c.element)), self._e.flag(start is None)


def _only_written(buffer: Value, op: Operation) -> bool:
    """Return whether ``buffer`` is all of a result of the function, of which ``op`` is the only use."""
    is_argument = isinstance(buffer, ir.BlockArgument) and buffer.owner.owner.operation.name == "func.func"
    return is_argument and is_row_major(buffer.type) and all(use.owner.operation == op for use in buffer.uses)
