"""The passes of a row program over a row, as data.

A pass is a loop along the row: it reads the inputs, computes what it needs of them, reduces and stores. What
a later pass needs again is computed again where that takes a few operations, as a centred value does; else it
is kept in memory of one row, as an exponential is, or read from the result that it is part of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import NARROWING, REPEATED, REPEATED_LONG
from mind_mlir.lowering.schedule.fusion.groups.row_program import RowSpace
from mind_mlir.lowering.schedule.fusion.nests.work import operations_of
from mind_mlir.mlir.locations import label_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Sequence

    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value


@dataclass
class Pass:
    """One loop along the row.

    Attributes:
        members: What is computed along the row, in order.
        reduced: Those among them that reduce it.
        summed: Those among them that reduce all rows to one.
        row_scalars: What is computed of that then, one number for each row.
        stored: Values along the row that go to memory: results, and what is kept for later passes.
        loaded: Values along the row that come from there.
        live_ins: What passes before have reduced, or computed of that, and this one needs.
        again: Operations that passes before have done, too.
        crossing: Values along the row that groups would have kept for this one in memory.
    """

    members: list[View]
    reduced: list[View]
    summed: list[View]
    row_scalars: list[View]
    stored: list[Value]
    loaded: list[Value]
    live_ins: list[Value]
    again: int
    crossing: list[Value]

    def summary(self, kept: Container[Value]) -> str:
        """Return what the pass does with a row, as text; ``kept`` is what is no result."""
        rows = (
            ("reduces {}", [view.op for view in self.reduced]),
            ("sums {} over the rows", [view.op for view in self.summed]),
            ("keeps {}", [value.owner for value in self.stored if value in kept]),
            ("stores {}", [value.owner for value in self.stored if value not in kept]),
            ("reads again {}", [value.owner for value in self.loaded]),
        )
        named = ((text, " and ".join(label_of(op.location) or "a value" for op in ops)) for text, ops in rows)
        return ", ".join(text.format(names) for text, names in named if names)


@dataclass
class Passes:
    """All that a row program does with a row.

    Attributes:
        passes: The loops along it, in order.
        kept: The values that are kept in memory of one row.
    """

    passes: list[Pass]
    kept: list[Value]

    @property
    def summed(self) -> list[View]:
        """The operations that reduce all rows to one."""
        return [view for part in self.passes for view in part.summed]

    @property
    def row_scalars(self) -> list[View]:
        """The operations that are computed once for each row."""
        return [view for part in self.passes for view in part.row_scalars]

    @property
    def live_ins(self) -> list[Value]:
        """The numbers that one pass hands on to another."""
        return list(dict.fromkeys(value for part in self.passes for value in part.live_ins))

    def reads_after(self, result: Value, operand: Value) -> bool:
        """Return whether ``operand`` is read behind the pass that stores ``result``; true if none does."""
        numbers = [number for number, part in enumerate(self.passes) if result in part.stored]
        if not numbers:
            return True
        later = self.passes[numbers[0] + 1 :]
        return any(operand in view.operands for part in later for view in part.members)


def passes_of(group: Group, results: Container[Value], *, long: bool = False) -> Passes:
    """Return the passes of a row program, as few as possible.

    Args:
        group: Its operations, in order.
        results: The values that are used outside of it.
        long: Whether rows are so long that what is kept goes to memory and comes back.
    """
    repeated = REPEATED_LONG if long else REPEATED
    nodes = _nodes(group, results)
    summed = [node for node in nodes if node.sums_rows]
    if summed:
        # Each is part of the first pass that has most of what it needs.
        passes = _planned([node for node in nodes if not node.sums_rows], results, repeated).passes
        for node in summed:
            costs = [(_missing(node, passes[level]), level) for level in range(node.level, len(passes))]
            node.level = min(costs)[1] if costs else node.level
        for node in nodes:
            node.first = None
    return _planned(nodes, results, repeated)


def _cost_of(view: View) -> int:
    """Return the operations in the body of ``view``, those that take longer as often as they are slower."""
    narrowings = len([op for op in view.body.operations if op.operation.name == "arith.truncf"])
    return operations_of(view) + NARROWING * narrowings


@dataclass(eq=False)
class _Node:
    """An operation of a row program.

    Attributes:
        view: The operation.
        single: Whether it computes one number for each row.
        inputs: The results of others that it reads, each with that one.
        level: The first pass in which it can be computed, or in which it is.
        cost: What that takes there.
        first: The pass that first computes it, if it lies along the row.
    """

    view: View
    single: bool
    inputs: list[tuple[Value, _Node]]
    level: int
    cost: int
    first: int | None = None

    @property
    def sums_rows(self) -> bool:
        """Whether it reduces all rows to one."""
        return bool(self.view.reductions) and not self.single

    @property
    def is_handed_on(self) -> bool:
        """Whether passes hand on what it computes: what is reduced, and numbers that are made of that."""
        return bool(self.view.reductions) or (self.single and self.level > 0)

    def is_before(self, level: int) -> bool:
        """Return whether it lies along the row, and a pass before ``level`` has computed it."""
        return self.first is not None and self.first < level


def _nodes(group: Group, results: Container[Value]) -> list[_Node]:
    """Return the operations of ``group`` but sums over its rows that are no results: nothing reads these."""
    space = RowSpace(group.extents, group.reductions)
    nodes: dict[Value, _Node] = {}
    for view in group.members:
        single = space.is_single(view)
        if view.reductions and not single and view.op.results[0] not in results:
            continue
        inputs = [(value, nodes[value]) for value in view.reads if value in nodes]
        level = max((node.level + bool(node.view.reductions) for _, node in inputs), default=0)
        cost = sum(node.cost for _, node in inputs if not node.single) + (0 if single else _cost_of(view))
        nodes.update(dict.fromkeys(view.op.results, _Node(view, single, inputs, level, cost)))
    return list(dict.fromkeys(nodes.values()))


def _missing(node: _Node, part: Pass) -> int:
    """Return how much ``node`` needs along the row that ``part`` neither computes nor reads."""
    known = {id(view) for view in part.members}
    read = {value for view in part.members for value in view.inputs}
    left, count = [node], 0
    while left:
        each = left.pop()
        sources = dict(each.inputs)
        for value in each.view.reads:
            source = sources.get(value)
            if value in read or (source is not None and (source.single or id(source.view) in known)):
                continue
            count += 1
            if source is not None:
                known.add(id(source.view))
                left.append(source)
    return count


def _planned(nodes: Sequence[_Node], results: Container[Value], repeated: int) -> Passes:
    """Return the passes, given in which each of ``nodes`` is computed."""
    produced = {result: node for node in nodes for result in node.view.op.results}
    passes: list[Pass] = []
    kept: list[Value] = []
    for level in range(1 + max(node.level for node in nodes if node.view.reductions or not node.single)):
        passes.append(_pass(nodes, level, results, repeated))
        for value in passes[-1].loaded:
            number = produced[value].first
            assert number is not None, "it was computed before"
            if value not in passes[number].stored:
                passes[number].stored.append(value)
                kept += [] if value in results else [value]
    return Passes(passes, kept)


def _pass(nodes: Sequence[_Node], level: int, results: Container[Value], repeated: int) -> Pass:
    """Return pass ``level``, which repeats what takes no more than ``repeated`` operations."""
    here = [node for node in nodes if node.level == level]
    reduced = [node for node in here if node.view.reductions and node.single]
    summed = [node for node in here if node.sums_rows]
    along = [node for node in here if not node.single and not node.view.reductions]
    stored = {result: node for node in along for result in node.view.op.results if result in results}
    single = [node for node in nodes if node.single and not node.view.reductions]
    single = [node for node in single if max(node.level, 1) == level + 1]
    # Those that need none of what passes reduce are only computed if they are results themselves.
    scalars = [node for node in single if node.level or any(each in results for each in node.view.op.results)]
    loaded: dict[Value, None] = {}
    live_ins: dict[Value, None] = {}

    def is_known(value: Value, source: _Node) -> bool:
        if source.is_before(level) and source.cost > repeated:
            loaded[value] = None
        elif source.is_handed_on:
            live_ins[value] = None
        return value in loaded or value in live_ins

    def is_found(value: Value, source: _Node) -> bool:
        if source in scalars:
            return False
        if source not in reduced and source.is_handed_on:
            live_ins[value] = None
        return source in reduced or value in live_ins

    members = _needed(nodes, [*reduced, *summed, *stored.values()], is_known)
    again = [node for node in members if node.is_before(level)]
    inputs = [pair for node in members if node not in again for pair in node.inputs]
    crossing = [value for value, source in inputs if source.is_before(level) and value not in results]
    for node in members:
        if not node.single and node.first is None:
            node.first = level
    row_scalars = _needed(nodes, scalars, is_found)
    return Pass(
        members=[node.view for node in members],
        reduced=[node.view for node in reduced],
        summed=[node.view for node in summed],
        row_scalars=[node.view for node in row_scalars],
        stored=list(stored),
        loaded=list(loaded),
        live_ins=list(live_ins),
        again=sum(_cost_of(node.view) for node in again),
        crossing=crossing,
    )


def _needed(
    nodes: Sequence[_Node], ends: Collection[_Node], is_known: Callable[[Value, _Node], bool]
) -> list[_Node]:
    """Return ``ends`` and what they are computed from, in order, but for what is known."""
    needed = set(ends)
    for node in reversed(nodes):
        if node in needed:
            needed.update(source for value, source in node.inputs if not is_known(value, source))
    return [node for node in nodes if node in needed]
