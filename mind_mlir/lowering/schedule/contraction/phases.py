"""The phases in which products that are computed together are emitted, each for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import START_ATTRIBUTE
from mind_mlir.lowering.schedule.emission.emitter import zero

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.factors import Run
    from mind_mlir.lowering.schedule.contraction.marked import Product
    from mind_mlir.mlir.bindings import Value


class ProductEmission:
    """Emits one product, with others of a ``run`` or by itself, at the insertion point."""

    def __init__(self, product: Product, run: Run) -> None:
        self._p, self._c, self._g, self._s = product, product.contraction, product.loops, product.schedule
        self._e, self._library = run.emitter, run.library

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
