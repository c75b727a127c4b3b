"""The arguments of a call: by position and by name (surface.md, "Programs")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.values import BAD, SurfaceValue
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.body import Body
    from mind_mlir.languages.mind.syntax.nodes import Span


def evaluated_in_vain(body: Body, node: nodes.Call) -> SurfaceValue:
    """Elaborate the arguments of a call that has been reported, for what is wrong with themselves."""
    for argument in node.arguments:
        if not isinstance(argument.value, nodes.Name):  # a keyword, maybe
            body.expression(argument.value)
    return BAD


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
    help_ = f"there is nothing for {', '.join(missing)}" if missing else "leave out what is too much"
    other_count(body, function, expected, len(node.arguments), node.span, help_)


def other_count(
    body: Body,
    function: str,
    expected: int | str,
    found: int,
    span: Span,
    help_: str = "give it one argument for each parameter",
) -> None:
    """Report E2007 of a call at ``span``."""
    message = f"{function} takes {expected} argument{'' if expected == 1 else 's'}, found {found}"
    facts: dict[str, object] = {"function": function, "expected": expected, "found": found}
    body.report("E2007", message, span, help=help_, **facts)


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
        said = f"{name} is given twice" if name in names else f"{function} has no parameter {name}"
        others = [] if name in names else [each for each in names if each not in bound]
        help_ = f"its parameters are {', '.join(names)}" if names else "it has no parameters"
        message = f"{said}{did_you_mean(name, others)}"
        body.report("E2204", message, argument.name.span, help=help_, function=function, name=name)
    return bound if good else None
