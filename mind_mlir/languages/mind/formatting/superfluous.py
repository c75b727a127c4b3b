"""Words of a text that its tree does not need: parentheses, commas and semicolons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CLOSING = frozenset((")", "]", "}", ">"))


@dataclass(slots=True)
class _Needed:
    """The offsets of the words that nodes need or have as their own.

    Attributes:
        opening: Where parentheses open.
        closing: Where parentheses close.
        names: Where names end with parameters behind them.
        ends: Where semicolons end statements.
    """

    opening: set[int] = field(default_factory=set)
    closing: set[int] = field(default_factory=set)
    names: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)


def superfluous(program: nodes.Program, words: Sequence[tuple[str, int]]) -> set[int]:
    """Return the offsets of words that say nothing, or that are written wherever the tree needs them.

    These are parentheses around expressions, commas before closing brackets, and semicolons behind braces.

    Args:
        program: The tree.
        words: The words of its text, without comments, and their offsets.
    """
    needed = _needed(program)
    found: set[int] = set()
    open_: list[int] = []
    behind = 0
    for number, (word, start) in enumerate(words):
        if word == "(":
            if behind in needed.names:
                needed.opening.add(start)
            open_.append(start)
        elif word == ")":
            partner = open_.pop()
            if partner not in needed.opening and start not in needed.closing:
                found |= {partner, start}
        elif word == ",":
            if words[number + 1][0] in _CLOSING:
                found.add(start)
        elif word == ";" and start not in needed.ends:
            found.add(start)
        behind = start + len(word)
    return found


def _needed(program: nodes.Program) -> _Needed:
    found = _Needed()
    for node in _nodes(program):
        if isinstance(node, nodes.Tuple | nodes.TupleType | nodes.TuplePattern):
            found.opening.add(node.span[0])
        elif isinstance(node, nodes.Call):
            found.closing.add(node.span[1] - 1)
        elif isinstance(node, nodes.Function):
            found.names.add(node.name.span[1])
        elif isinstance(node, nodes.Let | nodes.Assign | nodes.Return | nodes.Alias | nodes.Import) or (
            isinstance(node, nodes.Evaluate) and not isinstance(node.value, nodes.If | nodes.Block)
        ):
            found.ends.add(node.span[1] - 1)
    return found


def _nodes(program: nodes.Program) -> Iterator[Any]:
    """Yield all nodes of a tree."""
    left: list[Any] = [program]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += node
            continue
        if type(node).__module__ == nodes.__name__:
            yield node
            left += [getattr(node, name) for name in node.__slots__]
