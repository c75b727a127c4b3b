"""Loops: a block that every iteration begins with, whose parameters are what the loop assigns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.arguments import other_count
from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.control import block
from mind_mlir.languages.mind.elaboration.literals import coerced, plain
from mind_mlir.languages.mind.elaboration.operators import condition
from mind_mlir.languages.mind.elaboration.scopes import LocalVariable, assigned_in
from mind_mlir.languages.mind.elaboration.static import known
from mind_mlir.languages.mind.elaboration.types import BOOL, INDEX, described
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    Bad,
    LiteralValue,
    SurfaceValue,
    is_bad,
    leaves,
    rebuilt,
    type_of,
)
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.blocks import PendingBlock


@dataclass(slots=True)
class _Loop:
    """A loop that is open.

    Attributes:
        head: The block that every iteration begins with.
        variables: What the loop assigns.
        old: What they were worth before.
    """

    head: PendingBlock
    variables: list[LocalVariable]
    old: list[SurfaceValue]


def _open(body: Body, node: nodes.While | nodes.For, first: list[Value]) -> _Loop:
    """Begin a loop whose head has parameters for ``first``, and for what the loop assigns."""
    pieces = (node.condition, node.body) if isinstance(node, nodes.While) else (node.body,)
    variables = body.scopes.among(assigned_in(*pieces))
    for variable in variables:
        variable.value = plain(body, variable.value, node.span)
    old = [variable.value for variable in variables]
    carried = [*first, *(value for each in old for value in leaves(each))]
    blocks = body.blocks
    reachable = blocks.current is not None
    head = blocks.new("head", [value.type for value in carried])
    blocks.branch(head, carried)
    blocks.begin(head, reachable=reachable)
    tensors = iter(head.parameters[len(first) :])
    for variable in variables:
        variable.value = rebuilt(variable.value, tensors)
    return _Loop(head, variables, [variable.value for variable in variables])


def _run(body: Body, node: nodes.While | nodes.For, more: Value | None) -> PendingBlock:
    """Let the head go on to the loop's body while ``more``; return the block behind the loop."""
    blocks = body.blocks
    inside, behind = blocks.new("body"), blocks.new("done")
    span = node.condition.span if isinstance(node, nodes.While) else node.iterable.span
    reachable = blocks.current is not None
    if more is not None:
        blocks.cond_branch(more, inside, behind, body.file.locate(span))
    blocks.begin(inside, reachable=reachable)
    block(body, node.body)
    return behind


def _close(body: Body, loop: _Loop, behind: PendingBlock, first: list[Value], *, reachable: bool) -> None:
    """End an iteration, whose next one begins with ``first``, and go on behind the loop."""
    carried = [*first, *(value for each in loop.variables for value in leaves(each.value))]
    body.blocks.branch(loop.head, carried)
    body.blocks.begin(behind, reachable=reachable)
    for variable, value in zip(loop.variables, loop.old, strict=True):
        if not is_bad(variable.value):  # of what has been reported, nothing is said behind the loop either
            variable.value = value


@rule(nodes.While)
def _while(body: Body, node: nodes.While) -> None:
    reachable = body.blocks.current is not None
    loop = _open(body, node, [])
    more = condition(body, body.expression(node.condition, BOOL), node.condition.span, "while")
    at_condition = [variable.value for variable in loop.variables]
    behind = _run(body, node, more)
    loop.old = at_condition
    _close(body, loop, behind, [], reachable=reachable)


@rule(nodes.For)
def _for(body: Body, node: nodes.For) -> None:
    bounds = _range(body, node)
    reachable = body.blocks.current is not None
    if bounds is None:
        body.scopes.enter()
        body.scopes.declare(node.variable.text, BAD)
        block(body, node.body)
        body.scopes.leave()
        return
    start, end, step = bounds
    loop = _open(body, node, [start])
    index = loop.head.parameters[0]
    span = node.iterable.span
    attributes = {"op": "Less" if step > 0 else "Greater"}
    more = body.emit_one("Compare", [index, end], span, attributes=attributes)
    body.scopes.enter()
    body.declare(node.variable, index)
    behind = _run(body, node, more)
    body.scopes.leave()
    one = plain(body, LiteralValue(step, "int", index.type.dtype), span)
    following = [
        value for value in [isinstance(one, Value) and body.emit_one("Add", [index, one], span)] if value
    ]
    _close(body, loop, behind, following, reachable=reachable)


def _range(body: Body, node: nodes.For) -> tuple[Value, Value, int] | None:
    """Return the bounds of a loop, and its step; None where that is reported."""
    call = node.iterable
    if not (
        isinstance(call, nodes.Call) and isinstance(call.callee, nodes.Name) and call.callee.text == "range"
    ):
        body.expression(call)
        help_ = "write for i in range(n) { ... }"
        body.report("E2203", "a for loop goes over a range", call.span, help=help_)
        return None
    given = [argument.value for argument in call.arguments]
    if not 1 <= len(given) <= 3 or any(argument.name for argument in call.arguments):
        help_ = "range(end), range(start, end) or range(start, end, step)"
        other_count(body, "range", "1 to 3", len(given), call.span, help_)
        return None
    step = 1 if len(given) < 3 else known(body, given[2])
    if type(step) is not int or step == 0:
        if step == 0 or not isinstance(body.expression(given[2]), Bad):
            known_ = "is 0" if step == 0 else "must be known when the program is compiled"
            body.report("E2205", f"the step of a range {known_}", given[2].span, help="write a number, not 0")
        return None
    ends = [_bound(body, each) for each in given[:2]]
    if any(each is None for each in ends):
        return None
    values = [each for each in ends if isinstance(each, (Value, LiteralValue))]
    dtype = next((each.type for each in values if isinstance(each, Value)), None)
    if len(values) == 1:
        values = [LiteralValue(0, "int"), *values]
    tensors: list[Value] = []
    for value, written in zip(values, (given * 2)[:2], strict=True):
        bound = coerced(body, value, dtype or INDEX, written.span, " for a bound of the range")
        if not isinstance(bound, Value):
            return None
        tensors.append(bound)
    return tensors[0], tensors[1], step


def _bound(body: Body, node: nodes.Expression) -> SurfaceValue | None:
    found = known(body, node)
    if type(found) is int:
        return LiteralValue(found, "int")
    value = body.expression(node)
    if isinstance(value, Value) and value.type.dtype.is_integer and not value.type.shape:
        return value
    if not is_bad(value):
        said, found_ = "a bound of a range is an integer", described(type_of(value))
        body.mismatch(said, node.span, "use an i64 or i32", expected="i64", found=found_)
    return None
