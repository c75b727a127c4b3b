"""Strongly connected components: what runs again is one of them (Tarjan 1972, without recursion)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.passes.structure.graph import Node


@dataclass(slots=True)
class _Search:
    """A depth-first search over some nodes."""

    nodes: Sequence[Node]
    index: dict[int, int] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    stack: list[Node] = field(default_factory=list)
    on_stack: set[int] = field(default_factory=set)
    found: list[list[Node]] = field(default_factory=list)

    def run(self) -> list[list[Node]]:
        inside = {id(node) for node in self.nodes}
        for root in self.nodes:
            if id(root) not in self.index:
                self._from(root, inside)
        self.found.reverse()
        return self.found

    def _from(self, root: Node, inside: set[int]) -> None:
        path = [(root, iter(self._enter(root)))]
        while path:
            node, edges = path[-1]
            target = next(edges, None)
            if target is None:
                path.pop()
                self._leave(node)
                if path:
                    parent = id(path[-1][0])
                    self.low[parent] = min(self.low[parent], self.low[id(node)])
            elif id(target) not in inside:
                continue
            elif id(target) not in self.index:
                path.append((target, iter(self._enter(target))))
            elif id(target) in self.on_stack:
                self.low[id(node)] = min(self.low[id(node)], self.index[id(target)])

    def _enter(self, node: Node) -> list[Node]:
        self.index[id(node)] = self.low[id(node)] = len(self.index)
        self.stack.append(node)
        self.on_stack.add(id(node))
        # The second target first, so that the first one's component comes first in the end.
        return [edge.target for edge in reversed(node.edges)]

    def _leave(self, node: Node) -> None:
        if self.low[id(node)] != self.index[id(node)]:
            return
        component = []
        while True:
            member = self.stack.pop()
            self.on_stack.discard(id(member))
            component.append(member)
            if member is node:
                break
        component.sort(key=lambda member: self.index[id(member)])
        self.found.append(component)


def components(nodes: Sequence[Node]) -> list[list[Node]]:
    """Return the strongly connected components of ``nodes`` and the edges between them.

    Their order is topological. The nodes of each stand in the order in which a search from the first of
    ``nodes`` meets them.
    """
    return _Search(nodes).run()


def is_loop(component: Sequence[Node]) -> bool:
    """Return whether the nodes of a component run again."""
    return len(component) > 1 or any(edge.target is component[0] for edge in component[0].edges)
