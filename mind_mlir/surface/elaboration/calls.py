"""Names and calls: of functions of the program, of built-in ones and of Python's (surface.md, "Programs")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import MindError
from mind_mlir.diagnostics.suggestions import did_you_mean
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.surface.elaboration import constants, derivatives
from mind_mlir.surface.elaboration.body import rule
from mind_mlir.surface.elaboration.builtins import CONSTANTS, builtins, modules
from mind_mlir.surface.elaboration.literals import of_kind, placeholder, tensor
from mind_mlir.surface.elaboration.operators import broadcast
from mind_mlir.surface.elaboration.resolve import hint
from mind_mlir.surface.elaboration.static import UNKNOWN, keyword
from mind_mlir.surface.elaboration.types import DTYPES, UNIT, spell
from mind_mlir.surface.elaboration.values import (
    BAD,
    UNIT_VALUE,
    Bad,
    Builtin,
    Derived,
    Foreign,
    Literal,
    Pullback,
    Routine,
    SurfaceValue,
    TupleValue,
    is_bad,
    type_of,
    typed,
)
from mind_mlir.surface.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.types import DType
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import AttributeDef, OpDef
    from mind_mlir.surface.elaboration.body import Body
    from mind_mlir.surface.elaboration.resolve import Expected
    from mind_mlir.surface.syntax.nodes import Span

#: Operations that take operands of one shape, to which the language broadcasts them.
_ALIGNED = {"Compare", "Select", "And", "Or", "Xor"}


@rule(nodes.Name)
def _name(body: Body, node: nodes.Name, expected: Expected) -> SurfaceValue:
    del expected
    name, file = node.text, body.file
    variable = body.scopes.find(name)
    if variable is not None:
        return variable.value
    if name in body.extents:
        return Literal(body.extents[name], "int")
    if name in file.constants:
        return file.constants[name]
    if name in file.functions:
        return Routine(file.functions[name])
    if name in file.foreign:
        return Foreign(name, file.foreign[name])
    if name in builtins():
        return builtins()[name]
    if name in (*DTYPES, *file.structs, *file.aliases):
        return body.report(
            "E2203",
            f"{name} is a type, not a value",
            node.span,
            help=f"write {name} {{ ... }} for a value of a struct" if name in file.structs else None,
        )
    if name in file.unknown:
        body.failed = True
        return BAD
    called = _CALLED.match(file.source.text, node.span[1]) is not None
    guessed = len(file.findings) < _GUESSED
    near = did_you_mean(name, _known_names(body, called=called)) if guessed else ""
    body.report(
        "E2002",
        f"{name} is not declared{near}",
        node.span,
        help=_MODULE if name in modules() else _FUNCTIONS if called else _VARIABLES,
        name=name,
    )
    body.scopes.declare_everywhere(name, BAD)
    return BAD


#: Behind so many findings nobody is told which name is nearly another: each takes a look at all names.
_GUESSED = 100
#: What stands behind the name of a function that is called.
_CALLED = re.compile(r"\s*\(")
_VARIABLES = "declare it with let, as a parameter or as a function"
_MODULE = "functions of a module are written alone: sqrt(x)"
_FUNCTIONS = "declare it with fn; mind-mlir ops lists the built-in functions"


def _known_names(body: Body, *, called: bool) -> list[str]:
    file = body.file
    own = [*body.scopes.names(), *body.extents, *file.constants, *file.functions, *file.foreign]
    return list(dict.fromkeys([*own, *builtins()] if called else own))


@rule(nodes.Call)
def _call(body: Body, node: nodes.Call, expected: Expected) -> SurfaceValue:
    callee = body.expression(node.callee)
    if isinstance(callee, Builtin):
        if callee.record is not None:
            return _operation(body, node, callee, callee.record)
        if callee.name in CONSTANTS:
            return constants.made_by(body, node, callee.name, expected)
        return derivatives.derived(body, node, callee.name)
    if isinstance(callee, Routine):
        names = [parameter.name.text for parameter in callee.node.parameters]
        written = ordered(body, node, callee.name, names, names)
        if written is None:
            return evaluated_in_vain(body, node)
        given = [body.expression(each, _hint(body, callee, place)) for place, each in enumerate(written)]
        return applied(body, callee, given, [each.span for each in written], node.span)
    given = [body.expression(argument.value) for argument in node.arguments]
    if isinstance(callee, Bad):
        return BAD
    spans = [argument.value.span for argument in node.arguments]
    if isinstance(callee, (Derived, Foreign, Pullback)):
        named = next((argument.name for argument in node.arguments if argument.name), None)
        if named is not None:
            return body.report(
                "E2204",
                f"this call takes its arguments by position, not {named.text} by name",
                named.span,
                help="leave out the name",
                name=named.text,
            )
        return applied(body, callee, given, spans, node.span)
    found = type_of(callee)
    shown = spell(found) if found is not None else "tuple"
    return body.report(
        "E2203",
        f"a {shown} cannot be called",
        node.callee.span,
        help="only functions are called; x[i] is an element of x",
    )


def evaluated_in_vain(body: Body, node: nodes.Call) -> SurfaceValue:
    """Elaborate the arguments of a call that has been reported, for what is wrong with themselves."""
    for argument in node.arguments:
        if not isinstance(argument.value, nodes.Name):  # a keyword, maybe
            body.expression(argument.value)
    return BAD


def _hint(body: Body, function: Routine, place: int) -> Expected:
    return hint(body.file, function.node.parameters[place].type, dict(function.extents))


def applied(
    body: Body, function: SurfaceValue, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> SurfaceValue:
    """Return what a function of the program, of Python, or a derivative makes of its arguments."""
    if isinstance(function, Pullback):
        return derivatives.pulled_back(body, function, given, spans, span)
    if isinstance(function, Derived) and function.kind == "vjp":
        return derivatives.vjp(body, function, given, spans, span)
    found = derivatives.used(body, function, given, spans, span)
    if found is None:
        return BAD
    if found.instance is None:
        return BAD if found.result is None else placeholder(body, found.result)
    if found.result == UNIT:  # nothing comes of it, and nothing happens in it
        return UNIT_VALUE
    info = body.file.info(span)
    try:
        results = body.file.unit.call(body.builder, found.instance, found.operands, info)
    except MindError as error:  # of operands that are placeholders
        body.file.extend(error.diagnostics, span)
        return BAD
    assert found.result is not None, "an instance has a result"
    return typed(found.result, iter(results))


def ordered(
    body: Body, node: nodes.Call, function: str, names: Sequence[str], required: Sequence[str]
) -> list[nodes.Expression] | None:
    """Return the arguments of a call in the order of ``names``; None where they are wrong (E2007, E2204)."""
    bound = bound_arguments(body, node, function, names)
    if bound is None:
        return None
    missing = [name for name in required if name not in bound]
    if missing:
        wrong_count(body, node, function, len(names), missing)
        return None
    return [bound[name] for name in names if name in bound]


def wrong_count(
    body: Body, node: nodes.Call, function: str, expected: int | str, missing: Sequence[str] = ()
) -> None:
    """Report E2007; ``missing`` are the parameters that are given nothing, where that is known."""
    found = len(node.arguments)
    plural = "" if expected == 1 else "s"
    body.report(
        "E2007",
        f"{function} takes {expected} argument{plural}, found {found}",
        node.span,
        help=f"there is nothing for {', '.join(missing)}" if missing else "leave out what is too much",
        function=function,
        expected=expected,
        found=found,
    )


def bound_arguments(
    body: Body, node: nodes.Call, function: str, names: Sequence[str]
) -> dict[str, nodes.Expression] | None:
    """Return the arguments of a call by the names of parameters; None where they are wrong (E2007, E2204)."""
    positional = [argument for argument in node.arguments if argument.name is None]
    if len(positional) > len(names):
        wrong_count(body, node, function, len(names))
        return None
    bound = {name: argument.value for name, argument in zip(names, positional, strict=False)}
    good = True
    for argument in node.arguments:
        if argument.name is None:
            continue
        name = argument.name.text
        if name in names and name not in bound:
            bound[name] = argument.value
            continue
        good = False
        twice = name in names
        near = did_you_mean(name, [each for each in names if each not in bound])
        body.report(
            "E2204",
            f"{name} is given twice" if twice else f"{function} has no parameter {name}{near}",
            argument.name.span,
            help=f"its parameters are {', '.join(names)}" if names else "it has no parameters",
            function=function,
            name=name,
        )
    return bound if good else None


def _operation(body: Body, node: nodes.Call, builtin: Builtin, record: OpDef) -> SurfaceValue:
    """Return the results of an operation."""
    tensors = [operand.name for operand in record.operands]
    variadic = bool(record.operands) and record.operands[-1].variadic
    names = [*tensors, *(attribute.name for attribute in record.attributes)]
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
    dtype = next((found.dtype for value in values if (found := _tensor_type(value)) is not None), None)
    tensors = [
        tensor(body, value, each.span, _kind(value, dtype))
        for value, each in zip(values, written, strict=True)
    ]
    found = [value for value in tensors if value is not None]
    return found if len(found) == len(tensors) else None


def _tensor_type(value: SurfaceValue) -> Any:
    return getattr(value, "type", None)


def _kind(value: SurfaceValue, dtype: DType | None) -> DType | None:
    return of_kind(value, dtype) if isinstance(value, Literal) and dtype else None


def _attributes(
    body: Body, node: nodes.Call, builtin: Builtin, record: OpDef, bound: dict[str, nodes.Expression]
) -> dict[str, Any] | None:
    """Return the attributes of an operation, as Python writes them; None where they are wrong."""
    found: dict[str, Any] = {}
    good = True
    for attribute in record.attributes:
        if attribute.name not in bound:
            if attribute.default is None and attribute.name == "axes" and attribute.kind is AttrKind.I64_LIST:
                found["axes"] = []  # all of them
            continue
        value = keyword(body, bound[attribute.name])
        if value is UNKNOWN:
            good = False
            _unknown(body, builtin, attribute, bound[attribute.name])
        else:
            found[attribute.name] = value
    missing = [
        each.name for each in record.attributes if each.default is None and each.name not in {*found, *bound}
    ]
    if missing:
        body.report(
            "E2007",
            f"{builtin.name} lacks {missing[0]}",
            node.span,
            help=f"write {missing[0]}=...: {_schema(record, missing[0]).doc}",
            function=builtin.name,
            expected=len(record.operands) + len(record.attributes),
            found=len(node.arguments),
        )
        return None
    return found if good else None


def _schema(record: OpDef, name: str) -> AttributeDef:
    return next(each for each in record.attributes if each.name == name)


def _unknown(body: Body, builtin: Builtin, attribute: AttributeDef, node: nodes.Expression) -> None:
    value = body.expression(node)
    if is_bad(value):
        return
    found = type_of(value)
    shown = f", found a {spell(found)}" if found is not None else ""
    body.report(
        "E2205",
        f"{attribute.name} of {builtin.name} must be known when the program is compiled{shown}",
        node.span,
        help=f"write a {attribute.kind.phrase}; names of dimensions and constants are known",
        function=builtin.name,
        name=attribute.name,
    )
