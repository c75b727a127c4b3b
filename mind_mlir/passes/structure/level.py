"""One level of loops: nodes without cycles, where a whole loop counts as one of them.

Where edges would lead to several places, a multiplexer is put before these: one node that goes on to each.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import CoreOperation
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.constants import constant_form
from mind_mlir.passes.structure.graph import Constant, Edge, Node, components, is_loop
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.module import Parameter, ValueId
    from mind_mlir.passes.structure.graph import Argument, Graph

#: How many nodes to look at for what is read after a loop; what has more after it passes all that it may.
MAX_SEARCH = 256


@dataclass(slots=True, eq=False)
class LevelUnit:
    """A node, or a loop with one entry and one exit.

    Attributes:
        header: The node, or the entry of the loop.
        nodes: All nodes of it.
        edges: Where it leads.
        is_loop: Whether it is one.
        latch: None where only the header leaves the loop (`while`); else the node that every iteration
            reaches at its end (`do ... while`): its parameters are whether to go on, those of the header,
            those of the exit's target, and `later`.
        later: The values of such a loop that are read after it.
    """

    header: Node
    nodes: list[Node]
    edges: list[Edge]
    is_loop: bool = False
    latch: Node | None = None
    later: list[ValueId] = field(default_factory=list)


@dataclass(slots=True)
class Level:
    """The units of a part of a function, in topological order.

    Attributes:
        graph: The function.
        units: By the identity of their headers.
        order: The place of each header.
        degree: How many edges lead to each unit, from units and from around the part.
    """

    graph: Graph
    units: dict[int, LevelUnit] = field(default_factory=dict)
    order: dict[int, int] = field(default_factory=dict)
    degree: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, nodes: Sequence[Node], entry: Edge) -> Level:
        """Find the loops among ``nodes``, which ``entry`` alone enters; give each one entry and one exit."""
        level = cls(graph)
        found = components(nodes)
        loops = [members for members in found if is_loop(members)]
        inside = {id(node): id(members) for members in loops for node in members}
        arriving = _arriving(nodes, entry, inside)
        for members in loops:
            level._give_header(members, arriving.get(id(members), []))
        place = {id(node): index for index, members in enumerate(found) for node in members}
        for members in found:
            if not is_loop(members):
                level._add(LevelUnit(members[0], members, members[0].edges))
                continue
            unit, dispatch = _loop(graph, members, place)
            level._add(unit)
            for node in dispatch:
                level._add(LevelUnit(node, [node], node.edges))
        for edge in (entry, *(edge for unit in level.units.values() for edge in unit.edges)):
            if id(edge.target) in level.units:
                level.degree[id(edge.target)] += 1
        return level

    def unit(self, node: Node) -> LevelUnit | None:
        """Return the unit that ``node`` leads; None outside of this level."""
        return self.units.get(id(node))

    def dominated(self, edge: Edge) -> list[LevelUnit]:
        """Return the units that are reached only through ``edge``, in topological order of a kind."""
        seen: dict[int, int] = {}
        found: list[LevelUnit] = []
        pending = [edge]
        while pending:
            current = pending.pop()
            unit = self.unit(current.target)
            if unit is None:
                continue
            key = id(unit.header)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] == self.degree[key]:
                found.append(unit)
                pending.extend(unit.edges)
        return found

    def merge(self, edges: Sequence[Edge], targets: Iterable[Node]) -> Node:
        """Lead ``edges``, which reach several ``targets``, to one node, which goes on to one of them."""
        last = len(self.order) + len(self.units)
        ordered = sorted(targets, key=lambda node: self.order.get(id(node), last))
        for edge in edges:
            if id(edge.target) in self.units:
                self.degree[id(edge.target)] -= 1
        chain = multiplex(self.graph, edges, ordered)
        for node in chain:
            self._add(LevelUnit(node, [node], node.edges))
        self.degree[id(chain[0])] = len(edges)
        for node in chain:
            for edge in node.edges:
                if id(edge.target) in self.units:
                    self.degree[id(edge.target)] += 1
        return chain[0]

    def _add(self, unit: LevelUnit) -> None:
        self.units[id(unit.header)] = unit
        self.order[id(unit.header)] = len(self.order)
        self.degree[id(unit.header)] = 0

    def _give_header(self, members: list[Node], arriving: list[Edge]) -> None:
        """Put a multiplexer before a loop that is entered at several places."""
        entries = list({id(edge.target): edge.target for edge in arriving}.values())
        if len(entries) == 1:
            header = entries[0]
            members.remove(header)
            members.insert(0, header)
            return
        heads = {id(entry) for entry in entries}
        again = [edge for node in members for edge in node.edges if id(edge.target) in heads]
        members[:0] = multiplex(self.graph, [*arriving, *again], entries)


def _arriving(nodes: Sequence[Node], entry: Edge, inside: dict[int, int]) -> dict[int, list[Edge]]:
    """Return the edges that enter each loop from around it."""
    found: dict[int, list[Edge]] = {}
    if id(entry.target) in inside:
        found[inside[id(entry.target)]] = [entry]
    for node in nodes:
        for edge in node.edges:
            loop = inside.get(id(edge.target))
            if loop is not None and loop != inside.get(id(node)):
                found.setdefault(loop, []).append(edge)
    return found


def _loop(graph: Graph, members: list[Node], place: dict[int, int]) -> tuple[LevelUnit, list[Node]]:
    """Return the loop of ``members``, the first of which is its header, and what follows its exit."""
    header = members[0]
    within = {id(node) for node in members}
    leaving = [edge for node in members for edge in node.edges if id(edge.target) not in within]
    if len(leaving) == 1 and any(edge is leaving[0] for edge in header.edges):
        return LevelUnit(header, members, leaving, is_loop=True), []
    targets = list({id(edge.target): edge.target for edge in leaving}.values())
    targets.sort(key=lambda node: place.get(id(node), len(place)))
    dispatch = multiplex(graph, leaving, targets) if len(targets) > 1 else []
    target = leaving[0].target
    again, exits = len(header.parameters), len(target.parameters)
    later = live_outs(graph, members, members)
    latch = Node([graph.parameter(FLAG)], location=header.location)
    latch.parameters += [graph.parameter(p.tensor_type) for p in (*header.parameters, *target.parameters)]
    latch.parameters += [graph.parameter(graph.types[value]) for value in later]
    for edge in leaving:
        read = _read_after(graph, edge, within, later)
        edge.target, edge.arguments = latch, [Constant(0, FLAG), *[None] * again, *edge.arguments, *read]
    for node in members:
        for edge in node.edges:
            if edge.target is header:
                unused = [None] * (exits + len(later))
                edge.target, edge.arguments = latch, [Constant(1, FLAG), *edge.arguments, *unused]
    passed: list[Argument] = [p.value_id for p in latch.parameters[1 + again : 1 + again + exits]]
    unit = LevelUnit(header, members, [Edge(target, passed)], is_loop=True, latch=latch, later=later)
    return unit, dispatch


def _read_after(graph: Graph, edge: Edge, within: set[int], values: Sequence[ValueId]) -> list[Argument]:
    """Return each of ``values`` that may be read after ``edge`` has left the nodes ``within``, else None."""
    if not values or edge.home is None:
        return list(values)
    reached, pending = {id(edge.home)}, [edge.home]
    while pending and len(reached) <= MAX_SEARCH:
        for following in pending.pop().edges:
            node = following.home
            if node is not None and id(node) not in reached and id(node) not in within:
                reached.add(id(node))
                pending.append(node)
    if pending:
        return list(values)
    return [v if any(id(user) in reached for user in graph.users.get(v, ())) else None for v in values]


def live_outs(graph: Graph, nodes: Iterable[Node], within: Iterable[Node]) -> list[ValueId]:
    """Return the values that ``nodes`` define and that any but the nodes of ``within`` read, in order."""
    inside = {id(node) for node in within}
    return [
        value
        for node in nodes
        for value in node.defined()
        if any(id(user) not in inside for user in graph.users.get(value, ()))
    ]


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
