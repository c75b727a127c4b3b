"""Reductions to single numbers, in loops, of what these loops do not change: computed before the loops.

So the checks of positions that a loop reads at again and again are done once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler, hoistable_loops
from mind_mlir.mlir.bindings import Operation, Value, arith, ir, tensor
from mind_mlir.mlir.values import is_defined_inside

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View, Views


def hoist_reductions(function: Operation, views: Views) -> None:
    """Let ``function``, linalg on tensors, compute reductions of what loops do not change before these."""
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        if op.name.startswith("linalg.") and op.parent.operation != function:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    function.walk(collect)
    for op in found:
        view = views.of(op)
        depth = 0 if view is None else _depth(view)
        if view is not None and depth:
            _hoist(view, depth)


def _depth(view: View) -> int:
    """Return out of how many loops ``view`` can be taken; 0 unless it reduces tensors to numbers."""
    is_number = len(view.reductions) == len(view.extents) > 0
    starts = [number for number in _starts(view) if constant_value(number) is not None]
    if not is_number or len(starts) < len(view.inits):
        return 0
    read = [value for op in view.body.operations for value in op.operands]
    outside = [value for value in read if not is_defined_inside(value, view.op)]
    return min(hoistable_loops(view.op, value) for value in (*view.inputs, *outside))


def _starts(view: View) -> list[Value]:
    """Return the numbers that the results of ``view`` start from, as far as these are known."""
    return [number for number in map(filler, view.inits) if number is not None]


def _hoist(view: View, depth: int) -> None:
    """Move ``view``, and what its results start from, in front of so many loops around it."""
    op, loop = view.op, view.op
    for _ in range(depth):
        loop = loop.parent.operation
    with ir.InsertionPoint(loop), op.location:
        for place, number in enumerate(_starts(view), start=len(view.inputs)):
            value = constant_value(number)
            assert value is not None, "what is hoisted starts from constants"
            start = tensor.FromElementsOp(
                op.operands[place].type, [arith.ConstantOp(number.type, value).result]
            )
            op.operands[place] = start.result
    op.move_before(loop)
