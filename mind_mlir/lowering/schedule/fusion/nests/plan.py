"""The computation of a group as a graph of scalars, each with the loops that it depends on.

A scalar that does not depend on the vector loop is computed once for all lanes, outside of every loop that it
does not depend on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.linalg_view.layout import window_of
from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.lowering.schedule.scalars.axes import axes_of
from mind_mlir.lowering.schedule.scalars.graph import Scalar, Scalars
from mind_mlir.mlir.values import integer_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mind_mlir.lowering.schedule.linalg_view.view import Access, View
    from mind_mlir.mlir.bindings import Operation, Value


@dataclass(frozen=True)
class Read:
    """The elements of an operand that lies in memory.

    Attributes:
        value: the operand, a tensor or a scalar.
        access: how it is indexed.
        margin: What lies beyond the tensor where the access leaves it; None where it does not.
        elsewhere: Whether these are elements of a window of ``value``, at other places than results are.
    """

    value: Value
    access: Access
    margin: Value | None = None
    elsewhere: bool = False


#: What an element is known by: its scalar, or the value that it is outside of the bodies.
Root: TypeAlias = "Scalar | Value"
#: The loops that values depend on which are known as single elements.
LiveIns: TypeAlias = "Mapping[Value, frozenset[int]]"


class Plan:
    """The scalars of a group.

    Args:
        views: Its operations.
        live_ins: Of values that are known, as the elements that they are: the loops that they depend on.
        over: What results are written over.
        through: Whether all windows of tensors are read where these lie, not only those with margins; but
            for what results are written over.

    Attributes:
        steps: What is read or computed, in an order in which it can be; the combinations of reductions, which
            happen on accumulators, are not among them.
        reads: What is read, by its scalar.
        outside: The values that other scalars are: those that are known, and those from outside of bodies.
    """

    def __init__(
        self, views: Iterable[View], live_ins: LiveIns, *, over: Collection[Value] = (), through: bool = False
    ) -> None:
        self._through, self._over = through, over
        self._scalars = Scalars()
        self._steps: dict[Scalar, None] = {}
        self.reads: dict[Scalar, Read] = {}
        self.outside: dict[Scalar, Value] = {}
        #: None where it depends on an accumulator.
        self._known: dict[Value, Scalar | None] = {}
        for value, dims in live_ins.items():
            self._known[value] = self._leaf(value, dims)
        for view in views:
            self._add(view)
        self.steps = list(self._steps)

    def root(self, value: Root) -> Scalar:
        """Return what a value of a body, or a member's result, is."""
        if isinstance(value, Scalar):
            return value
        found = self._known.get(value)
        return self._leaf(value) if found is None else found

    def needed(self, vector: int, values: Iterable[Value]) -> set[Scalar]:
        """Return the scalars that are needed in all lanes though they do not depend on the loop ``vector``.

        They are among ``values``, which are stored or combined as vectors, or what these are computed from.
        """
        used = {self.root(value) for value in values}
        for step in self.steps:
            if vector in step.axes and step.name != "tensor.extract":
                used.update(step.operands)
        return {scalar for scalar in used if vector not in scalar.axes}

    def _leaf(self, value: Value, dims: Iterable[int] = ()) -> Scalar:
        leaf = self._scalars.leaf(value, "input", value.type, dims, 0)
        self.outside[leaf] = value
        return leaf

    def _add(self, view: View) -> None:
        for number, argument in enumerate(view.body.arguments):
            if view.reductions and number >= len(view.inputs):
                self._known[argument] = None
            elif view.used(number):
                self._known[argument] = self._operand(view.operands[number], view.accesses[number])
        for operation in view.body.operations:
            op = operation.operation
            if op.name != "linalg.yield":
                self._known[op.results[0]] = self._computed(op)
            elif not view.reductions:
                for result, value in zip(view.op.results, op.operands, strict=True):
                    self._known[result] = self.root(value)

    def _operand(self, value: Value, access: Access) -> Scalar:
        known = self._known.get(value)
        if known is not None:
            return known  # another member's result
        number = filler(value)
        constant = None if number is None else constant_value(number)
        if constant is not None:
            scalar = self._scalars.constant(constant)
        else:
            dims = axes_of(access) if number is None else ()
            scalar = self._scalars.leaf((value, access), "input", value.type, dims, 0)
            if scalar not in self.reads:
                self.reads[scalar] = self._read(value, access)
        self._steps.setdefault(scalar)
        return scalar

    def _read(self, value: Value, access: Access) -> Read:
        window = window_of(value)
        stays = not self._through or value in self._over
        if window is None or (window.margin is None and stays):
            return Read(value, access)
        return Read(window.source, window.access(access), window.margin, elsewhere=True)

    def _computed(self, op: Operation) -> Scalar | None:
        """Return what ``op`` computes; None if it depends on an accumulator."""
        if op.name == "linalg.index":
            found = self._scalars.index(integer_of(op, "dim"), op.results[0].type)
        elif op.name == "arith.constant":
            found = self._scalars.constant(op.attributes["value"])
        elif any(self._known.get(operand, ...) is None for operand in op.operands):
            return None
        else:
            found = self._scalars.op(op, [self.root(operand) for operand in op.operands])
        self._steps.setdefault(found)
        return found
