"""The computation of a group as one list of steps, each with the loops that it depends on.

A step that does not depend on the vector loop is computed once for all lanes, outside of every loop that it
does not depend on.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.linalg_view.layout import window_of
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.scalars.axes import axes_of
from mind_mlir.mlir.bindings import Operation, Value, ir

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.linalg_view.view import Access, View


@dataclasses.dataclass(frozen=True, eq=False)
class Read:
    """The elements of an operand that lies in memory; compared by identity.

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


#: Where an element comes from: memory, an operation of a body, or outside of the bodies.
Root: TypeAlias = "Read | Value"


@dataclasses.dataclass(frozen=True)
class Step:
    """One element to be computed.

    Attributes:
        root: the element.
        op: the scalar operation that computes it; None for a read.
        dims: the loops that it depends on.
    """

    root: Root
    op: Operation | None
    dims: frozenset[int]


class Plan:
    """The steps of a group, in an order in which they can be computed.

    Args:
        group: The group.
        live_ins: Of values that are known, as the elements that they are: the loops that they depend on.
        through: Whether all windows of tensors are read where these lie, not only those with margins; but
            for what results are written over.

    Attributes:
        steps: all steps; the combinations of reductions, which happen on accumulators, are not among them.
    """

    def __init__(
        self, group: Group, live_ins: Mapping[Value, frozenset[int]], *, through: bool = False
    ) -> None:
        self._through, self._over = through, group.over
        self.steps: list[Step] = []
        self._roots: dict[Value, Root] = {value: value for value in live_ins}
        self._dims: dict[Root, frozenset[int] | None] = dict(live_ins)  # None: depends on an accumulator
        self._reads: dict[tuple[Value, int], Read] = {}
        for view in group.members:
            self._add(view)

    def root(self, value: Value) -> Root:
        """Return where a value of a body, or a member's result, comes from."""
        return self._roots.get(value, value)

    def needed(self, vector: int, values: Iterable[Value]) -> set[Root]:
        """Return the elements that are needed in all lanes though they do not depend on the loop ``vector``.

        Args:
            vector: the vector loop.
            values: the values that are stored or combined as vectors.
        """
        used = {self.root(value) for value in values}
        for step in self.steps:
            if step.op is not None and vector in step.dims and step.op.name != "tensor.extract":
                used.update(self.root(operand) for operand in step.op.operands)
        return {root for root in used if vector not in (self._dims.get(root) or ())}

    def _add(self, view: View) -> None:
        for number, argument in enumerate(view.body.arguments):
            if view.reductions and number >= len(view.inputs):
                self._roots[argument] = argument
                self._dims[argument] = None
            elif view.used(number):
                self._roots[argument] = self._operand(view.operands[number], view.accesses[number])
        for operation in view.body.operations:
            op = operation.operation
            if op.name != "linalg.yield":
                self._operation(op)
            elif not view.reductions:
                for result, value in zip(view.op.results, op.operands, strict=True):
                    self._roots[result] = self.root(value)

    def _operand(self, value: Value, access: Access) -> Root:
        if value in self._roots:
            return self._roots[value]  # another member's result
        key = (value, id(access))
        if key not in self._reads:
            read = self._read(value, access)
            self._reads[key] = read
            self._step(read, None, frozenset() if filler(value) is not None else axes_of(access))
        return self._reads[key]

    def _read(self, value: Value, access: Access) -> Read:
        window = window_of(value)
        stays = not self._through or value in self._over
        if window is None or (window.margin is None and stays):
            return Read(value, access)
        return Read(window.source, window.access(access), window.margin, elsewhere=True)

    def _operation(self, op: Operation) -> None:
        if op.name == "linalg.index":
            self._step(op.results[0], op, frozenset((ir.IntegerAttr(op.attributes["dim"]).value,)))
            return
        sources = [self._dims.get(self.root(operand), frozenset()) for operand in op.operands]
        known = [dims for dims in sources if dims is not None]
        if len(known) < len(sources):
            for result in op.results:
                self._dims[result] = None
            return
        for result in op.results:
            self._step(result, op, frozenset().union(*known))

    def _step(self, root: Root, op: Operation | None, dims: frozenset[int]) -> None:
        self._dims[root] = dims
        self.steps.append(Step(root, op, dims))
