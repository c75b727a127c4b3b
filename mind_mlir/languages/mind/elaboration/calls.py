"""Names and calls: of functions of the program, of built-in ones and of Python's (surface.md, "Programs")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import MindError
from mind_mlir.ir.analysis.effects import printing_functions
from mind_mlir.languages.mind.elaboration import constants, derivatives
from mind_mlir.languages.mind.elaboration.arguments import evaluated_in_vain, ordered
from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.builtins import CONSTANTS, PRINT_NAME, builtins, modules
from mind_mlir.languages.mind.elaboration.literals import placeholder
from mind_mlir.languages.mind.elaboration.operations import operation
from mind_mlir.languages.mind.elaboration.printing import printed
from mind_mlir.languages.mind.elaboration.resolve import Expected, hint
from mind_mlir.languages.mind.elaboration.types import DTYPES, UNIT, spell
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    UNIT_VALUE,
    Bad,
    Builtin,
    Derived,
    Foreign,
    LiteralValue,
    PullbackValue,
    Routine,
    SurfaceValue,
    type_of,
    typed,
)
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax.nodes import Span


@rule(nodes.Name)
def _name(body: Body, node: nodes.Name, expected: Expected) -> SurfaceValue:
    name, file = node.text, body.file
    variable = body.scopes.find(name)
    if variable is not None:
        return variable.value
    if name in body.extents:
        return LiteralValue(body.extents[name], "int")
    if name in file.constants:
        return file.constants[name]
    if name in file.functions:
        return Routine(file.functions[name])
    if name in file.foreign:
        return Foreign(name, file.foreign[name])
    if name in builtins():
        return builtins()[name]
    if name in (*DTYPES, *file.structs, *file.aliases):
        help_ = f"write {name} {{ ... }} for a value of a struct" if name in file.structs else None
        return body.report("E2203", f"{name} is a type, not a value", node.span, help=help_)
    if name in file.wrong_constants:
        body.failed = True
        return BAD
    called = _CALLED.match(file.source.text, node.span[1]) is not None
    guessed = len(file.findings) < _GUESSED
    near = did_you_mean(name, _known_names(body, called=called)) if guessed else ""
    help_ = _MODULE if name in modules() else _FUNCTIONS if called else _VARIABLES
    body.report("E2002", f"{name} is not declared{near}", node.span, help=help_, name=name)
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
            return operation(body, node, callee, callee.record)
        if callee.name in CONSTANTS:
            return constants.made_by(body, node, callee.name, expected)
        if callee.name == PRINT_NAME:
            return printed(body, node)
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
    if isinstance(callee, (Derived, Foreign, PullbackValue)):
        named = next((argument.name for argument in node.arguments if argument.name), None)
        if named is not None:
            message = f"this call takes its arguments by position, not {named.text} by name"
            return body.report("E2204", message, named.span, help="leave out the name", name=named.text)
        return applied(body, callee, given, spans, node.span)
    found = type_of(callee)
    shown = spell(found) if found is not None else "tuple"
    help_ = "only functions are called; x[i] is an element of x"
    return body.report("E2203", f"a {shown} cannot be called", node.callee.span, help=help_)


def _hint(body: Body, function: Routine, place: int) -> Expected:
    return hint(body.file, function.node.parameters[place].type, dict(function.extents))


def applied(
    body: Body, function: SurfaceValue, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> SurfaceValue:
    """Return what a function of the program, of Python, or a derivative makes of its arguments."""
    if isinstance(function, PullbackValue):
        return derivatives.pulled_back(body, function, given, spans, span)
    if isinstance(function, Derived) and function.kind == "vjp":
        return derivatives.vjp(body, function, given, spans, span)
    found = derivatives.used(body, function, given, spans, span)
    if found is None:
        return BAD
    if found.instance is None:
        return BAD if found.result is None else placeholder(body, found.result)
    if found.result == UNIT:  # nothing comes of it, and nothing happens in it, or it would print
        if found.instance.name in printing_functions(list(body.file.unit.functions.values())):
            help_ = "let it return a value, or print where it is called"
            return body.report("E7001", "a function that prints has a result", span, help=help_)
        return UNIT_VALUE
    info = body.file.info(span)
    try:
        results = body.file.unit.call(body.builder, found.instance, found.operands, info)
    except MindError as error:  # of operands that are placeholders
        body.file.extend(error.diagnostics, span)
        return BAD
    assert found.result is not None, "an instance has a result"
    return typed(found.result, iter(results))
