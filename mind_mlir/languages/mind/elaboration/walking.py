"""Walk a piece of syntax for the names that it reads, and those that it assigns."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator


@cache
def _children(kind: Any) -> tuple[str, ...]:
    # Spans, texts and numbers are no nodes.
    plain = {"span", "operator_span", "head", "text", "data", "operator", "exported", "short"}
    return tuple(each.name for each in fields(kind) if each.name not in plain)


def walk(node: object) -> Iterator[object]:
    """Yield ``node`` and all nodes below it, in source order; nothing recurses."""
    stack = [node]
    while stack:
        found = stack.pop()
        if isinstance(found, list):
            stack.extend(reversed(found))
        elif type(found).__module__ == nodes.__name__:
            yield found
            kind: Any = type(found)
            stack.extend(getattr(found, name) for name in reversed(_children(kind)))


def names_in(node: object) -> list[str]:
    """Return the names of variables and functions that ``node`` reads, each once, in source order."""
    found: dict[str, None] = {}
    for each in walk(node):
        if isinstance(each, nodes.Name):
            found[each.text] = None
        elif isinstance(each, nodes.Assign):
            found[each.target.text] = None
    return list(found)


def assigned_in(*pieces: object) -> list[str]:
    """Return the names that are assigned in ``pieces``, each once; a `let` assigns nothing."""
    found: dict[str, None] = {}
    for piece in pieces:
        for each in walk(piece):
            if isinstance(each, nodes.Assign):
                found[each.target.text] = None
    return list(found)
