"""``grad``, ``value_and_grad`` and ``vjp`` (surface.md, "Differentiation").

The derivative of an instance is an instance: so derivatives of derivatives need nothing of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import MindError
from mind_mlir.ir.types import TensorType
from mind_mlir.languages.mind.elaboration import foreign
from mind_mlir.languages.mind.elaboration.arguments import other_count, wrong_count
from mind_mlir.languages.mind.elaboration.literals import coerced, placeholder
from mind_mlir.languages.mind.elaboration.routines import InstanceUse, use
from mind_mlir.languages.mind.elaboration.types import SurfaceType, TupleOf, spell
from mind_mlir.languages.mind.elaboration.types import leaves as type_leaves
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    FUNCTIONS,
    Bad,
    Builtin,
    Derived,
    Foreign,
    PullbackValue,
    Routine,
    SurfaceValue,
    TupleValue,
    is_bad,
    leaves,
    type_of,
    typed,
)

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.body import Body
    from mind_mlir.languages.mind.syntax import nodes
    from mind_mlir.languages.mind.syntax.nodes import Span
    from mind_mlir.languages.staging import Instance


def derived(body: Body, node: nodes.Call, kind: str) -> SurfaceValue:
    """Return ``grad(f)``, and the like: a function."""
    if len(node.arguments) != 1 or node.arguments[0].name is not None:
        wrong_count(body, node, kind, 1)
        return BAD
    written = node.arguments[0].value
    function = body.expression(written)
    if isinstance(function, Bad):
        return BAD
    if isinstance(function, (Builtin, PullbackValue)) or not isinstance(function, FUNCTIONS):
        found = type_of(function)
        shown = spell(found) if found is not None else "a built-in function"
        message = f"{kind} takes a function, found {shown}"
        help_ = f"write {kind}(f)(x), or {kind}(|x| ...)(x)"
        return body.report("E2203", message, written.span, help=help_)
    return Derived(kind, function)


def used(
    body: Body, function: SurfaceValue, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> InstanceUse | None:
    """Return the use of a function with arguments; None where these are wrong, which is reported."""
    if isinstance(function, Routine):
        expected = len(function.node.parameters)
        if len(given) != expected:
            other_count(body, function.name, expected, len(given), span)
            return None
        return use(body, function, given, spans, span)
    if isinstance(function, Foreign):
        return foreign.use(body, function, given, spans, span)
    assert isinstance(function, Derived), "the caller knows the other functions"
    if function.kind == "vjp":
        body.report("E2203", "what vjp gives is no number", span, help="differentiate the function itself")
        return None
    return _gradient(body, function, given, spans, span)


def _gradient(
    body: Body, function: Derived, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> InstanceUse | None:
    found = used(body, function.function, given, spans, span)
    if found is None:
        return None
    if not found.arguments:
        other_count(body, function.kind, 1, 0, span)
        return None
    first = type_of(found.arguments[0])
    if first is None or not _floats(body, first, spans[0], "the first argument"):
        return None
    value = found.result
    if value is not None and not _is_scalar(body, value, function.kind, span):
        return None
    pair = function.kind == "value_and_grad"
    if found.instance is None or value is None:
        result = first if not pair else TupleOf((value, first)) if value is not None else None
        return replace(found, instance=None, result=result)
    wrt = range(sum(1 for _ in type_leaves(first)))
    derivative = _derivative(body, found.instance, wrt, span)
    if derivative is None:
        return replace(found, instance=None, result=first)
    result = TupleOf((value, first)) if pair else first
    if not pair:
        derivative = body.file.unit.without_first(derivative)
    return replace(found, instance=replace(derivative, form=result), result=result)


def _is_scalar(body: Body, type_: SurfaceType, kind: str, span: Span) -> bool:
    if isinstance(type_, TensorType) and not type_.shape and type_.dtype.is_float:
        return True
    said = f"{kind} takes a function with a scalar float as its result"
    help_ = "reduce the result, with sum(x) for example, or use vjp"
    body.mismatch(said, span, help_, expected="f32 or f64", found=spell(type_))
    return False


def _floats(body: Body, type_: SurfaceType, span: Span, what: str) -> bool:
    """Return whether all of ``type_`` is floats; else report E5005."""
    for name, leaf in type_leaves(type_):
        if not leaf.dtype.is_float:
            place = f"{what}, at {name}," if name else what
            message = f"{place} is a {spell(leaf)}, with respect to which nothing can be differentiated"
            help_ = "read it from around the function instead: grad(|x| f(x, n))(x)"
            body.report("E5005", message, span, help=help_, dtype=leaf.dtype.core_name)
            return False
    return True


def _derivative(
    body: Body, instance: Instance, wrt: Sequence[int], span: Span, *, cotangents: bool = False
) -> Instance | None:
    try:
        return body.file.unit.derivative(instance, wrt, cotangents=cotangents)
    except MindError as error:
        body.file.extend(error.diagnostics, span)
        return None


def vjp(
    body: Body, function: Derived, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> SurfaceValue:
    """Return ``(y, pullback)``."""
    found = used(body, function.function, given, spans, span)
    if found is None:
        return BAD
    types = [type_of(argument) for argument in found.arguments]
    for place, (type_, where) in enumerate(zip(types, spans, strict=True)):
        if type_ is None or not _floats(body, type_, where, f"argument {place + 1}"):
            return BAD
    if found.instance is None:
        value = BAD if found.result is None else placeholder(body, found.result)
        return TupleValue((value, BAD))
    assert found.result is not None, "an instance has a result"
    if not _floats(body, found.result, span, "the result"):
        return BAD
    results = body.file.unit.call(body.builder, found.instance, found.operands, body.file.info(span))
    count = sum(1 for argument in found.arguments for _ in leaves(argument))
    pullback = PullbackValue(found.instance, found.arguments, found.operands[count:])
    return TupleValue((typed(found.result, iter(results)), pullback))


def pulled_back(
    body: Body, function: PullbackValue, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> SurfaceValue:
    """Return the gradients for a cotangent: of the argument, or a tuple of them where there are several."""
    if len(given) != 1:
        other_count(body, "a pullback", 1, len(given), span)
        return BAD
    result = function.instance.form
    cotangent = coerced(body, given[0], result, spans[0], " as the result is")
    if is_bad(cotangent):
        return BAD
    primals = [leaf for argument in function.arguments for leaf in leaves(argument)]
    derivative = _derivative(body, function.instance, range(len(primals)), span, cotangents=True)
    if derivative is None:
        return BAD
    captured = [leaf for value in function.captured for leaf in leaves(value)]
    operands = [*primals, *captured, *leaves(cotangent)]
    results = body.file.unit.call(body.builder, derivative, operands, body.file.info(span))
    gradients = iter(results[len(function.instance.results) :])
    types = [type_of(argument) for argument in function.arguments]
    values = [typed(type_, gradients) for type_ in types if type_ is not None]
    return values[0] if len(values) == 1 else TupleValue(tuple(values))
