"""Sums along a row that blocks of it can begin before the number that they depend on is known.

A sum of `exp(v - m)`, where `m` is the maximum of `v` along the row, is the sum over blocks of the row of
such sums with the maximum so far, each times `exp(maximum so far - m)`. A sum of `(v - c)^2` is, for any `k`
of each block, the sum over blocks of those with `k` and `(k - c) * (2 * sum of (v - k) + count * (k - c))`:
with the mean of the block for `k`, nothing large cancels. So they need no pass over the row of their own.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.folds.reductions import combined_value, match_combiners
from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.mlir.values import attributes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value


#: A scalar that is computed for each element: equal ones are the same number.
Node: TypeAlias = int

#: The name of a node that is a number of a row.
_NUMBER = "number"


class RowGraph:
    """The graph; nodes are added when they are asked for.

    Args:
        numbers: The results that are leaves: numbers of the row.
    """

    def __init__(self, produced: Mapping[Value, View], numbers: Collection[Value]) -> None:
        self._produced = produced
        self._numbers = numbers
        self._known: dict[Value, Node] = {}
        self._nodes: dict[Hashable, Node] = {}
        self._names: list[str] = []
        self._operands: list[tuple[Node, ...]] = []
        self._values: list[Value] = []
        self._varies: list[bool] = []

    def node(self, view: View, value: Value) -> Node:
        """Return the node of ``value``, which the body of ``view`` computes or uses."""
        if value not in self._known:
            arguments = list(view.body.arguments)
            if value in arguments:
                self._known[value] = self._operand(view, arguments.index(value))
            elif any(value == result for op in view.body.operations for result in op.operation.results):
                self._known[value] = self._operation(view, value)
            else:
                constant = constant_value(value)
                self._known[value] = self._add("", value if constant is None else constant, (), value)
        return self._known[value]

    def _operation(self, view: View, value: Value) -> Node:
        op = value.owner.operation
        operands = tuple(self.node(view, operand) for operand in op.operands)
        attributes = attributes_of(op)
        return self._add(op.name, (attributes, value.type, value.result_number), operands, value)

    def _operand(self, view: View, number: int) -> Node:
        value = view.operands[number]
        if value in self._numbers:
            return self._add(_NUMBER, value, (), value)
        member = self._produced.get(value)
        if member is not None and not member.reductions:
            *_, end = member.body.operations
            return self.node(member, end.operation.operands[value.result_number])
        same = filler(value)
        if same is not None:
            return self._add("", same, (), same)
        return self._add("", (value, view.accesses[number]), (), value)

    def _add(self, name: str, what: Hashable, operands: tuple[Node, ...], value: Value) -> Node:
        key = (name, what, operands)
        if key not in self._nodes:
            self._nodes[key] = len(self._names)
            self._names.append(name)
            self._operands.append(operands)
            self._values.append(value)
            self._varies.append(name == _NUMBER or any(self._varies[each] for each in operands))
        return self._nodes[key]

    def name(self, node: Node) -> str:
        """Return the operation that computes ``node``; nothing for what is only read."""
        return self._names[node]

    def operands(self, node: Node) -> tuple[Node, ...]:
        """Return what ``node`` is computed from."""
        return self._operands[node]

    def value(self, node: Node) -> Value:
        """Return a value that is ``node``: the first one that was asked for."""
        return self._values[node]

    def number(self, node: Node) -> Value | None:
        """Return the number of the row that ``node`` is; None if it is none."""
        return self._values[node] if self.name(node) == _NUMBER else None

    def varies(self, node: Node) -> bool:
        """Return whether ``node`` depends on a number of the row."""
        return self._varies[node]

    def exponent(self, node: Node) -> Node | None:
        """Return the exponent of the factor of ``node`` that depends on a number, if it is the only one."""
        while self.name(node) == "arith.mulf":
            varying = [each for each in self.operands(node) if self.varies(each)]
            if len(varying) != 1:
                return None
            node = varying[0]
        return self.operands(node)[0] if self.name(node) == "math.exp" else None

    def root(self, node: Node) -> Node | None:
        """Return what ``node`` is the square of; None if it is no square."""
        if self.name(node) != "arith.mulf":
            return None
        left, right = self.operands(node)
        return left if left == right else None


class Kind(enum.Enum):
    """The kind of terms that a sum relative to a number has."""

    EXPONENTIALS = "exponentials"
    SQUARES = "squares"


@dataclasses.dataclass(frozen=True)
class Relative:
    """A sum of elements relative to a number of the row, which may be another one at first.

    Attributes:
        kind: What is summed.
        result: The sum.
        centre: The number of the row.
        source: The reduction that stands for it: the maximum, or the sum that a mean is made of.
        difference: The elements less the number, a value of a body.
    """

    kind: Kind
    result: Value
    centre: Value
    source: Value
    difference: Value


def relative_sums(
    reduced: Sequence[View],
    before: Sequence[View],
    produced: Mapping[Value, View],
    numbers: Collection[Value],
) -> tuple[Relative, ...] | None:
    """Return how each of ``reduced`` depends on ``numbers``; None if not all do in the same of these ways.

    Args:
        reduced: Reductions of a row.
        before: Those that come before; nothing else is reduced there where exponentials are summed.
        produced: The members of the row program, by their results.
        numbers: What ``before`` reduce, and what is made of that.
    """
    graph = RowGraph(produced, numbers)
    found = []
    for view in reduced:
        relative = _relative(view, before, graph)
        if relative is None:
            return None
        found.append(relative)
    kinds = {each.kind for each in found}
    if len(kinds) != 1 or (Kind.EXPONENTIALS in kinds and len(before) != 1):
        return None
    return tuple(found)


def _relative(view: View, before: Sequence[View], graph: RowGraph) -> Relative | None:
    reduction = _reduction(view, graph)
    if reduction is None or reduction[0] != "arith.addf":
        return None
    for kind, difference in (
        (Kind.EXPONENTIALS, graph.exponent(reduction[1])),
        (Kind.SQUARES, graph.root(reduction[1])),
    ):
        if difference is None or graph.name(difference) != "arith.subf":
            continue
        value, centre = graph.operands(difference)
        number = graph.number(centre)
        if number is None or graph.varies(value):
            continue
        source = _source(kind, value, before, graph)
        if source is not None and (source == number or kind is Kind.SQUARES):
            return Relative(kind, view.op.results[0], number, source, graph.value(difference))
    return None


def _source(kind: Kind, value: Node, before: Sequence[View], graph: RowGraph) -> Value | None:
    """Return which of ``before`` is the reduction of ``value`` that sums of ``kind`` need."""
    wanted = "arith.maximumf" if kind is Kind.EXPONENTIALS else "arith.addf"
    found = [view for view in before if _reduction(view, graph) == (wanted, value)]
    return found[0].op.results[0] if found else None


def _reduction(view: View, graph: RowGraph) -> tuple[str, Node] | None:
    """Return with which operation ``view`` reduces what; None if it reduces several things."""
    combiners = match_combiners(view.body, view.results)
    if combiners is None or view.results != 1:
        return None
    return combiners[0].name, graph.node(view, combined_value(view.body, 1, 0))
