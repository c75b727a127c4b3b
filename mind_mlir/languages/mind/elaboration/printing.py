"""``print("x = {}", x)``: prints when the program comes by. The language has no such function elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.effects import PRINT
from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.arguments import evaluated_in_vain, other_count
from mind_mlir.languages.mind.elaboration.literals import plain
from mind_mlir.languages.mind.elaboration.values import BAD, UNIT_VALUE, SurfaceValue, is_bad
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.ops.custom_attributes import custom_attributes
from mind_mlir.ops.printing import check_fields, numbered

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.body import Body


def printed(body: Body, node: nodes.Call) -> SurfaceValue:
    """Append what prints the arguments of a call behind its format."""
    if not node.arguments:
        other_count(body, "print", "a format and more", 0, node.span, 'write print("x = {}", x)')
        return BAD
    (first, *rest) = node.arguments
    if first.name is not None or not isinstance(first.value, nodes.String):
        help_ = 'write print("x = {}", x)'
        body.report("E2205", "print begins with its format, which is a string", first.value.span, help=help_)
        return evaluated_in_vain(body, node)
    values = [plain(body, body.expression(each.value), each.value.span) for each in rest]
    if any(map(is_bad, values)):
        return BAD
    for each, value in zip(rest, values, strict=True):
        if not isinstance(value, Value):
            help_ = "print the fields of a struct, and the parts of a tuple, one by one"
            return body.report("E2203", "print takes tensors and numbers", each.value.span, help=help_)
    args = [value for each, value in zip(rest, values, strict=True) if each.name is None]
    kwargs = {each.name.text: value for each, value in zip(rest, values, strict=True) if each.name}
    operands: list[Value] = []
    try:
        line = numbered(first.value.value, args, kwargs, Value, operands)
        check_fields(line, [value.type.dtype for value in operands])
    except ValueError as error:
        return body.report("E2205", f"print: {error}", first.value.span, help='as in print("x = {:.3f}", x)')
    attributes = {"target": PRINT, "attrs": custom_attributes({"format": line})}
    body.emit_one("CustomCall", operands, node.span, attributes=attributes)
    return UNIT_VALUE
