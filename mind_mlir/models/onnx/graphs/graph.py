"""An ONNX model as data: graphs of nodes with attributes, whose names have been checked.

Model ::= graph, functions, opset versions        graph     ::= inputs, initializers, nodes, outputs
node  ::= operator, inputs, outputs, attributes   attribute ::= number | string | array | graph | reference
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.models.ports import Port

#: An operator: its domain, where "" is ONNX's own, and its name.
Operator: TypeAlias = tuple[str, str]


class Reference(NamedTuple):
    """An attribute of a node in a function that is an attribute of the node that calls the function."""

    name: str


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """An operator applied to values.

    Attributes:
        operator: The operator.
        name: The node's name, which may be empty.
        inputs: The names of what it reads; "" for what is left out.
        outputs: The names of what it defines; "" for what nobody asks for.
        attributes: Its attributes by name.
        version: The version of its operator set.
        graph_protos: The attributes that are graphs as ONNX has them, for functions that are made of them.
    """

    operator: Operator
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    version: int
    graph_protos: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def graphs(self) -> tuple[OnnxGraph, ...]:
        """Return the graphs among its attributes."""
        return tuple([each for each in self.attributes.values() if isinstance(each, OnnxGraph)])

    def __str__(self) -> str:
        domain, name = self.operator
        kind = f"{domain}.{name}" if domain else name
        label = self.name or next(filter(None, self.outputs), "")
        return f"{kind} '{label}'" if label else kind


@dataclass(frozen=True)
class OnnxGraph:
    """Nodes, each of which reads what is defined before it.

    Attributes:
        name: Its name.
        inputs: What it is given.
        outputs: What it returns.
        nodes: Its nodes, in an order in which they can be evaluated.
        initializers: Arrays by name; inputs of the same name have them as defaults.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[OnnxNode, ...]
    initializers: Mapping[str, npt.NDArray[Any]]

    @cached_property
    def free(self) -> frozenset[str]:
        """Return the names that it reads of graphs around it."""
        known = {each.name for each in self.inputs} | self.initializers.keys()
        found = set()
        for node in self.nodes:
            found |= reads(node) - known
            known.update(node.outputs)
        found |= {each.name for each in self.outputs} - known
        return frozenset(found)

    def all_nodes(self) -> Iterator[OnnxNode]:
        """Yield its nodes, and those of graphs within them."""
        for node in self.nodes:
            yield node
            for graph in node.graphs:
                yield from graph.all_nodes()


def reads(node: OnnxNode) -> set[str]:
    """Return the names that a node reads, and graphs within it of those around."""
    found = {name for name in node.inputs if name}
    for graph in node.graphs:
        found |= graph.free
    return found


@dataclass(frozen=True)
class Function:
    """A function of a model, or the body of an operator that is one.

    Attributes:
        inputs: The names of what it is given.
        outputs: The names of what it returns.
        attributes: Its attributes, with their defaults; None for those without.
        nodes: Its nodes.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    nodes: tuple[OnnxNode, ...]


@dataclass(frozen=True)
class ModelData:
    """A model: its graph and its functions.

    Attributes:
        graph: The graph.
        functions: The functions that the model brings along, by operator.
        opsets: The versions of the operator sets that it names, by domain.
        ir_version: The version of the format.
    """

    graph: OnnxGraph
    functions: Mapping[Operator, Function] = field(default_factory=dict)
    opsets: Mapping[str, int] = field(default_factory=dict)
    ir_version: int = 0
