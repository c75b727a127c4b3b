"""Slices of tensors that are joined of others: where a slice is one of these, that is read.

Numbers of index vectors are such slices: each is a tensor of its own that was joined with the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value
from mind_mlir.lowering.schedule.linalg_view.layout import static_numbers
from mind_mlir.lowering.schedule.linalg_view.values import erase_source
from mind_mlir.mlir.bindings import ir, tensor
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Operation, Value

#: Where a slice begins, and how far it goes.
_NAMES = ("static_offsets", "static_sizes", "static_strides")


def read_joined(function: Operation) -> None:
    """Let slices in ``function``, linalg on tensors, that are parts of joined tensors be these parts."""
    for slice_ in find_all(function, tensor.ExtractSliceOp):
        op = slice_.operation
        part, joined = _part(op), op.operands[0]
        if part is None:
            continue
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(collapse_value(part, list(op.results[0].type.shape)))
        op.erase()
        erase_source(joined)


def _part(op: Operation) -> Value | None:
    """Return the tensor that was inserted where ``op``, a slice, reads; None if that is no single one."""
    wanted, value = _place(op), op.operands[0]
    while wanted is not None and (insertion := definition(value)) is not None:
        place = _place(insertion) if insertion.name == "tensor.insert_slice" else None
        if place is None:
            return None
        if place == wanted:
            copy = definition(insertion.operands[0])
            is_copy = copy is not None and copy.name == "linalg.copy"
            return copy.operands[0] if copy is not None and is_copy else insertion.operands[0]
        rows = zip(*place[:2], *wanted[:2], strict=True)
        if not any(first + size <= begin or begin + extent <= first for first, size, begin, extent in rows):
            return None  # they overlap
        value = insertion.operands[1]
    return None


def _place(op: Operation) -> tuple[tuple[int, ...], ...] | None:
    """Return where a slice or an insertion is, if it is of consecutive elements at a known place."""
    numbers = [static_numbers(op, name) for name in _NAMES]
    if None in numbers or len(op.operands) != (1 if op.name == "tensor.extract_slice" else 2):
        return None
    return tuple(each for each in numbers if each is not None) if {*(numbers[2] or ())} <= {1} else None
