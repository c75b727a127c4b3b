"""Recognises queries that are scaled by a number on their way to the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.sources import Scale
from mind_mlir.lowering.schedule.reading.values import constant_value, filler
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.reading.view import View
    from mind_mlir.mlir.bindings import Attribute, Value

#: Operations of an element and a number, and where the number may stand.
_SCALING = {"arith.mulf": (1, 0), "arith.divf": (1,)}
_FLOATS = ("f32", "f64")


def match_scale(view: View) -> tuple[int, Scale] | None:
    """Return which operand ``view`` scales by a number, and how; None if it computes anything else.

    The number makes nothing greater: what is finite stays so.
    """
    if view.reductions or view.results != 1 or len(view.body.operations) != 2:
        return None
    op = view.body.operations[0].operation
    if op.name not in _SCALING or str(op.results[0].type) not in _FLOATS:
        return None
    for place in _SCALING[op.name]:
        argument = op.operands[1 - place]
        value = _number(op.operands[place], view)
        if value is None or not isinstance(argument, ir.BlockArgument):
            continue
        magnitude = abs(float(ir.FloatAttr(value).value))
        if magnitude <= 1 if op.name == "arith.mulf" else magnitude >= 1:
            return argument.arg_number, Scale(op, value, place == 0)
    return None


def _number(value: Value, view: View) -> Attribute | None:
    """Return the number that ``value`` in the body of ``view`` is everywhere; None if it is no such."""
    if not isinstance(value, ir.BlockArgument):
        return constant_value(value)
    operand = view.operands[value.arg_number]
    if not isinstance(operand.type, ir.RankedTensorType):
        return constant_value(operand)
    filled, op = filler(operand), definition(operand)
    if filled is not None:
        return constant_value(filled)
    attribute = op.attributes["value"] if op is not None and op.name == "arith.constant" else None
    is_splat = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    return ir.DenseElementsAttr(attribute).get_splat_value() if is_splat else None
