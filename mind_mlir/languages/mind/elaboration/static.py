"""Values that are known when a program is compiled: shapes, axes, bounds of slices, keywords.

Integers, truth values, names of dimensions, variables that are literals, lists of these, and sums,
differences and products of integers. What stands for one of them makes no operation.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.mind.elaboration.types import DTYPES
from mind_mlir.languages.mind.elaboration.values import LiteralValue
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.body import Body

#: Stands for what is not known.
UNKNOWN = object()
_LIMIT = 2**63
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def known(body: Body, node: nodes.Expression) -> Any:
    """Return the Python value that ``node`` stands for, or `UNKNOWN`; nothing is reported."""
    if isinstance(node, (nodes.Number, nodes.Bool, nodes.String)):
        return node.value
    if isinstance(node, nodes.Name):
        return _name(body, node.text)
    if isinstance(node, (nodes.List, nodes.Tuple)):
        items = [known(body, item) for item in node.items]
        return UNKNOWN if any(item is UNKNOWN for item in items) else items
    if isinstance(node, nodes.Unary) and node.operator == "-":
        operand = known(body, node.operand)
        return -operand if type(operand) in (int, float) else UNKNOWN
    if isinstance(node, nodes.Binary):
        return _arithmetic(body, node)
    return UNKNOWN


def known_integer(body: Body, node: nodes.Expression) -> int | None:
    """Return the integer that ``node`` stands for, or None."""
    found = known(body, node)
    return found if type(found) is int else None


def _name(body: Body, name: str) -> Any:
    variable = body.scopes.find(name)
    if variable is not None:
        return variable.value.data if isinstance(variable.value, LiteralValue) else UNKNOWN
    if name in body.extents:
        return body.extents[name]
    return body.file.constants[name].data if name in body.file.constants else UNKNOWN


def keyword(body: Body, node: nodes.Expression) -> Any:
    """Return what `known` does, and of other names the name itself: a dtype, ``Same``."""
    found = known(body, node)
    if found is UNKNOWN and isinstance(node, nodes.Name) and body.scopes.find(node.text) is None:
        return DTYPES.get(node.text, node.text)
    if found is UNKNOWN and isinstance(node, nodes.Call) and len(node.arguments) == 1:
        return known(body, node.arguments[0].value)  # Custom([[1, 1], [1, 1]])
    return found


def _arithmetic(body: Body, node: nodes.Binary) -> Any:
    chain: list[nodes.Binary] = []
    left: nodes.Expression = node
    while isinstance(left, nodes.Binary):  # long sums lean to the left
        if left.operator not in _OPERATORS:
            return UNKNOWN
        chain.append(left)
        left = left.left
    total = known(body, left)
    for each in reversed(chain):
        right = known(body, each.right)
        if type(total) is not int or type(right) is not int:
            return UNKNOWN
        total = _OPERATORS[each.operator](total, right)
        if abs(total) >= _LIMIT:
            return UNKNOWN
    return total
