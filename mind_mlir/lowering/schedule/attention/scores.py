"""The scores of an attention: products of queries, which may be scaled on their way, and keys."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filling_constant
from mind_mlir.mlir.bindings import Attribute, Operation, Value, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.lowering.schedule.scalars.axes import Source


@dataclasses.dataclass(frozen=True)
class Scale:
    """An operation of an element and a number, in this order or, if ``swapped``, in the other one."""

    op: Operation
    number: Attribute
    swapped: bool


@dataclasses.dataclass(frozen=True)
class Score:
    """Sums of products: of a row of ``queries`` and one of ``keys``, along axis ``depth``.

    Queries are scaled on their way, if ``scale`` says how.
    """

    op: Operation
    queries: Source
    keys: Source
    depth: int
    scale: Scale | None = None


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
    found, op = filling_constant(operand), definition(operand)
    if found is not None or op is None or op.name != "arith.constant":
        return found
    return splat_of(op.attributes["value"])


def splat_of(attribute: Attribute) -> Attribute | None:
    """Return the number that all elements of a literal are; None if they differ."""
    is_splat = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    return ir.DenseElementsAttr(attribute).get_splat_value() if is_splat else None
