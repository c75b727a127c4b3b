"""Blocks, statements, branches and loops: they become blocks of the IR that branch (core-ir-page.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.literals import coerced, placeholder, plain, settled
from mind_mlir.languages.mind.elaboration.operators import condition
from mind_mlir.languages.mind.elaboration.resolve import (
    Expected,
    bound_notes,
    check_type,
    distinct,
    fits,
    hint,
    resolved,
    shown,
)
from mind_mlir.languages.mind.elaboration.scopes import LocalVariable, assigned_in
from mind_mlir.languages.mind.elaboration.static import known
from mind_mlir.languages.mind.elaboration.types import BOOL, described
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    FUNCTIONS,
    UNIT_VALUE,
    Bad,
    LiteralValue,
    SurfaceValue,
    TupleValue,
    is_bad,
    key,
    leaves,
    rebuilt,
    type_of,
)
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.blocks import PendingBlock
    from mind_mlir.languages.mind.syntax.nodes import Span


@rule(nodes.Block)
def block(body: Body, node: nodes.Block, expected: Expected = None) -> SurfaceValue:
    """Return the value of a block, whose names end with it."""
    body.scopes.enter()
    for each in node.statements:
        body.statement(each)
    value = UNIT_VALUE if node.value is None else body.expression(node.value, expected)
    body.scopes.leave()
    return value


@rule(nodes.Evaluate)
def _evaluate(body: Body, node: nodes.Evaluate) -> None:
    body.expression(node.value)


@rule(nodes.Let)
def _let(body: Body, node: nodes.Let) -> None:
    check_type(body.file, node.type)
    constant = known(body, node.value)
    value = body.expression(node.value, hint(body.file, node.type, body.extents))
    span = node.value.span
    value = settled(body, value, span, hint(body.file, node.type, body.extents))
    if node.type is not None and not is_bad(value):
        value = declared(body, value, node.type, span)
    elif node.type is not None:
        value = assumed(body, node.type)
    if isinstance(value, Value) and type(constant) is int and not value.type.shape:
        value = LiteralValue(constant, "int", value.type.dtype, value)
    bind(body, node.pattern, value)


def declared(body: Body, value: SurfaceValue, node: nodes.Type, span: Span) -> SurfaceValue:
    """Return ``value``, which must be of the type that ``node`` says (E2001); bind new dimensions."""
    found = type_of(value)
    if isinstance(node, nodes.Invalid):
        return value
    if found is not None and fits(body.file, node, found, body.extents):
        return value
    wanted, notes = shown(node), bound_notes(body.file, node, body.extents)
    help_ = "the declared type or the expression is not what was meant"
    body.mismatch(f"expected {wanted}", span, help_, expected=wanted, found=described(found), notes=notes)
    return assumed(body, node)


def assumed(body: Body, node: nodes.Type) -> SurfaceValue:
    """Return some value of the type that ``node`` says, in the place of one that has been reported."""
    type_ = resolved(body.file, node, body.extents)
    return BAD if type_ is None else placeholder(body, type_)


def bind(body: Body, pattern: nodes.Pattern, value: SurfaceValue) -> None:
    """Declare the names of a pattern."""
    if isinstance(pattern, nodes.Ident):
        body.declare(pattern, value)
        return
    names = [each for each in pattern.items if isinstance(each, nodes.Ident)]
    distinct(body.file, names, "a name of this pattern")
    items: tuple[SurfaceValue, ...] = (BAD,) * len(pattern.items)
    if isinstance(value, TupleValue) and len(value.items) == len(pattern.items):
        items = value.items
    elif not is_bad(value):
        wanted, found = f"a tuple of {len(pattern.items)}", described(type_of(value))
        help_ = "give the pattern as many names as the tuple has items; _ for one that is not wanted"
        body.mismatch(f"expected {wanted}", pattern.span, help_, expected=wanted, found=found)
    for each, item in zip(pattern.items, items, strict=True):
        bind(body, each, item)


@rule(nodes.Assign)
def _assign(body: Body, node: nodes.Assign) -> None:
    target = node.target
    variable = body.scopes.find(target.text)
    if variable is None:
        help_ = f"declare it first: let {target.text} = ...;"
        body.unknown("E2002", f"{target.text} is not declared", target, body.scopes.names(), help_)
        body.scopes.declare_everywhere(target.text, BAD)
        body.expression(node.value)
        return
    old = type_of(variable.value)
    value = body.expression(node.value, old)
    if variable.fixed:
        message = f"{target.text} is declared around this function, which cannot assign it"
        help_ = "return the new value, and assign it where the function is called"
        body.report("E2206", message, target.span, help=help_, name=target.text)
    elif isinstance(variable.value, FUNCTIONS):
        message = f"{target.text} is a function, and keeps being it"
        body.report("E2203", message, target.span, help="declare another one with let")
    elif old is not None:
        if not isinstance(value, Bad):
            value = coerced(body, value, old, node.value.span, f", which {target.text} is")
        variable.value = value


@rule(nodes.Return)
def _return(body: Body, node: nodes.Return) -> None:
    value = UNIT_VALUE if node.value is None else body.expression(node.value, result_hint(body))
    give_back(body, value, node.span if node.value is None else node.value.span)


def result_hint(body: Body) -> Expected:
    """Return what is known of the type of the function's result."""
    return body.result or hint(body.file, body.declared, body.extents)


