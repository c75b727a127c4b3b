"""Walks a control-flow graph and writes it as nested `Cond` and `While` operations.

    walk    node after node from an edge to the node at the end of the part; each operation is written once
    fork    a node with two edges: what only one of them reaches becomes a branch; where the branches lead to
            several places, a multiplexer is put before these, so that they lead to one
    loop    a strongly connected component with one entry. Only the header leaves it: its operations are the
            condition, the rest is the body. Else the condition runs the whole iteration, which ends in a
            latch that knows whether to go on, and the body passes on what the header needs.

The walk iterates along what follows on each other; it recurses where regions nest, to a limit. Within a level
of loops every edge is followed once, so all this is linear in the size of the function for each level.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.effects import has_effect
from mind_mlir.ir.module import Parameter
from mind_mlir.passes.structure.emission import Emission
from mind_mlir.passes.structure.graph import Constant, Edge
from mind_mlir.passes.structure.level import FLAG, Level, live_outs
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.passes.structure.emission import Scope
    from mind_mlir.passes.structure.graph import Argument, Graph, Node
    from mind_mlir.passes.structure.level import LevelUnit


@dataclass(slots=True)
class RegionWriter:
    """Writes one function."""

    graph: Graph
    out: Emission = field(default_factory=Emission)

    def walk(self, level: Level, target: Node, arguments: list[Argument], end: Node) -> list[Argument]:
        """Write what follows from ``target`` on, up to ``end``; return what the parameters of ``end`` are."""
        while target is not end:
            unit = level.unit(target)
            assert unit is not None, "an edge leads out of its level"
            if unit.is_loop:
                leaving = self._loop(unit, arguments)
            else:
                for parameter, argument in zip(target.parameters, arguments, strict=True):
                    self.out.bind(parameter.value_id, argument)
                self._operations(target)
                if len(target.edges) == 2:
                    target, arguments = self._fork(level, target)
                    continue
                (leaving,) = target.edges
            target, arguments = leaving.target, self._arguments(leaving)
        return arguments

    def _operations(self, node: Node) -> None:
        for operation in node.operations:
            self.out.copy(operation, self.graph.types)

    def _arguments(self, edge: Edge) -> list[Argument]:
        return [self.out.now.get(a) if type(a) is int else a for a in edge.arguments]

    def _condition(self, node: Node) -> ValueId:
        assert node.condition is not None, "two edges need a condition"
        return self.out.value(self.out.now[node.condition], FLAG)

    def _typed(self, values: Iterable[ValueId]) -> list[tuple[Argument, TensorType]]:
        """Return what values of the given function are at this place, and their types."""
        return [(self.out.now.get(value), self.graph.types[value]) for value in values]

    # Branches

    def _fork(self, level: Level, node: Node) -> tuple[Node, list[Argument]]:
        """Write the two ways from a node; return where they meet, and what its parameters are."""
        out = self.out
        meeting, members = self._meeting(level, node)
        later = live_outs(self.graph, members, members)
        predicate, first = self._condition(node), out.next_id
        found, scopes = [], []
        for edge in node.edges:
            out.enter(node.location)
            arguments = self.walk(level, edge.target, self._arguments(edge), meeting)
            found.append([*arguments, *(out.now.get(value) for value in later)])
            scopes.append(out.close())
        passed = [parameter.value_id for parameter in meeting.parameters]
        join = Join(predicate, first, [self.graph.types[value] for value in (*passed, *later)])
        for pair in zip(*found, strict=True):
            join.add(pair)
        merged = join.emit(out, scopes, node.location)
        for value, argument in zip(later, merged[len(passed) :], strict=True):
            out.bind(value, argument)
        return meeting, merged[: len(passed)]

    def _meeting(self, level: Level, node: Node) -> tuple[Node, list[Node]]:
        """Return where the two ways from a node meet, and the nodes on the ways."""
        units = [unit for edge in node.edges for unit in level.dominated(edge)]
        inside = {id(unit.header) for unit in units}
        leaving = [edge for unit in units for edge in unit.edges]
        crossing = [edge for edge in (*node.edges, *leaving) if id(edge.target) not in inside]
        targets = list({id(edge.target): edge.target for edge in crossing}.values())
        meeting = level.merge(crossing, targets) if len(targets) > 1 else targets[0]
        return meeting, [member for unit in units for member in unit.nodes]

    # Loops

    def _loop(self, unit: LevelUnit, arguments: list[Argument]) -> Edge:
        """Write a loop and bind what it defines; return the edge by which it is left."""
        parameters = unit.header.parameters
        initial = [
            self.out.value(argument, parameter.tensor_type)
            for argument, parameter in zip(arguments, parameters, strict=True)
        ]
        if unit.latch is None:
            self._while(unit, initial)
        else:
            self._do_while(unit, unit.latch, initial)
        return unit.edges[0]

    def _while(self, unit: LevelUnit, initial: list[ValueId]) -> None:
        """Write a loop that its header leaves: the header is the condition, the other nodes are the body."""
        out, header = self.out, unit.header
        leaves_first = header.edges[0] is unit.edges[0]
        entry = header.edges[1 if leaves_first else 0]
        out.enter(header.location)
        parameters = [out.parameter(parameter) for parameter in header.parameters]
        self._operations(header)
        flag = self._condition(header)
        more = out.negated(flag) if leaves_first else flag
        kept = self._kept(header)
        carried = self._typed(kept) or [(more, FLAG)]
        condition = out.end(out.close(), "condition", parameters, [(more, FLAG), *carried])

        out.enter(header.location)
        states = [Parameter(out.fresh(), type_) for _, type_ in carried]
        for value, state in zip(kept, states, strict=False):  # without any, the flag alone is carried
            out.bind(value, state.value_id)
        level = Level.of(self.graph, unit.nodes[1:], entry)
        again = self.walk(level, entry.target, self._arguments(entry), header)
        typed = zip(again, [parameter.tensor_type for parameter in header.parameters], strict=True)
        body = out.end(out.close(), "body", states, typed)

        types = [type_ for _, type_ in carried]
        results = out.emit("While", initial, {}, types, (condition, body), header.location)
        for value, result in zip(kept, results, strict=False):
            out.bind(value, result)

    def _kept(self, header: Node) -> list[ValueId]:
        """Return the values of a header that the body or what follows the loop reads."""
        passed = {argument for edge in header.edges for argument in edge.arguments}
        others = set(live_outs(self.graph, [header], [header]))
        return [value for value in header.defined() if value in passed or value in others]

    def _do_while(self, unit: LevelUnit, latch: Node, initial: list[ValueId]) -> None:
        """Write a loop whose iterations end in a latch: all of it is the condition."""
        out, header = self.out, unit.header
        first = out.next_id
        out.enter(header.location)
        parameters = [replace(p, value_id=out.fresh(), name=None, origin=p.label) for p in header.parameters]
        out.offer(parameters)
        level = Level.of(self.graph, unit.nodes, Edge(header, []))
        ends = self.walk(level, header, [parameter.value_id for parameter in parameters], latch)
        more = out.value(ends[0], FLAG)
        types = [parameter.tensor_type for parameter in latch.parameters[1:]]
        state = list(zip(ends[1:], types, strict=True))
        # What is defined around the loop, and what nobody looks at, need not be carried.
        carried = {a: type_ for a, type_ in state if type(a) is int and a >= first} or {more: FLAG}
        condition = out.end(out.close(), "condition", parameters, [(more, FLAG), *carried.items()])

        out.enter(header.location)
        states = [Parameter(out.fresh(), type_) for type_ in carried.values()]
        inside: dict[Argument, Argument] = {v: p.value_id for v, p in zip(carried, states, strict=True)}
        again = [(inside.get(a, a), type_) for a, type_ in state[: len(parameters)]]
        body = out.end(out.close(), "body", states, again)

        results = out.emit("While", initial, {}, list(carried.values()), (condition, body), header.location)
        after: dict[Argument, Argument] = dict(zip(carried, results, strict=True))
        # Not what the edge that leaves passes: a multiplexer that it now leads to takes it in another order.
        left = [parameter.value_id for parameter in latch.parameters[1 + len(parameters) :]]
        left[len(left) - len(unit.later) :] = unit.later
        for value, (argument, _) in zip(left, state[len(parameters) :], strict=True):
            out.bind(value, after.get(argument, argument))


@dataclass(slots=True)
class Join:
    """The values that arrive from the two branches of one `Cond`.

    Attributes:
        predicate: What chooses.
        first: Values from here on are defined in the branches.
        types: The types of all that arrives.
        pairs: What arrives from ``then`` and ``else``.
    """

    predicate: ValueId
    first: ValueId
    types: Sequence[TensorType]
    pairs: list[tuple[Argument, Argument]] = field(default_factory=list)

    def add(self, pair: tuple[Argument, Argument]) -> None:
        """Add what arrives next."""
        self.pairs.append(pair)

    def emit(self, out: Emission, scopes: Sequence[Scope], location: Location | None) -> list[Argument]:
        """Write the operation, unless nothing needs it, and return what each pair has become."""
        self.pairs = _complemented(self.pairs, self.types)
        known = [self._known(*pair) for pair in self.pairs]
        needed = {
            pair: type_
            for pair, type_, (is_known, _) in zip(self.pairs, self.types, known, strict=True)
            if not is_known and pair not in _FLAGS
        }
        results: dict[tuple[Argument, Argument], Argument] = {}
        instead = _shared(needed)
        for pair in instead:
            del needed[pair]
        if not needed and any(has_effect(each) for scope in scopes for each in scope.operations):
            # They run for what they print alone; an operation has a result.
            needed[Constant(0, FLAG), Constant(0, FLAG)] = FLAG
        if needed:
            branches = [
                out.end(scope, label, (), [(pair[side], type_) for pair, type_ in needed.items()])
                for side, (scope, label) in enumerate(zip(scopes, ("then", "else"), strict=True))
            ]
            values = out.emit("Cond", (self.predicate,), {}, list(needed.values()), branches, location)
            results.update(zip(needed, values, strict=True))
        results.update((pair, results[other]) for pair, other in instead.items())
        results[_FLAGS[0]] = self.predicate
        if _FLAGS[1] in self.pairs:
            results[_FLAGS[1]] = out.negated(self.predicate)
        return [
            argument if is_known else results[pair]
            for pair, (is_known, argument) in zip(self.pairs, known, strict=True)
        ]

    def _known(self, then: Argument, otherwise: Argument) -> tuple[bool, Argument]:
        """Return whether a pair is known without the operation, and as what."""
        if then == otherwise and self._is_around(then):
            return True, then
        if then is None and self._is_around(otherwise):
            return True, otherwise
        if otherwise is None and self._is_around(then):
            return True, then
        return False, None

    def _is_around(self, argument: Argument) -> bool:
        return type(argument) is not int or argument < self.first


def _complemented(
    pairs: Sequence[tuple[Argument, Argument]], types: Sequence[TensorType]
) -> list[tuple[Argument, Argument]]:
    """Let a tensor that is looked at after one branch only share a result with one of the other branch.

    So a loop that hands on its new state, or leaves with the old one, carries one state.
    """
    found = list(pairs)
    for are_equal in (True, False):
        waiting: dict[tuple[TensorType, Argument], list[int]] = {}
        for index, (type_, (then, otherwise)) in enumerate(zip(types, found, strict=True)):
            if type_.rank and otherwise is None and then is not None:
                waiting.setdefault((type_, then if are_equal else None), []).append(index)
        for index, (type_, (then, otherwise)) in enumerate(zip(types, found, strict=True)):
            if not type_.rank or then is not None or otherwise is None:
                continue
            partners = waiting.get((type_, otherwise if are_equal else None), [])
            if partners:
                partner = partners.pop(0)
                found[index] = found[partner] = (found[partner][0], otherwise)
    return found


def _shared(
    needed: Mapping[tuple[Argument, Argument], TensorType],
) -> dict[tuple[Argument, Argument], tuple[Argument, Argument]]:
    """Return the pairs that are looked at after one branch only, and others that agree with them there."""
    by_side: dict[tuple[int, Argument], tuple[Argument, Argument]] = {}
    for pair in needed:
        if None not in pair:
            by_side.setdefault((0, pair[0]), pair)
            by_side.setdefault((1, pair[1]), pair)
    found = {}
    for pair in needed:
        if None in pair:
            side = 0 if pair[1] is None else 1
            if (side, pair[side]) in by_side:
                found[pair] = by_side[side, pair[side]]
    return found


#: The predicate itself, and its negation.
_TRUE, _FALSE = Constant(1, FLAG), Constant(0, FLAG)
_FLAGS = ((_TRUE, _FALSE), (_FALSE, _TRUE))
