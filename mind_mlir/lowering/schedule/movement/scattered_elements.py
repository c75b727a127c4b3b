"""Scatters compute what they read: what an update is, and of single elements where it belongs.

A tensor of either would be written, and read again, for nothing: it is computed in the loop over the updates
where little is to be done for an element and nothing else reads the tensor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import SLOW
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity
from mind_mlir.lowering.schedule.linalg_view.values import CASTS, copied, erase_source, filler, unreshaped
from mind_mlir.lowering.schedule.movement.scatter import has_tables
from mind_mlir.lowering.schedule.movement.scatter_body import ScatterBody
from mind_mlir.mlir.bindings import Operation, Value, ir, tensor
from mind_mlir.mlir.values import definition, is_defined_inside, terminator_of
from mind_mlir.ops.gather_scatter import LINES_ATTRIBUTE, SCATTER_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View, Views
    from mind_mlir.target import Target

#: The most operations that are repeated one element at a time rather than done in vectors.
_FEW = 24


def compute_in_scatters(function: Operation, views: Views, target: Target) -> None:
    """Let scatters in ``function``, linalg on tensors, compute what they alone read.

    Elements that are looked up elsewhere are left to threads, unless these share the updates. Of longer rows
    the elements are computed, not the places.
    """
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        if SCATTER_ATTRIBUTE in op.attributes:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    function.walk(collect)
    for loop in found:
        single = LINES_ATTRIBUTE in loop.attributes
        looks_up = single and has_tables(loop, target)
        waiting = _reads(loop if single else ScatterBody(loop).columns)
        while waiting:
            waiting += _computed_here(waiting.pop(), loop, views, looks_up=looks_up)


def _reads(loop: Operation) -> list[Operation]:
    """Return what reads elements of tensors that ``loop`` does not make."""
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        if op.name == "tensor.extract" and not is_defined_inside(op.operands[0], loop):
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    loop.walk(collect)
    return found


def _computed_here(read: Operation, loop: Operation, views: Views, *, looks_up: bool) -> list[Operation]:
    """Let the element that ``read`` reads be computed in its place, if it can; return what that reads."""
    value = read.operands[0]
    number = filler(value)
    if number is not None:
        read.results[0].replace_all_uses_with(number)
        read.erase()
        erase_source(value)
        return []
    op = definition(unreshaped(value))
    view = None if op is None or len(read.operands) != 2 else views.of(op)
    if op is None or view is None or op.block != loop.block or not _is_simple(view, looks_up=looks_up):
        return []
    if not _is_cast(view) and not _is_read_once(value):
        return []
    with ir.InsertionPoint(loop), read.location:
        flat = [_flat(each) for each in view.inputs]
    made: dict[Value, Value] = {}
    reads: list[Operation] = []
    with ir.InsertionPoint(read), read.location:
        for argument, each, access in zip(view.body.arguments, flat, view.accesses, strict=False):
            is_tensor = isinstance(each.type, ir.RankedTensorType)
            places = [read.operands[1]] if is_tensor and access else []
            made[argument] = tensor.ExtractOp(each, places).result if is_tensor else each
            if is_tensor:
                reads.append(definition(made[argument]))
    with ir.InsertionPoint(read):
        operations = [each.operation for each in view.body.operations]
        made = copied(operations[:-1], made)
    (element,) = terminator_of(view.body).operands
    read.results[0].replace_all_uses_with(made.get(element, element))
    read.erase()
    erase_source(value)
    return reads


def _flat(value: Value) -> Value:
    """Return a tensor of several dimensions as one of one; emits the reshape."""
    if not isinstance(value.type, ir.RankedTensorType) or value.type.rank < 2:
        return value
    return collapse_value(value, [math.prod(value.type.shape)])


def _is_simple(view: View, *, looks_up: bool) -> bool:
    """Return whether ``view`` does little for each element, of elements in the same place and of numbers."""
    rank = len(view.extents)
    operations = [op.operation for op in view.body.operations if op.operation.name != "arith.constant"]
    names = ("arith.", "linalg.yield", *(["tensor.extract"] if looks_up else []))
    return (
        view.results == 1
        and not view.reductions
        and not view.used(len(view.operands) - 1)
        and all(not access or is_identity(access, rank) for access in view.accesses)
        and len(operations) <= _FEW
        and all(op.name.startswith(names) for op in operations)
        and all(op.name not in SLOW for op in operations)
    )


def _is_cast(view: View) -> bool:
    """Return whether ``view`` converts a tensor, which is as soon done again as read."""
    return all(op.operation.name in (*CASTS, "linalg.yield") for op in view.body.operations)


def _is_read_once(value: Value) -> bool:
    """Return whether a single operation reads the tensor ``value``, and what it is a reshape of."""
    while len(list(value.uses)) == 1:
        source = definition(value)
        if source is None or unreshaped(value) == value:
            return True
        value = source.operands[0]
    return False
