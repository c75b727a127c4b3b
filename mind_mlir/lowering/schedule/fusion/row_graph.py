"""The computation of a row program for an element: a graph of scalar operations, equal nodes being one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.reading.values import constant_value, filler
from mind_mlir.mlir.values import attributes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

    from mind_mlir.lowering.schedule.reading.view import View
    from mind_mlir.mlir.bindings import Value

#: A scalar that is computed for each element: equal ones are the same number.
Node: TypeAlias = int

#: The name of a node that is a number of a row.
_NUMBER = "number"


class RowGraph:
    """The graph; nodes are added when they are asked for.

    Args:
        produced: The members of the row program, by their results.
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
