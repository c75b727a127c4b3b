"""Calls of operations: ``matmul(x, w)``, ``sum(x, axes=[1])`` (surface.md, "Programs")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.arguments import bound_arguments, evaluated_in_vain, wrong_count
from mind_mlir.languages.mind.elaboration.builtins import default
from mind_mlir.languages.mind.elaboration.literals import of_kind, tensor
from mind_mlir.languages.mind.elaboration.operators import broadcast
from mind_mlir.languages.mind.elaboration.static import UNKNOWN, keyword
from mind_mlir.languages.mind.elaboration.types import spell
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    Builtin,
    LiteralValue,
    SurfaceValue,
    TupleValue,
    is_bad,
    type_of,
)
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType
    from mind_mlir.languages.mind.elaboration.body import Body
    from mind_mlir.ops.opdef import AttributeDef, OpDef

#: Operations whose operands the language broadcasts to one shape itself.
_ALIGNED = {"Compare", "Select", "And", "Or", "Xor"}


def operation(body: Body, node: nodes.Call, builtin: Builtin, record: OpDef) -> SurfaceValue:
    """Return the results of an operation."""
    tensors = [operand.name for operand in record.operands]
    variadic = bool(record.operands) and record.operands[-1].variadic
    names = [*tensors, *(each.name for each in record.attributes if each.name not in builtin.preset)]
    if variadic:
        return _variadic(body, node, builtin, record)
    bound = bound_arguments(body, node, builtin.name, names)
    if bound is None:
        return evaluated_in_vain(body, node)
    attributes = _attributes(body, node, builtin, record, bound)
    missing = [name for name in tensors if name not in bound]
    if missing:
        wrong_count(body, node, builtin.name, len(tensors), missing)
        return evaluated_in_vain(body, node)
    return _emitted(body, node, record, [bound[name] for name in tensors], attributes, bound)


def _variadic(body: Body, node: nodes.Call, builtin: Builtin, record: OpDef) -> SurfaceValue:
    """Return the results of an operation of any number of tensors: ``concat(a, b, c, axis=0)``."""
    written = [argument.value for argument in node.arguments if argument.name is None]
    if not written:
        wrong_count(body, node, builtin.name, "1 or more", [record.operands[0].name])
        return evaluated_in_vain(body, node)
    named = nodes.Call(node.callee, [each for each in node.arguments if each.name], node.span)
    bound = bound_arguments(body, named, builtin.name, [each.name for each in record.attributes])
    if bound is None:
        return evaluated_in_vain(body, node)
    attributes = _attributes(body, node, builtin, record, bound)
    return _emitted(body, node, record, written, attributes, bound)


def _emitted(
    body: Body,
    node: nodes.Call,
    record: OpDef,
    written: Sequence[nodes.Expression],
    attributes: dict[str, Any] | None,
    bound: dict[str, nodes.Expression],
) -> SurfaceValue:
    operands = _operands(body, written)
    if operands is None or attributes is None:
        return BAD
    places = [each.span for each in written]
    for each in record.attributes if operands else ():
        chosen = default(record, each) if each.default is None and each.name not in attributes else None
        if chosen is not None:
            attributes[each.name] = chosen.of(operands[0].type)
    if record.opcode in _ALIGNED:
        mixed = operands[1:] if record.opcode == "Select" else operands
        if len({value.type.dtype for value in mixed}) == 1:
            aligned = broadcast(body, operands, node.span, node.callee.span, places)
            if aligned is None:
                return BAD
            operands = aligned
    found = body.emit(
        *(record.opcode, operands, node.span),
        operator=node.callee.span,
        places=places,
        attributes=attributes,
        attribute_places={name: bound[name].span for name in attributes if name in bound},
    )
    if found is None:
        return BAD
    return found[0] if len(found) == 1 else TupleValue(found)


def _operands(body: Body, written: Sequence[nodes.Expression]) -> list[Value] | None:
    """Return tensors; a literal takes the dtype of the first tensor that is none, where it is of its kind."""
    values = [body.expression(each) for each in written]
    dtype = next((value.type.dtype for value in values if isinstance(value, Value)), None)
    pairs = zip(values, written, strict=True)
    tensors = [tensor(body, value, each.span, _kind(value, dtype)) for value, each in pairs]
    found = [value for value in tensors if value is not None]
    return found if len(found) == len(tensors) else None


def _kind(value: SurfaceValue, dtype: DType | None) -> DType | None:
    return of_kind(value, dtype) if isinstance(value, LiteralValue) and dtype else None


def _attributes(
    body: Body, node: nodes.Call, builtin: Builtin, record: OpDef, bound: dict[str, nodes.Expression]
) -> dict[str, Any] | None:
    """Return the attributes of an operation, as Python writes them; None where they are wrong."""
    found: dict[str, Any] = dict(builtin.preset)
    good = True
    for attribute in record.attributes:
        if attribute.name not in bound:
            continue
        value = keyword(body, bound[attribute.name])
        if value is UNKNOWN:
            good = False
            _unknown(body, builtin, attribute, bound[attribute.name])
        else:
            found[attribute.name] = value
    open_ = [each for each in record.attributes if each.default is None and each.name not in {*found, *bound}]
    missing = [each.name for each in open_ if default(record, each) is None]
    if missing:
        name = missing[0]
        doc = next(each.doc for each in record.attributes if each.name == name)
        facts = {"expected": len(record.operands) + len(record.attributes), "found": len(node.arguments)}
        message, help_ = f"{builtin.name} lacks {name}", f"write {name}=...: {doc}"
        body.report("E2007", message, node.span, help=help_, function=builtin.name, **facts)
        return None
    return found if good else None


def _unknown(body: Body, builtin: Builtin, attribute: AttributeDef, node: nodes.Expression) -> None:
    value = body.expression(node)
    if is_bad(value):
        return
    found = type_of(value)
    shown = f", found a {spell(found)}" if found is not None else ""
    message = f"{attribute.name} of {builtin.name} must be known when the program is compiled{shown}"
    help_ = f"write a {attribute.kind.phrase}; names of dimensions and constants are known"
    body.report("E2205", message, node.span, help=help_, function=builtin.name, name=attribute.name)
