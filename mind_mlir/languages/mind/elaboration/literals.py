"""Literals: numbers, truth values and nested lists, and constants made of them.

A literal has no dtype of its own: a declared type gives it one, or the other operand of an operator where
that is of its kind; else it is f32, i64 or bool. It becomes a `ConstTensor` where it is used.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import MindError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import MAX_RANK, DType, TensorType
from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.types import SurfaceType, TupleOf, described, leaves, spell
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    FUNCTIONS,
    Bad,
    LiteralValue,
    StructValue,
    SurfaceValue,
    TupleValue,
    literal_shape,
    type_of,
    typed,
)
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.resolve import Expected
    from mind_mlir.languages.mind.syntax.nodes import Span

#: Elements of a constant that a program may spell or make; more belongs into an argument.
MAX_ELEMENTS = 1 << 24
#: Elements of nested lists, each of which is looked at; lists of lists soon have very many.
MAX_LISTED = 1 << 16


@rule(nodes.Number)
def _number(body: Body, node: nodes.Number, expected: Expected) -> SurfaceValue:
    return LiteralValue(node.value, "int" if isinstance(node.value, int) else "float")


@rule(nodes.Bool)
def _bool(body: Body, node: nodes.Bool, expected: Expected) -> SurfaceValue:
    return LiteralValue(node.value, "bool")


@rule(nodes.String)
def _string(body: Body, node: nodes.String, expected: Expected) -> SurfaceValue:
    return body.report("E2203", "a string is no value of a tensor program", node.span, help="leave it out")


@rule(nodes.Invalid)
def _invalid(body: Body, node: nodes.Invalid, expected: Expected) -> SurfaceValue:
    body.failed = True
    return BAD


@rule(nodes.List)
def _list(body: Body, node: nodes.List, expected: Expected) -> SurfaceValue:
    if not node.items:
        help_ = "a tensor has one element at least: write the elements"
        return body.report("E2003", "nothing says of which type an empty list is", node.span, help=help_)
    inner = _element(expected)
    items = [body.expression(item, inner) for item in node.items]
    if any(isinstance(item, Bad) for item in items):
        return BAD
    literals = [item for item in items if isinstance(item, LiteralValue)]
    if len(literals) == len(items):
        return _literal_list(body, node, literals)
    return _stacked(body, node, items, inner)


def _element(expected: Expected) -> Expected:
    """Return what is known of the elements of what ``expected`` is known of."""
    if isinstance(expected, TensorType):
        return TensorType(expected.dtype, expected.shape[1:]) if expected.rank else None
    return expected if isinstance(expected, DType) else None


def _literal_list(body: Body, node: nodes.List, items: list[LiteralValue]) -> SurfaceValue:
    first = items[0]
    kinds = {item.kind for item in items}
    if kinds == {"int", "float"}:  # [1, 2.5] is a list of floats
        kinds = {"float"}
    shape = literal_shape(first.data)
    for item, written in zip(items, node.items, strict=True):
        if (found := literal_shape(item.data)) != shape:
            message = f"elements of one list have different shapes: {list(shape)} and {list(found)}"
            help_ = "give all rows of a tensor the same length"
            facts = {"declared": list(shape), "found": list(found)}
            return body.report("E3010", message, written.span, help=help_, **facts)
    if len(kinds) > 1:
        message, help_ = "numbers and truth values in one list", "a tensor has elements of one type"
        other = next(item.kind for item in items if item.kind != first.kind)
        return body.report("E2001", message, node.span, help=help_, expected=first.kind, found=other)
    if math.prod((len(items), *shape)) > MAX_LISTED or len(shape) >= MAX_RANK:
        message = f"a literal of more than {MAX_LISTED:,} elements, or {MAX_RANK} dimensions"
        return body.report("E7001", message, node.span, help="pass it as an argument")
    dtypes = {item.dtype for item in items} - {None}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    return LiteralValue([item.data for item in items], kinds.pop(), dtype)


def _stacked(body: Body, node: nodes.List, items: list[SurfaceValue], expected: Expected) -> SurfaceValue:
    """Return the tensor of values that are not all literals, one after the other on a new first axis."""
    known = next((item.type for item in items if isinstance(item, Value)), None)
    wanted = expected or (known.dtype if known else None)
    rows: list[Value] = []
    for item, written in zip(items, node.items, strict=True):
        value = tensor(body, item, written.span, wanted)
        if value is None:
            return BAD
        row = body.emit_one("ExpandDims", [value], written.span, attributes={"axes": [0]})
        if row is None:
            return BAD
        rows.append(row)
    if len(rows) == 1:
        return rows[0]
    places = [item.span for item in node.items]
    return body.emit_one("Concat", rows, node.span, places=places, attributes={"axis": 0}) or BAD


def tensor(
    body: Body, value: SurfaceValue, span: Span, expected: Expected = None, what: str = "a tensor"
) -> Value | None:
    """Return ``value`` as a tensor of the IR; None where it is none, which is reported, or bad."""
    if isinstance(value, Value):
        return value
    if isinstance(value, LiteralValue):
        return constant(body, value, span, expected)
    if isinstance(value, FUNCTIONS):
        body.report("E2203", f"a function stands where {what} is wanted", span, help="call it: f(x)")
    elif not isinstance(value, Bad):
        shown = spell(found) if (found := type_of(value)) else ""
        name = f"a value of type {shown}" if shown else "a tuple that holds a function"
        message = f"expected {what}, found {name}"
        body.report("E2001", message, span, help="take a field of it", expected=what, found=shown)
    return None


def constant(body: Body, literal: LiteralValue, span: Span, expected: Expected = None) -> Value | None:
    """Return the constant that a literal stands for; None where there is none, which is reported."""
    if literal.value is not None:
        return literal.value
    dtype = literal.dtype or _dtype(literal, expected)
    shape = literal_shape(literal.data)
    wanted = expected if isinstance(expected, TensorType) and literal.dtype is None else None
    if wanted is not None and wanted.shape != shape and shape:
        message = f"a literal of shape {list(shape)} is declared as {spell(wanted)}"
        help_ = "give it the shape that is declared, or declare the shape that it has"
        facts = {"declared": list(wanted.shape), "found": list(shape)}
        body.report("E3010", message, span, help=help_, **facts)
        return None
    try:
        data = TensorLiteral.of(literal.data, dtype)
    except MindError as error:
        body.file.extend(error.diagnostics, span)
        return None
    return made(body, data, span)


def made(body: Body, data: TensorLiteral, span: Span) -> Value | None:
    """Return the constant of ``data``."""
    attributes = {"dtype": data.type.dtype, "shape": data.type.shape, "value": data}
    return body.emit_one("ConstTensor", (), span, attributes=attributes)


def _dtype(literal: LiteralValue, expected: Expected) -> DType:
    """Return the dtype of a literal where ``expected`` is known: integers may stand for floats there."""
    dtype = expected.dtype if isinstance(expected, TensorType) else expected
    if not isinstance(dtype, DType):
        return literal.default_dtype
    if literal.kind == "int" and (dtype.is_integer or dtype.is_float):
        return dtype
    return dtype if literal.kind == "float" and dtype.is_float else literal.default_dtype


def of_kind(literal: LiteralValue, dtype: DType) -> DType | None:
    """Return ``dtype`` where it is of the literal's kind: the other operand gives it to it; or None."""
    if literal.kind == "int":
        return dtype if dtype.is_integer else None
    return dtype if literal.kind == "float" and dtype.is_float else None


