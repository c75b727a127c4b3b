"""A contraction as one operation that carries its schedule.

Scheduling leaves a contraction on tensors a single `linalg.generic`; `contraction.emission` makes calls of it
once it is on memory. Between the two, bufferization and all that is done to buffers see one operation.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Choice
from mind_mlir.lowering.schedule.contraction.choice import STRATEGIES
from mind_mlir.lowering.schedule.contraction.geometry import ONCE, TiledLoop, geometry, memory_strides
from mind_mlir.lowering.schedule.contraction.match import Contraction, match_contraction
from mind_mlir.lowering.schedule.contraction.schedule import MatmulSchedule
from mind_mlir.lowering.schedule.linalg_view.values import copied, filling_constant
from mind_mlir.lowering.schedule.linalg_view.view import View, Views, emit_generic
from mind_mlir.mlir.bindings import Attribute, Operation, Value, ir, tensor
from mind_mlir.mlir.records import read_record, record_attribute
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.lowering.schedule.linalg_view.view import Access

#: The schedule of a contraction, a dictionary.
SCHEDULE_ATTRIBUTE = "mind.product"
#: The strides of the memory that the schedule is for: of the left factor, the right one and the result.
STRIDES_ATTRIBUTE = "mind.strides"
#: The number that its sums start from; without it, they start from what is in the result.
START_ATTRIBUTE = "mind.start"


@dataclass(frozen=True)
class Product:
    """A marked operation, read.

    Attributes:
        contraction: What it computes.
        loops: Its loops over memory.
        schedule: How it is computed.
    """

    contraction: Contraction
    loops: Geometry
    schedule: MatmulSchedule

    @staticmethod
    def of(op: Operation, views: Views) -> Product:
        """Read ``op``."""
        view = views.of(op)
        contraction = None if view is None else match_contraction(view)
        assert contraction is not None, "what has been marked is a contraction"
        loops = geometry(contraction, memory_strides(contraction))
        return Product(contraction, loops, schedule_of(op))

    def mark(self) -> Value:
        """Emit it as a marked operation at the insertion point and return its result."""
        view = self.contraction.view
        *inputs, init = view.operands
        inputs = [
            _read_part(value, access, view.extents)
            for value, access in zip(inputs, view.accesses, strict=False)
        ]
        strides = [ir.DenseI64ArrayAttr.get(each) for each in memory_strides(self.contraction)]
        attributes = {
            SCHEDULE_ATTRIBUTE: record_attribute(self.schedule),
            STRIDES_ATTRIBUTE: ir.ArrayAttr.get(strides),
        }
        start = filling_constant(init)
        if start is not None:
            init = tensor.EmptyOp(list(init.type.shape), self.contraction.element).result
            attributes[START_ATTRIBUTE] = start
        return emit_view(dataclasses.replace(view, operands=(*inputs, init)), attributes).results[0]

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        strategy = next(each for each in STRATEGIES if each.name == self.schedule.strategy)
        return (Choice("strategy", strategy.name, strategy.when), *self.schedule.choices())

    @property
    def tiled_loops(self) -> tuple[TiledLoop, ...]:
        """The loops over its result, in the order in which macro-tiles are numbered: innermost first."""
        loops, schedule = self.loops, self.schedule
        rows, *others = loops.rows
        planes, *around = others or (ONCE,)
        return (
            TiledLoop(rows.extent, schedule.mc, rows.out),
            TiledLoop(planes.extent, schedule.planes, planes.out),
            TiledLoop(loops.columns.extent, schedule.nc, loops.columns.out),
            *(TiledLoop(loop.extent, 1, loop.out) for loop in (*around, *loops.batch)),
        )


def _read_part(value: Value, access: Access, extents: Sequence[int]) -> Value:
    """Emit the part of ``value`` that loops of ``extents`` read, as an operation of linalg has to have it.

    Windows that are there once may slide along more than they read: without a loop over them nothing says so.
    """
    shape = [
        extent if index.dim is None else min(extent, extents[index.dim])
        for index, extent in zip(access, value.type.shape, strict=True)
    ]
    if shape == list(value.type.shape):
        return value
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    ones, zeros = [1] * len(shape), [0] * len(shape)
    return tensor.ExtractSliceOp(type_, value, [], [], [], zeros, shape, ones).result


def emit_view(
    view: View,
    attributes: Mapping[str, Attribute] = MappingProxyType({}),
    convert: Callable[[list[Value]], list[Value]] = list,
) -> Operation:
    """Emit a `linalg.generic` over the operands and loops of ``view`` that does what its operation does.

    Args:
        view: An operation with one init, whose operands and loops may be others by now.
        attributes: Further attributes.
        convert: Emits what makes elements of the old operands of those of the new ones.
    """
    op, block = emit_generic(view.operands, view.accesses, len(view.extents), view.reductions, attributes)
    with ir.InsertionPoint(block):
        inside = dict(zip(view.body.arguments, convert(list(block.arguments)), strict=True))
        copied([each.operation for each in view.body.operations], inside)
    return op


def replace_operation(view: View, convert: Callable[[list[Value]], list[Value]] = list) -> None:
    """Emit ``view`` in the place of its operation, which has other operands (see `emit_view`)."""
    with ir.InsertionPoint(view.op), view.op.location:
        new = emit_view(view, convert=convert)
    view.op.results[0].replace_all_uses_with(new.results[0])
    view.op.erase()


def planned_strides(op: Operation) -> list[tuple[int, ...]]:
    """Return the strides that the schedule of a marked operation is for."""
    return [tuple(ir.DenseI64ArrayAttr(each)) for each in ir.ArrayAttr(op.attributes[STRIDES_ATTRIBUTE])]


def schedule_of(op: Operation) -> MatmulSchedule:
    """Return the schedule of a marked operation."""
    return read_record(MatmulSchedule, op.attributes[SCHEDULE_ATTRIBUTE])
