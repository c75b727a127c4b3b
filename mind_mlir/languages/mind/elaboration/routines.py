"""Functions and closures of a program: an instance for the types of each call (surface.md, "Programs")."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.languages.mind.elaboration.aggregates import bounded
from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.control import give_back, result_hint
from mind_mlir.languages.mind.elaboration.literals import plain
from mind_mlir.languages.mind.elaboration.resolve import (
    Expected,
    bound_notes,
    check_type,
    fits,
    hint,
    resolved,
    shown,
)
from mind_mlir.languages.mind.elaboration.scopes import names_in
from mind_mlir.languages.mind.elaboration.types import SurfaceType, described
from mind_mlir.languages.mind.elaboration.types import leaves as type_leaves
from mind_mlir.languages.mind.elaboration.values import (
    UNIT_VALUE,
    Routine,
    SurfaceValue,
    is_bad,
    key,
    leaves,
    rebuilt,
    type_of,
)
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.languages.mind.syntax.nodes import Span
    from mind_mlir.languages.staging import Instance

#: Expressions within one another, those of callers included, beyond which an instance is made before its
#: caller rather than while that waits: Python's stack is not deep.
_MAX_NESTING = 48


class Failed(Exception):  # noqa: N818 -- a signal that never reaches a user
    """Ends the making of an instance in which something has been reported: ``findings``."""

    def __init__(self, findings: Sequence[Diagnostic]) -> None:
        super().__init__()
        self.findings = tuple(findings)


class Postponed(Exception):  # noqa: N818 -- as above
    """Ends the making of an instance that needs another one first, which lies too deep to be made now."""

    def __init__(self, name: Hashable, make: Callable[[], object]) -> None:
        super().__init__()
        self.name = name
        self.make = make


@dataclass(frozen=True, slots=True)
class InstanceUse:
    """A use of an instance: what it is called with, and what it gives.

    Attributes:
        instance: The instance; None where something in it has been reported.
        operands: The tensors of the arguments, then those that the function reads around it.
        arguments: The arguments.
        result: The type of its result; None where that is not known.
    """

    instance: Instance | None
    operands: tuple[Value, ...]
    arguments: tuple[SurfaceValue, ...]
    result: SurfaceType | None


@rule(nodes.Closure)
def _closure(body: Body, node: nodes.Closure, expected: Expected) -> SurfaceValue:
    for parameter in node.parameters:
        check_type(body.file, parameter.type)
    return bounded(body, routine(body, node), node.span)


@rule(nodes.Function)
def _function(body: Body, node: nodes.Function) -> None:
    for parameter in node.parameters:
        check_type(body.file, parameter.type)
    check_type(body.file, node.result)
    body.scopes.declare(node.name.text, bounded(body, routine(body, node), node.name.span))


def routine(body: Body, node: nodes.Function | nodes.Closure) -> Routine:
    """Return a function within a function, with what it reads around it."""
    own = {parameter.name.text for parameter in node.parameters}
    captured = {
        name: variable.value
        for name in names_in(node.body)
        if name not in own and (variable := body.scopes.find(name)) is not None
    }
    return Routine(node, captured, tuple(body.extents.items()))


def use(
    body: Body, function: Routine, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> InstanceUse | None:
    """Return the use of ``function`` with arguments; None where these are wrong, which is reported.

    Args:
        body: The caller.
        function: What is called.
        given: As many arguments as it has parameters.
        spans: Where they are written.
        span: Where the call is written.
    """
    extents = dict(function.extents)
    arguments: list[SurfaceValue] = []
    for parameter, value, place in zip(function.node.parameters, given, spans, strict=True):
        found = _argument(body, function, parameter, value, place, extents)
        if found is None:
            return None
        arguments.append(found)
    captured = tuple([plain(body, value, span) for value in function.captured.values()])
    if any(map(is_bad, captured)):
        return None
    function = Routine(function.node, dict(zip(function.captured, captured, strict=True)), function.extents)
    name = (key(function), tuple([key(argument) for argument in arguments]))
    operands = tuple(leaf for value in (*arguments, function) for leaf in leaves(value))
    made = instance_of(body.file, name, function, arguments, extents, span)
    if made is None:
        body.failed = True
        declared = getattr(function.node, "result", None)
        result = resolved(body.file, declared, extents) if declared is not None else None
        return InstanceUse(None, operands, tuple(arguments), result)
    return InstanceUse(made, operands, tuple(arguments), made.form)


def _argument(
    body: Body,
    function: Routine,
    parameter: nodes.Parameter,
    value: SurfaceValue,
    span: Span,
    extents: dict[str, int],
) -> SurfaceValue | None:
    """Return an argument as its parameter declares it; None where it is not that (E2001), or is bad."""
    if is_bad(value):
        return None
    file = body.file
    value = plain(body, value, span, hint(file, parameter.type, extents))
    found = type_of(value)
    if is_bad(value):
        return None
    if parameter.type is None or (found is not None and fits(file, parameter.type, found, extents)):
        return value
    wanted, notes = shown(parameter.type), bound_notes(file, parameter.type, extents)
    said = f"{function.name} takes a {wanted} for {parameter.name.text}"
    help_ = "give it what it declares, or change its declaration"
    body.mismatch(said, span, help_, expected=wanted, found=described(found), notes=notes)
    return None


def instance_of(
    file: File,
    name: Hashable,
    function: Routine,
    arguments: Sequence[SurfaceValue],
    extents: dict[str, int],
    span: Span,
) -> Instance | None:
    """Return the instance of ``function`` for arguments; None where something is wrong in it.

    Raises:
        Postponed: It lies too deep to be made now.
    """
    if name in file.failed:
        notes, file.notes = file.notes, _notes(file, function, extents, span)
        for finding in file.failed[name]:  # whoever calls it now may not have heard of them
            file.add(finding)
        file.notes = notes
        return None
    if file.nesting >= _MAX_NESTING and not file.unit.has(name):
        if name in file.pending:
            _recursion(file, name, function, span)
            return None
        raise Postponed(name, lambda: instance_of(file, name, function, arguments, extents, span))
    notes = file.notes
    file.depth += 1
    try:
        return file.unit.instance(name, lambda: _made(file, function, arguments, dict(extents), span))
    except VerificationError:  # E4118, which says nothing of where
        _recursion(file, name, function, span)
        return None
    except Failed as failed:
        file.failed[name] = failed.findings
        return None
    finally:
        file.depth -= 1
        file.notes = notes


def _recursion(file: File, name: Hashable, function: Routine, span: Span) -> None:
    found = len(file.attempts)
    message = f"{function.name} calls itself"
    help_ = "write a loop: memory is planned before anything runs, so that programs have no recursion"
    file.report("E4118", message, span, help=help_, cycle=function.name)
    file.failed[name] = tuple(file.attempts[found:])


def _made(
    file: File,
    function: Routine,
    arguments: Sequence[SurfaceValue],
    extents: dict[str, int],
    span: Span,
) -> Instance:
    """Return a new instance of ``function``.

    Raises:
        Failed: Something is wrong in it.
    """
    found = len(file.attempts)
    if file.depth > 1:
        file.notes = _notes(file, function, extents, span)
    body = entered(file, function, arguments, extents)
    body.failed = any(map(is_bad, arguments))
    finished(body, function.node)
    if len(file.attempts) > found or body.failed or body.result is None or not body.blocks.complete:
        raise Failed(list(dict.fromkeys(file.attempts[found:])))
    types = tuple([leaf for _, leaf in type_leaves(body.result)])
    location = file.locate(function.node.name.span) if isinstance(function.node, nodes.Function) else None
    blocks, result = body.blocks, body.result
    return file.unit.define(function.name, lambda name: blocks.function(name, types, location), result)


def _notes(file: File, function: Routine, extents: dict[str, int], span: Span) -> tuple[str, ...]:
    """Return what is to be added to findings in ``function``, which is called at ``span``."""
    where = file.locate(span)
    if not extents or where is None:
        return file.notes
    bound = ", ".join(f"{name} = {extent}" for name, extent in extents.items())
    return (*file.notes, f"with {bound}, as {function.name} is called in line {where.line}")[-2:]


def entered(
    file: File, function: Routine, arguments: Sequence[SurfaceValue], extents: dict[str, int]
) -> Body:
    """Return a body whose names are the parameters of ``function`` and what it reads around it."""
    declared = function.node.result or _UNIT if isinstance(function.node, nodes.Function) else None
    body = Body(file, file.unit.builder(), extents, declared)
    for parameter, value in zip(function.node.parameters, arguments, strict=True):
        body.declare(parameter.name, rebuilt(value, _parameters(body, value)))
    for name, value in function.captured.items():
        if body.scopes.find(name) is None:
            body.scopes.declare(name, rebuilt(value, _parameters(body, value)), fixed=True)
    return body


_UNIT = nodes.TupleType([])


def _parameters(body: Body, value: SurfaceValue) -> Iterator[Value]:
    return iter([body.builder.parameter(leaf.type) for leaf in leaves(value)])


def finished(body: Body, node: nodes.Function | nodes.Closure) -> None:
    """Elaborate what ``node`` does, to its end."""
    inner = node.body
    body.scopes.enter()
    if isinstance(inner, nodes.Block):
        for each in inner.statements:
            body.statement(each)
        value = inner.value
    else:
        value = inner
    if value is not None:
        found = body.expression(value, result_hint(body))
        if body.blocks.current is not None:
            give_back(body, found, value.span)
    elif body.blocks.current is not None:
        end = (inner.span[1] - 1, inner.span[1]) if inner.span[0] >= 0 else inner.span
        nothing(body, end)
    body.scopes.leave()


def nothing(body: Body, span: Span) -> None:
    """End a function whose last expression is missing."""
    if (
        body.declared is not None
        and not (isinstance(body.declared, nodes.TupleType) and not body.declared.items)
        and not (isinstance(body.declared, nodes.NamedType) and body.declared.name.text == "unit")
    ):
        wanted = shown(body.declared)
        help_ = "end the function with the expression that it is worth, without a semicolon"
        body.mismatch(f"expected {wanted}", span, help_, expected=wanted, found="unit")
        return
    give_back(body, UNIT_VALUE, span)
