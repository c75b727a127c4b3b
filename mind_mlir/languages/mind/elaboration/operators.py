"""Operators, on tensors of one dtype whose shapes broadcast (surface.md, "Programs")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, Shape
from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.literals import of_kind, tensor
from mind_mlir.languages.mind.elaboration.scopes import walk
from mind_mlir.languages.mind.elaboration.types import BOOL, spell, spell_dtype
from mind_mlir.languages.mind.elaboration.values import BAD, LiteralValue, SurfaceValue, is_bad
from mind_mlir.languages.mind.elaboration.wording import ARITHMETIC, LOGICAL, reworded
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.ops.shapes import aligned, misfit, misfit_at, stretched

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.resolve import Expected
    from mind_mlir.languages.mind.syntax.nodes import Span

COMPARISONS: Mapping[str, str] = {
    "<": "Less",
    "<=": "LessEqual",
    ">": "Greater",
    ">=": "GreaterEqual",
    "==": "Equal",
    "!=": "NotEqual",
}


@rule(nodes.Unary)
def _unary(body: Body, node: nodes.Unary, expected: Expected) -> SurfaceValue:
    if node.operator == "!":
        value = condition(body, body.expression(node.operand, BOOL), node.operand.span, "!")
        return (value and body.emit_one("Not", [value], node.span, operator=node.operator_span)) or BAD
    operand = body.expression(node.operand, expected)
    if isinstance(operand, LiteralValue) and operand.value is None and operand.kind != "bool":
        return LiteralValue(_negated(operand.data), operand.kind, operand.dtype)
    value = tensor(body, operand, node.operand.span, expected)
    if value is None:
        return BAD
    places = [node.operand.span]
    return body.emit_one("Neg", [value], node.span, operator=node.operator_span, places=places) or BAD


def _negated(data: object) -> object:
    if isinstance(data, list):
        return [_negated(item) for item in data]
    assert isinstance(data, (int, float)), "a literal is of numbers"
    return -data


@rule(nodes.Binary)
def _binary(body: Body, node: nodes.Binary, expected: Expected) -> SurfaceValue:
    chain: list[nodes.Binary] = []
    left: nodes.Expression = node
    while isinstance(left, nodes.Binary):  # long sums lean to the left: no recursion along them
        chain.append(left)
        left = left.left
    hint = None if any(each.operator in COMPARISONS for each in chain) else expected
    value = body.expression(left, hint)
    span = left.span
    for each in reversed(chain):
        if each.operator in LOGICAL:
            value = _logical(body, each, value, span)
        else:
            value = _applied(body, each, value, span, body.expression(each.right, hint))
        span = each.span
    return value


def _applied(
    body: Body, node: nodes.Binary, left: SurfaceValue, left_span: Span, right: SurfaceValue
) -> SurfaceValue:
    """Return what an operator makes of its operands."""
    if is_bad(left) or is_bad(right):
        return BAD
    lhs = tensor(body, left, left_span, _given_by(left, right), "a tensor on the left")
    rhs = tensor(body, right, node.right.span, _given_by(right, lhs or left), "a tensor on the right")
    if lhs is None or rhs is None:
        return BAD
    if lhs.type.dtype is not rhs.type.dtype:
        return _different(body, node, lhs, rhs, left, right)
    places = [left_span, node.right.span]
    if node.operator in ARITHMETIC:
        opcode = ARITHMETIC[node.operator]
        return body.emit_one(opcode, [lhs, rhs], node.span, operator=node.operator_span, places=places) or BAD
    if node.operator not in COMPARISONS:
        return body.report("E2203", f"there is no operator {node.operator}", node.operator_span)
    aligned = broadcast(body, [lhs, rhs], node.span, node.operator_span, places)
    if aligned is None:
        return BAD
    details = {"operator": node.operator_span, "places": places}
    attributes = {"op": COMPARISONS[node.operator]}
    return body.emit_one("Compare", aligned, node.span, attributes=attributes, **details) or BAD


def _given_by(value: SurfaceValue, other: SurfaceValue) -> DType | None:
    """Return the dtype that the literal ``value`` takes from the other operand."""
    if not isinstance(value, LiteralValue):
        return None
    if isinstance(other, LiteralValue):
        return of_kind(value, other.dtype) if other.dtype else None
    return of_kind(value, other.type.dtype) if isinstance(other, Value) else None


def _different(
    body: Body, node: nodes.Binary, lhs: Value, rhs: Value, left: SurfaceValue, right: SurfaceValue
) -> SurfaceValue:
    names = [spell_dtype(lhs.type.dtype), spell_dtype(rhs.type.dtype)]
    literals = [each for each in (left, right) if isinstance(each, LiteralValue)]
    literals.sort(key=lambda each: each.value is not None)  # what is written here before a constant's name
    literal = literals[0] if literals else None
    help_ = f"convert one: cast(x, dtype={names[0]})"
    if literal is not None and literal.kind == "int" and literal.is_scalar:
        help_ = f"write {literal.data}.0 for a float"
    elif literal is not None and literal.value is not None:
        own, other = (lhs, rhs) if literal is left else (rhs, lhs)
        wanted = spell(own.type.with_dtype(other.type.dtype))
        help_ = f"declare the constant with the type that is wanted: let c: {wanted} = ...;"
    message = f"Dtype mismatch: {names[0]} {node.operator} {names[1]}"
    notes = (f"left operand is {spell(lhs.type)}", f"right operand is {spell(rhs.type)}")
    facts = {"operation": node.operator, "left": names[0], "right": names[1]}
    return body.report("E2004", message, node.operator_span, notes=notes, help=help_, **facts)


def broadcast(
    body: Body, values: list[Value], span: Span, operator: Span, places: list[Span]
) -> list[Value] | None:
    """Return values of one shape, to which all of them broadcast (E3001), for what broadcasts nothing."""
    shape: Shape = values[0].type.extents
    for index, value in enumerate(values[1:], 1):
        pairs = aligned(shape, value.type.extents)
        axis = misfit(pairs)
        if axis is not None:
            wrong, place = misfit_at(axis, shape, value.type.extents), operator or places[index]
            facts = {"operation": body.file.source.text[slice(*place)], **wrong.context}
            body.failed = True
            body.file.extend(reworded([replace(wrong, context=facts)]), place)
            return None
        shape = stretched(pairs)
    return [
        value
        if value.type.extents == shape
        else body.builder.emit(
            "BroadcastTo", value, source=body.file.info(span, operator, [place]), result_shape=shape
        )
        for value, place in zip(values, places, strict=True)
    ]


def condition(body: Body, value: SurfaceValue, span: Span, where: str) -> Value | None:
    """Return a truth value; None where it is none, which is reported (E2001)."""
    found = tensor(body, value, span, BOOL, "a bool")
    if found is None or found.type == BOOL:
        return found
    if found.type.dtype is DType.I1:
        help_ = "reduce it to one truth value, or take one element: x[0]"
    else:
        help_ = "compare it: x > 0.0" if found.type.dtype.is_float else "compare it: n != 0"
    body.mismatch(f"{where} takes a bool", span, help_, expected="bool", found=spell(found.type))
    return None


def _logical(body: Body, node: nodes.Binary, left: SurfaceValue, left_span: Span) -> SurfaceValue:
    """Return ``a && b`` or ``a || b``, where ``b`` is only computed where it is wanted if it may fail."""
    lhs = condition(body, left, left_span, node.operator)
    blocks = body.blocks
    if _harmless(node.right):
        rhs = condition(body, body.expression(node.right, BOOL), node.right.span, node.operator)
        if lhs is None or rhs is None:
            return BAD
        places = [left_span, node.right.span]
        opcode = LOGICAL[node.operator]
        return body.emit_one(opcode, [lhs, rhs], node.span, operator=node.operator_span, places=places) or BAD
    if lhs is None:
        body.expression(node.right, BOOL)
        return BAD
    right, join = blocks.new("right"), blocks.new("join", [BOOL])
    place = body.file.locate(left_span)
    if node.operator == "&&":
        blocks.cond_branch(lhs, right, join, place, otherwise_values=[lhs])
    else:
        blocks.cond_branch(lhs, join, right, place, then_values=[lhs])
    blocks.begin(right)
    rhs = condition(body, body.expression(node.right, BOOL), node.right.span, node.operator)
    blocks.branch(join, [rhs or lhs])
    blocks.begin(join)
    return BAD if rhs is None else join.parameters[0]


def _harmless(node: nodes.Expression) -> bool:
    """Return whether ``node`` can be computed although nobody wants it: it never fails, and takes no time."""
    plain = (nodes.Name, nodes.Number, nodes.Bool, nodes.Field, nodes.Unary, nodes.Binary, nodes.Ident)
    return all(
        isinstance(each, plain) and not (isinstance(each, nodes.Binary) and each.operator == "/")
        for each in walk(node)
    )
