"""Factors of products that have gaps between the elements of a row: copied to memory without them.

Kernels read vectors along the rows of a factor, and whoever looks at indices alone (`contraction.match`) says
that a last index moves from one element to the next. A slice with a step, or one column of a tensor, is a
view where it does not. The copy is written once, and read as often as the factor is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.constant_factors import reads_of
from mind_mlir.lowering.schedule.contraction.match import is_factor
from mind_mlir.lowering.schedule.reading.layout import has_dense_rows
from mind_mlir.mlir.bindings import ir, linalg, tensor
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.reading.view import Views
    from mind_mlir.mlir.bindings import Operation, Value


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
