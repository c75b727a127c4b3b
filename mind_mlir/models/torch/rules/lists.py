"""Operators on lists of arrays, as optimisers have them: the operator on one array, for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.rules.use import OperatorUse, UnreadUse

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import Rule

_PREFIX = "aten._foreach_"
_OTHER_NAMES = {"norm": "linalg_vector_norm"}


def rule_of_lists(operator: str, find: Callable[[str], Rule | None]) -> Rule | None:
    """Return the rule of an operator on lists; None where it is none, or has none for one array."""
    if not operator.startswith(_PREFIX):
        return None
    name = operator.removeprefix(_PREFIX).partition(".")[0]
    rule = find(f"aten.{_OTHER_NAMES.get(name, name)}.default")
    return None if rule is None else _each(rule)


def _each(rule: Rule) -> Rule:
    def apply(to: OperatorUse, *args: Any, **kwargs: Any) -> list[Any]:
        count = len(to.node.types)
        found = []
        for place in range(count):
            one = OperatorUse(replace(to.node, types=(to.node.types[place],)), to.shared)
            given = [_part(each, place, count) for each in args]
            named = {name: _part(each, place, count) for name, each in kwargs.items()}
            found.append(rule(one, *given, **named))
        return found

    return apply


def _part(argument: Any, place: int, count: int) -> Any:
    """Return the part of an argument that is for one array: of a list its own one."""
    if not isinstance(argument, list):
        return argument
    if len(argument) != count:
        raise UnreadUse(f"its lists have {len(argument)} and {count} arrays")
    return argument[place]
