"""`GraphScope`: the names that nodes see, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mind_mlir.models.onnx.graphs.refusals import RuleBrokenError
from mind_mlir.support.lazy_dataclass import dataclass

#: What a value follows from that is known.
NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class GraphScope:
    """Names and their values.

    Attributes:
        values: The values.
        sources: The inputs and initializers that each value follows from.
        attributes: What References of a function's nodes stand for.
        around: The scope of the graph around this one.
    """

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    around: GraphScope | None = None

    def find(self, name: str) -> tuple[Any, frozenset[str]]:
        """Return a value and its sources; "" is what is left out."""
        if not name:
            return None, NOTHING
        scope: GraphScope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name], scope.sources.get(name, NOTHING)
            scope = scope.around
        raise RuleBrokenError(f"'{name}' is defined nowhere")

    def set(self, name: str, value: Any, sources: frozenset[str] = NOTHING) -> None:
        """Give a name a value."""
        self.values[name] = value
        self.sources[name] = sources

    def within(self) -> GraphScope:
        """Return a scope for a graph within."""
        return GraphScope(attributes=self.attributes, around=self)