def settled(body: Body, value: SurfaceValue, span: Span, expected: Expected = None) -> SurfaceValue:
    """Return ``value`` with constants for all literals in it, which remain known as literals."""
    if isinstance(value, LiteralValue):
        if value.value is not None:
            return value
        made_ = constant(body, value, span, expected)
        return BAD if made_ is None else replace(value, dtype=made_.type.dtype, value=made_)
    if isinstance(value, TupleValue):
        types: Any = expected.items if isinstance(expected, TupleOf) else ()
        if len(types) != len(value.items):
            types = [None] * len(value.items)
        items = [settled(body, item, span, type_) for item, type_ in zip(value.items, types, strict=True)]
        return TupleValue(tuple(items))
    if isinstance(value, StructValue):
        return StructValue(
            value.name, {name: settled(body, part, span) for name, part in value.fields.items()}
        )
    return value


def plain(body: Body, value: SurfaceValue, span: Span, expected: Expected = None) -> SurfaceValue:
    """Return ``value`` with constants in the place of all literals, as block parameters take it."""
    found = settled(body, value, span, expected)
    if isinstance(found, LiteralValue):
        return found.value or BAD
    if isinstance(found, TupleValue):
        return TupleValue(tuple([plain(body, item, span) for item in found.items]))
    if isinstance(found, StructValue):
        parts = {name: plain(body, part, span) for name, part in found.fields.items()}
        return StructValue(found.name, parts)
    return found


def coerced(body: Body, value: SurfaceValue, type_: SurfaceType, span: Span, what: str = "") -> SurfaceValue:
    """Return ``value``, which must be of ``type_`` (E2001); literals take their dtype from it."""
    found = plain(body, value, span, type_)
    if isinstance(found, Bad):
        return BAD
    actual = type_of(found)
    if actual == type_:
        return found
    if actual is None and not isinstance(found, FUNCTIONS):
        return BAD
    said, found_, help_ = f"expected {spell(type_)}{what}", described(actual), _way_out(actual, type_)
    return body.mismatch(said, span, help_, expected=spell(type_), found=found_)


def _way_out(found: SurfaceType | None, wanted: SurfaceType) -> str | None:
    if found is None:
        return "call it: f(x)"
    if not isinstance(found, TensorType) or not isinstance(wanted, TensorType):
        return None
    if found.dtype is not wanted.dtype and found.shape == wanted.shape:
        return f"cast(x, dtype={spell(TensorType(wanted.dtype))}) converts elements"
    if found.dtype is wanted.dtype and sorted(found.extents) == sorted(wanted.extents):
        return "transpose or reshape it"
    return "the shape or the declared type is not what was meant"


def placeholder(body: Body, type_: SurfaceType) -> SurfaceValue:
    """Return a value of ``type_`` that nothing computes, in the place of one that has been reported."""
    body.failed = True
    return typed(type_, iter([body.builder.fresh(leaf) for _, leaf in leaves(type_)]))
