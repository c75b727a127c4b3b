"""Memory of the layout that kernels read and schedules are for: copies where operands have another one.

Kernels read vectors along the rows of a factor, and whoever looks at indices alone (`contraction.match`) says
that a last index moves from one element to the next. A slice with a step, or one column of a tensor, is a
view where it does not. The copy is written once, and read as often as the factor is.

A schedule is chosen for the memory that tensors have by themselves. Afterwards a factor or a result may have
got its place in a larger tensor, or a view become a copy. To most schedules that is the same; where it is
not, the product works on memory that is as planned, and elements are copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.constant_factors import reads_of
from mind_mlir.lowering.schedule.contraction.geometry import geometry, memory_strides
from mind_mlir.lowering.schedule.contraction.marked import START_ATTRIBUTE, planned_strides
from mind_mlir.lowering.schedule.contraction.match import is_factor, match_contraction
from mind_mlir.lowering.schedule.linalg_view.layout import Strides, contiguous_strides, has_dense_rows
from mind_mlir.mlir.bindings import Operation, Value, ir, linalg, memref, tensor
from mind_mlir.mlir.memory import reinterpreted
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import Views


def make_factors_dense(function: Operation, views: Views) -> None:
    """Let the products in ``function``, linalg on tensors, read copies of what has gaps within rows."""
    for op in find_all(function, tensor.ExtractSliceOp):  # nothing else is a view with gaps
        value = op.operation.results[0]
        if not has_dense_rows(value) and any(is_factor(views, use) for use in reads_of(value)):
            _copy(value)


def _copy(value: Value) -> None:
    """Emit a copy of ``value`` behind what defines it, and let all read that instead."""
    op = value.owner.operation
    with ir.InsertionPoint.after(op), op.location:
        empty = tensor.EmptyOp(list(value.type.shape), value.type.element_type).result
        copy = linalg.copy(value, outs=[empty])
    value.replace_all_uses_except(copy, copy.owner.operation)


def lay_out(op: Operation, views: Views) -> None:
    """Give the marked product ``op``, on memory, operands that its schedule is for."""
    view = views.of(op)
    assert view is not None, "what has been marked is a contraction"
    contraction = match_contraction(view)
    assert contraction is not None, "what has been marked is a contraction"
    planned, found = planned_strides(op), memory_strides(contraction)
    if planned == found or geometry(contraction, planned).form == geometry(contraction, found).form:
        return
    accesses = contraction.left.access, contraction.right.access
    for access, wanted, strides in zip(accesses, planned, found, strict=False):
        if wanted != strides:
            place = view.accesses.index(access)
            with ir.InsertionPoint(op), op.location:
                own = _memory(op.operands[place], wanted)
                memref.copy(op.operands[place], own)
            op.operands[place] = own
    if planned[2] != found[2]:
        out = op.operands[2]
        with ir.InsertionPoint(op), op.location:
            own = _memory(out, planned[2])
            if START_ATTRIBUTE not in op.attributes:
                memref.copy(out, own)
        with ir.InsertionPoint.after(op), op.location:
            memref.copy(own, out)
        op.operands[2] = own


def _memory(value: Value, strides: Strides) -> Value:
    """Emit memory of the shape of ``value`` with ``strides``."""
    shape, element = list(value.type.shape), value.type.element_type
    if strides == contiguous_strides(shape):
        return memref.AllocOp(ir.MemRefType.get(shape, element), [], []).result
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    flat = memref.AllocOp(ir.MemRefType.get([span], element), [], []).result
    type_ = ir.MemRefType.get(shape, element, layout=ir.StridedLayoutAttr.get(0, strides))
    return reinterpreted(flat, type_)