def give_back(body: Body, value: SurfaceValue, span: Span) -> None:
    """End the function with ``value``, where anything can come by here."""
    if not is_bad(value):
        value = plain(body, value, span, result_hint(body))
    if is_bad(value):
        body.failed = True
        body.blocks.resume(None)
        return
    found = type_of(value)
    if body.declared is not None:
        checked = declared(body, value, body.declared, span)
        if checked is not value:
            found = None
    elif body.result is not None and found is not None and found != body.result:
        coerced(body, value, body.result, span)
        found = None
    elif found is None:
        message = "a function cannot be the result of a function"
        body.report("E2203", message, span, help="return what a call of it gives")
    if found is None:
        body.failed = True
        body.blocks.resume(None)
        return
    body.result = body.result or found
    body.blocks.return_(list(leaves(value)), body.file.locate(span))


@dataclass(slots=True)
class _Path:
    """The end of one way through a branch: its block, its value, and what variables are worth there."""

    end: PendingBlock | None
    value: SurfaceValue
    span: Span
    state: list[SurfaceValue]


@rule(nodes.If)
def _if(body: Body, node: nodes.If, expected: Expected = None) -> SurfaceValue:
    found = condition(body, body.expression(node.condition, BOOL), node.condition.span, "if")
    blocks = body.blocks
    reachable = blocks.current is not None
    variables = body.scopes.among(assigned_in(node.then, node.otherwise))
    for variable in variables:
        variable.value = plain(body, variable.value, node.span)
    before = [variable.value for variable in variables]
    ways = blocks.new("then"), blocks.new("else")
    if found is not None and reachable:
        blocks.cond_branch(found, *ways, body.file.locate(node.condition.span))
    paths: list[_Path] = []
    for way, branch in zip(ways, (node.then, node.otherwise), strict=True):
        blocks.begin(way, reachable=reachable)
        for variable, value in zip(variables, before, strict=True):
            variable.value = value
        given: SurfaceValue = UNIT_VALUE if branch is None else body.expression(branch, expected)
        paths.append(_Path(blocks.current, given, _value_span(branch, node), [v.value for v in variables]))
    return _joined(body, node, variables, paths, reachable=reachable)


def _value_span(branch: nodes.Block | nodes.If | None, node: nodes.If) -> Span:
    if isinstance(branch, nodes.Block) and branch.value is not None:
        return branch.value.span
    return node.span if branch is None else branch.span


def _joined(
    body: Body, node: nodes.If, variables: list[LocalVariable], paths: list[_Path], *, reachable: bool
) -> SurfaceValue:
    """Go on behind a branch, and return its value."""
    blocks = body.blocks
    arriving = [path for path in paths if path.end is not None] if reachable else paths
    if len(arriving) < len(paths):  # what does not come here has returned, and has no say
        last = arriving[0] if arriving else None
        blocks.resume(last.end if last else None)
        if last is None:
            return BAD if any(is_bad(path.value) for path in paths) else UNIT_VALUE
        for variable, value in zip(variables, last.state, strict=True):
            variable.value = value
        return last.value
    values = _same_type(body, node, paths)
    pairs = [(values[0], values[1]), *zip(paths[0].state, paths[1].state, strict=True)]
    old = [(BAD, BAD) if is_bad(one) or is_bad(other) else (one, other) for one, other in pairs]
    differing = [
        (a, b) for one, other in old for a, b in zip(leaves(one), leaves(other), strict=True) if a is not b
    ]
    join = blocks.new("join", [a.type for a, _ in differing])
    for path, place in zip(paths, (0, 1), strict=True):
        blocks.resume(path.end)
        blocks.branch(join, [pair[place] for pair in differing])
    blocks.begin(join, reachable=reachable)
    merged = iter(join.parameters)
    result, *states = [
        rebuilt(
            one,
            iter([a if a is b else next(merged) for a, b in zip(leaves(one), leaves(other), strict=True)]),
        )
        for one, other in old
    ]
    for variable, value in zip(variables, states, strict=True):
        variable.value = value
    return result


def _same_type(body: Body, node: nodes.If, paths: list[_Path]) -> list[SurfaceValue]:
    """Return the values of both ways, which must be of one type (E2001), each as its own way ends with it."""
    values = [path.value for path in paths]
    if any(map(is_bad, values)):
        return [BAD, BAD]
    firm = next((type_of(value) for value in values if not isinstance(value, LiteralValue)), None)
    found: list[SurfaceValue] = []
    for path in paths:
        body.blocks.resume(path.end)
        found.append(plain(body, path.value, path.span, firm))
        path.end = body.blocks.current
    if any(map(is_bad, found)):
        return [BAD, BAD]
    types = [type_of(value) for value in found]
    if types[0] == types[1] and key(found[0]) == key(found[1]):
        return found
    if types[0] is None and types[1] is None:
        body.report("E2203", "an if cannot choose a function", node.span, help="call each in its branch")
        return [BAD, BAD]
    names = [described(type_) for type_ in types]
    if node.otherwise is None:
        message = f"an if without else is worth unit, not {names[0]}"
        help_ = "add an else, or end the value with a semicolon"
        body.report("E2001", message, paths[0].span, help=help_, expected="unit", found=names[0])
    else:
        message = f"if and else differ in type: {names[0]} and {names[1]}"
        help_ = "give both the same type"
        body.report("E2001", message, paths[1].span, help=help_, expected=names[0], found=names[1])
    return [BAD, BAD]
