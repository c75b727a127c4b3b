"""A function's control-flow graph, as structuring changes it.

Operations stay as they are: only where edges lead and what they pass changes. Values are those of the given
function, and new ones of the parameters that multiplexers have.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.ir.analysis.call_graph import strong_components
from mind_mlir.ir.module import Branch, CondBranch, Parameter, Return
from mind_mlir.ir.regions import reads, value_types
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import CoreOperation, Function, ValueId
    from mind_mlir.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Constant:
    """A scalar that structuring passes along an edge: an i1, or an i64 that says where to go on."""

    value: int
    type: TensorType


#: What an edge passes: a value, a constant, or None where what arrives is never looked at.
Argument: TypeAlias = "ValueId | Constant | None"


@dataclass(slots=True, eq=False)
class Edge:
    """A way from one node to another.

    Attributes:
        target: Where it leads.
        arguments: What it passes to the parameters there.
        home: Where it led in the given function; None where that had no such edge.
    """

    target: Node
    arguments: list[Argument]
    home: Node | None = None


@dataclass(slots=True, eq=False)
class Node:
    """A block: no edges at the end of what is being structured, one, or two where ``condition`` chooses."""

    parameters: list[Parameter] = field(default_factory=list)
    operations: list[CoreOperation] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    condition: ValueId | None = None
    location: Location | None = None

    def defined(self) -> list[ValueId]:
        """Return the values that it defines for others to read, in order."""
        values = [parameter.value_id for parameter in self.parameters]
        for operation in self.operations:
            values.extend(operation.result_ids)
        return values

    def read(self) -> list[ValueId]:
        """Return the values that it reads, those that its edges pass included."""
        values = [value for operation in self.operations for value in reads(operation)]
        if self.condition is not None:
            values.append(self.condition)
        for edge in self.edges:
            values.extend(argument for argument in edge.arguments if type(argument) is int)
        return values


@dataclass(slots=True)
class Graph:
    """The nodes of a function, whose returns are edges to one node, ``end``.

    Attributes:
        nodes: In the order of the blocks.
        end: Has a parameter for each result.
        types: The type of every value.
        users: The nodes that read each value.
        next_id: A value that is not taken.
    """

    nodes: list[Node]
    end: Node
    types: dict[ValueId, TensorType]
    users: dict[ValueId, list[Node]]
    next_id: ValueId

    @classmethod
    def of(cls, function: Function) -> Graph:
        """Build the graph of a verified function."""
        types = value_types(function.blocks)
        graph = cls([], Node(), types, {}, max(types, default=-1) + 1)
        results = function.result_types
        if results is None:
            results = tuple(types[value] for value in _returned(function))
        graph.end.parameters = [graph.parameter(type_) for type_ in results]  # type: ignore[arg-type]  # verified: tensors
        nodes = {block.label: Node() for block in function.blocks}
        for block in function.blocks:
            node = nodes[block.label]
            graph.nodes.append(node)
            node.parameters, node.operations = list(block.parameters), list(block.operations)
            node.location = block.terminator.location or block.location
            match block.terminator:
                case Return(operands):
                    node.edges = [Edge(graph.end, list(operands))]
                case Branch(target):
                    node.edges = [Edge(nodes[target.label], list(target.arguments))]
                case CondBranch() as branch:
                    node.condition = branch.condition
                    node.edges = [Edge(nodes[to.label], list(to.arguments)) for to in branch.targets]
        for node in graph.nodes:
            for edge in node.edges:
                edge.home = edge.target
            for value in dict.fromkeys(node.read()):
                graph.users.setdefault(value, []).append(node)
        return graph

    def parameter(self, type_: TensorType) -> Parameter:
        """Return a parameter that is a new value."""
        value = self.next_id
        self.next_id += 1
        self.types[value] = type_
        return Parameter(value, type_)


def _returned(function: Function) -> tuple[ValueId, ...]:
    return next(
        (block.terminator.operands for block in function.blocks if isinstance(block.terminator, Return)), ()
    )


def components(nodes: Sequence[Node]) -> list[list[Node]]:
    """Return the strongly connected components of ``nodes`` and the edges between them.

    Their order is topological. The nodes of each stand in the order in which a search from the first of
    ``nodes`` meets them.
    """
    inside = set(nodes)
    # The second target first, so that the first one's component comes first in the end.
    found = strong_components(
        nodes, lambda node: [edge.target for edge in reversed(node.edges) if edge.target in inside]
    )
    return found[::-1]


def is_loop(component: Sequence[Node]) -> bool:
    """Return whether the nodes of a component run again."""
    return len(component) > 1 or any(edge.target is component[0] for edge in component[0].edges)
