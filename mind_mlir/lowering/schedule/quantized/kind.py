"""The kind of schedules of products with weights of few bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.kind import Kind
from mind_mlir.lowering.schedule.quantized.marked import QUANTIZED_ATTRIBUTE, QuantizedProduct
from mind_mlir.lowering.schedule.quantized.schedule import quantized_schedule
from mind_mlir.mlir.records import record_attribute
from mind_mlir.ops.quantized_lowering import FORMAT_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.lowering.schedule.quantized.schedule import QuantizedSchedule


def _match(site: Site) -> QuantizedProduct | None:
    """Return the operation as a product with weights of few bits if it is one."""
    return QuantizedProduct.of(site.op) if FORMAT_ATTRIBUTE in site.op.attributes else None


def _emit(nest: QuantizedProduct, schedule: QuantizedSchedule, site: Site) -> None:
    """Mark the operation."""
    nest.op.attributes[QUANTIZED_ATTRIBUTE] = record_attribute(schedule)
    site.scope.kernels.update(dict.fromkeys(nest.kernels(schedule)))


#: Products with weights of few bits, which are marked with how they are computed and stay.
QUANTIZED = Kind("quantised product", _match, quantized_schedule, _emit)
