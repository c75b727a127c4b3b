"""Names: scopes within scopes, of variables that may be given other values; what syntax reads and assigns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.values import SurfaceValue


@dataclass(slots=True, eq=False)
class LocalVariable:
    """A name, and what it is worth at the moment; ``fixed`` is what a function reads around it."""

    name: str
    value: SurfaceValue
    fixed: bool = False


@dataclass(slots=True)
class Scopes:
    """The scopes around a place, the innermost last."""

    frames: list[dict[str, LocalVariable]] = field(default_factory=lambda: [{}])

    def enter(self) -> None:
        """Begin a scope."""
        self.frames.append({})

    def leave(self) -> None:
        """End the innermost scope."""
        self.frames.pop()

    def declare(self, name: str, value: SurfaceValue, *, fixed: bool = False) -> None:
        """Declare ``name``, which hides what was called so before; ``_`` is no name."""
        if name != "_":
            self.frames[-1][name] = LocalVariable(name, value, fixed)

    def declare_everywhere(self, name: str, value: SurfaceValue) -> None:
        """Declare ``name`` for the whole function: of one that is not declared, nothing is said again."""
        self.frames[0][name] = LocalVariable("", value)

    def find(self, name: str) -> LocalVariable | None:
        """Return the variable that ``name`` means, or None."""
        for frame in reversed(self.frames):
            if name in frame:
                return frame[name]
        return None

    def among(self, names: Iterable[str]) -> list[LocalVariable]:
        """Return the variables that some of ``names`` mean, in that order."""
        return [found for name in names if (found := self.find(name))]

    def names(self) -> Iterator[str]:
        """Yield every name that has been declared, the innermost first."""
        for frame in reversed(self.frames):
            yield from (name for name, variable in frame.items() if variable.name)


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
