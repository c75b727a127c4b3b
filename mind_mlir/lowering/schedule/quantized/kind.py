"""The kind of schedules of products with weights of few bits."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.kind import Kind, OperationNest
from mind_mlir.lowering.schedule.quantized.marked import QUANTIZED_ATTRIBUTE, QuantizedProduct
from mind_mlir.mlir.records import record_attribute
from mind_mlir.ops.quantized_lowering import FORMAT_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.lowering.schedule.quantized.schedule import QuantizedSchedule
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class QuantizedNest(OperationNest):
    """A product with weights of few bits, and what it computes."""

    product: QuantizedProduct

    @property
    def extents(self) -> tuple[int, ...]:
        """Rows, columns, and what is summed over."""
        return (self.product.rows, self.product.columns, self.product.depth)


def _match(site: Site) -> QuantizedNest | None:
    """Return the operation as a product with weights of few bits if it is one."""
    if FORMAT_ATTRIBUTE not in site.op.attributes:
        return None
    return QuantizedNest(site.op, QuantizedProduct.of(site.op))


def _choose(nest: QuantizedNest, target: Target) -> QuantizedSchedule:
    return nest.product.schedule(target)


def _emit(nest: QuantizedNest, schedule: QuantizedSchedule, site: Site) -> None:
    """Mark the operation."""
    nest.op.attributes[QUANTIZED_ATTRIBUTE] = record_attribute(schedule)
    site.scope.kernels.update(dict.fromkeys(nest.product.kernels(schedule)))


#: Products with weights of few bits, which are marked with how they are computed and stay.
QUANTIZED = Kind("quantised product", _match, _choose, _emit)
