"""Multiplexers: one node through which edges reach several targets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import CoreOperation
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.constants import constant_form
from mind_mlir.passes.structure.graph import Constant, Edge, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Parameter, ValueId
    from mind_mlir.passes.structure.graph import Argument, Graph

FLAG = TensorType(DType.I1)
NUMBER = TensorType(DType.SI64)


def multiplex(graph: Graph, edges: Sequence[Edge], targets: Sequence[Node]) -> list[Node]:
    """Lead ``edges`` to one new node that goes on to whichever of ``targets`` each of them led to.

    Returns:
        The nodes made: the first is the new target of the edges, and each of the others follows on the one
        before it. Where there are two targets a flag tells them apart, else a number. Targets share the other
        parameters, as far as their types allow: only one target is ever reached.
    """
    shared: defaultdict[TensorType, list[Parameter]] = defaultdict(list)
    slots = {id(target): _slots(graph, target, shared) for target in targets}
    discriminator = graph.parameter(FLAG if len(targets) == 2 else NUMBER)
    parameters = [discriminator, *(slot for group in shared.values() for slot in group)]
    place = {parameter.value_id: index for index, parameter in enumerate(parameters)}
    number = {id(target): index for index, target in enumerate(targets)}
    head = Node(parameters, location=edges[0].target.location)
    for edge in edges:
        arguments: list[Argument] = [None] * len(parameters)
        chosen = number[id(edge.target)]
        arguments[0] = Constant(chosen, NUMBER) if len(targets) > 2 else Constant(1 - chosen, FLAG)
        for slot, argument in zip(slots[id(edge.target)], edge.arguments, strict=True):
            arguments[place[slot]] = argument
        edge.target, edge.arguments = head, arguments
    return _tests(graph, head, [Edge(target, list(slots[id(target)])) for target in targets])


def _slots(graph: Graph, target: Node, shared: defaultdict[TensorType, list[Parameter]]) -> list[ValueId]:
    """Return the parameters of the multiplexer that pass those of ``target``; new ones join ``shared``."""
    used: defaultdict[TensorType, int] = defaultdict(int)
    found = []
    for parameter in target.parameters:
        type_ = parameter.tensor_type
        group = shared[type_]
        if used[type_] == len(group):
            group.append(graph.parameter(type_))
        found.append(group[used[type_]].value_id)
        used[type_] += 1
    return found


def _tests(graph: Graph, head: Node, edges: list[Edge]) -> list[Node]:
    """Let ``head`` choose between ``edges`` by its first parameter, one test after the other."""
    discriminator = head.parameters[0].value_id
    if len(edges) == 2:
        head.condition, head.edges = discriminator, edges
        return [head]
    nodes = [head, *(Node(location=head.location) for _ in edges[2:])]
    for index, node in enumerate(nodes):
        opcode, attributes = constant_form(TensorLiteral.of(index, DType.SI64))
        number, test = graph.parameter(NUMBER).value_id, graph.parameter(FLAG).value_id
        node.operations = [
            CoreOperation.create(number, opcode, (), attributes, NUMBER),
            CoreOperation.create(test, "Compare", (discriminator, number), {"op": "Equal"}, FLAG),
        ]
        node.condition = test
        last = index == len(nodes) - 1
        node.edges = [edges[index], edges[-1] if last else Edge(nodes[index + 1], [])]
    return nodes
