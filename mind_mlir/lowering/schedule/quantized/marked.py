"""A quantised product as one operation that carries its schedule.

Lowering leaves it a `linalg.generic` with a mark; scheduling adds how it is computed, and `emission` makes
calls of it once it is on memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.kernels.activations import ActivationsKernel
from mind_mlir.lowering.kernels.llvm_text import float_conversions
from mind_mlir.lowering.kernels.product import ProductKernel
from mind_mlir.lowering.kernels.quantized import QuantizedKernel
from mind_mlir.lowering.kernels.quantized_tiles import PanelKernel, TileKernel
from mind_mlir.lowering.kernels.quantized_weights import FINE, WIDE
from mind_mlir.lowering.schedule.kind import Kind, OperationNest
from mind_mlir.lowering.schedule.quantized.schedule import QuantizedSchedule, quantized_schedule
from mind_mlir.mlir.bindings import Operation, Type, ir
from mind_mlir.mlir.records import read_record, record_attribute
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS, WeightFormat
from mind_mlir.ops.quantized_lowering import ACTIVATIONS_ATTRIBUTE, FORMAT_ATTRIBUTE
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.lowering.schedule.kind import Site

#: The schedule of a quantised product, a dictionary.
QUANTIZED_ATTRIBUTE = "mind.quantized_schedule"


@dataclass(frozen=True)
class QuantizedProduct(OperationNest):
    """A product with weights of few bits: an operation, read.

    Attributes:
        format: The format of its weights.
        integers: Whether activations become integers of 8 bits.
        rows: Rows of activations.
        columns: Rows of weights: columns of the result.
        depth: Elements that are summed over.
        source: The element type of activations.
        weight: That of the weights.
        scale: That of scales that are a tensor of their own.
        groups: Groups in a row, where there is such a tensor.
        zeros: Whether there are zero points.
    """

    format: WeightFormat
    integers: bool
    rows: int
    columns: int
    depth: int
    source: Type
    weight: Type
    scale: Type | None
    groups: int
    zeros: bool

    @staticmethod
    def of(op: Operation) -> QuantizedProduct:
        """Read ``op``, a marked operation on tensors or on memory."""
        x, weights, *parameters, out = (ir.ShapedType(each.type) for each in op.operands)
        scales = parameters[0] if parameters else None
        return QuantizedProduct(
            op=op,
            format=FORMATS[ir.StringAttr(op.attributes[FORMAT_ATTRIBUTE]).value],
            integers=ir.StringAttr(op.attributes[ACTIVATIONS_ATTRIBUTE]).value == "int8",
            rows=out.shape[0],
            columns=out.shape[1],
            depth=x.shape[1],
            source=x.element_type,
            weight=weights.element_type,
            scale=None if scales is None else scales.element_type,
            groups=0 if scales is None else scales.shape[1],
            zeros=len(parameters) > 1,
        )

    @property
    def extents(self) -> tuple[int, int, int]:
        """Rows, columns, and what is summed over."""
        return self.rows, self.columns, self.depth

    def _reading(self, s: QuantizedSchedule) -> dict[str, Any]:
        """Return what kernels that read weights have in common."""
        scale = "f16" if self.scale is None else str(self.scale)
        kind = WIDE if "E5M2" in str(self.weight) else FINE
        return {
            "format": self.format.name,
            "integers": self.integers,
            "group": self.depth // BLOCK // self.groups if self.groups else 0,
            "scale": float_conversions(scale, "f32", half=s.half),
            "zeros": self.zeros,
            "weight": f"{kind} {float_conversions('f16', 'f32', half=s.half)}"
            if self.format.is_float
            else "",
        }

    def kernel(self, s: QuantizedSchedule, rows: int) -> QuantizedKernel:
        """Return the kernel that multiplies so many rows of activations."""
        return QuantizedKernel(
            rows=rows,
            rest=self.depth // BLOCK % s.blocks,
            **{name: getattr(s, name) for name in ("columns", "lanes", "blocks", "dots", "fma", "ahead")},
            **self._reading(s),
        )

    def activations(self, s: QuantizedSchedule) -> ActivationsKernel:
        """Return the kernel that arranges activations."""
        raised = self.kernel(s, 1).raised
        return ActivationsKernel(
            format=self.format.name,
            lanes=s.lanes,
            blocks=s.blocks,
            rest=self.depth // BLOCK % s.blocks,
            integers=self.integers,
            factor=0 if self.zeros or not self.integers else -(raised + self.format.middle),
            source=float_conversions(str(self.source), "f32", half=s.half),
            single=s.panels > 0,
        )

    def panel(self, s: QuantizedSchedule) -> PanelKernel:
        """Return the kernel that packs weights."""
        lanes = s.lanes // 2 if self.integers else s.lanes
        return PanelKernel(lanes=lanes, blocks=1, strip=s.lanes, **self._reading(s))

    def tiles(self, s: QuantizedSchedule, rows: int) -> TileKernel | ProductKernel:
        """Return the kernel that multiplies so many rows with packed weights."""
        vectors = s.columns // s.lanes
        if self.integers:
            return TileKernel(rows=rows, vectors=vectors, lanes=s.lanes, zeros=self.zeros, fma=s.fma)
        tile = rows, vectors, s.lanes
        return ProductKernel(*tile, "f32", "f32", "f32", s.fma, s.masks, False, False, fetches=1)

    def kernels(self, s: QuantizedSchedule) -> list[Kernel]:
        """Return all kernels that are called."""
        counts = sorted({min(self.rows, s.rows), self.rows % s.rows or s.rows})
        if not s.panels:
            return [self.activations(s), *(self.kernel(s, count) for count in counts)]
        counts = counts if self.integers else [s.rows]
        return [self.activations(s), self.panel(s), *(self.tiles(s, count) for count in counts)]


def schedule_of(op: Operation) -> QuantizedSchedule:
    """Return the schedule of a marked operation."""
    return read_record(QuantizedSchedule, op.attributes[QUANTIZED_ATTRIBUTE])


def _match(site: Site) -> QuantizedProduct | None:
    """Return the operation as a product with weights of few bits if it is one."""
    return QuantizedProduct.of(site.op) if FORMAT_ATTRIBUTE in site.op.attributes else None


def _emit(nest: QuantizedProduct, schedule: QuantizedSchedule, site: Site) -> None:
    """Mark the operation."""
    nest.op.attributes[QUANTIZED_ATTRIBUTE] = record_attribute(schedule)
    site.scope.kernels.update(dict.fromkeys(nest.kernels(schedule)))


#: Products with weights of few bits, which are marked with how they are computed and stay.
QUANTIZED = Kind("quantised product", _match, quantized_schedule, _emit)
