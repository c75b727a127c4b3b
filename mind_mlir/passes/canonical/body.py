"""A function as the canonicaliser changes it: blocks by label, and values that stand for others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Branch, CondBranch, Return, Target, Yield

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.ir.module import Block, CoreOperation, Function, Parameter, Terminator, ValueId


@dataclass(slots=True, eq=False)
class Body:
    """One block."""

    label: str
    parameters: list[Parameter]
    operations: list[CoreOperation]
    terminator: Terminator


@dataclass(slots=True)
class Code:
    """The blocks of one function, the entry first.

    Attributes:
        bodies: By label, in reverse postorder after `order`.
        same: What values have turned out to be: always another value.
        changed: Whether a change may make others possible.
    """

    bodies: dict[str, Body]
    same: dict[ValueId, ValueId] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def of(cls, function: Function) -> Code:
        """Take a function apart."""
        return cls({b.label: _body(b) for b in function.blocks})

    @property
    def entry(self) -> Body:
        """Return the first block."""
        return next(iter(self.bodies.values()))

    def replace_value(self, value: ValueId, by: ValueId) -> None:
        """Say that ``value`` is always that of ``by``, which is visible wherever it is."""
        self.same[value] = by
        self.changed = True

    def find(self, value: ValueId) -> ValueId:
        """Return what ``value`` has turned out to be."""
        same = self.same
        root = value
        while root in same:
            root = same[root]
        while value != root:  # so that the next search is short
            same[value], value = root, same[value]
        return root

    def found(self, values: Iterable[ValueId]) -> tuple[ValueId, ...]:
        """Return what ``values`` have turned out to be."""
        return tuple(map(self.find, values)) if self.same else tuple(values)

    def renamed(self, operation: CoreOperation) -> CoreOperation:
        """Return an operation that reads what its operands have turned out to be, in its regions too."""
        if not self.same:
            return operation
        if not operation.regions:
            return self.reading(operation)
        regions = tuple(map(self.block, operation.regions))
        return replace(operation, operands=self.found(operation.operands), regions=regions)

    def block(self, block: Block) -> Block:
        """Return a block whose operations and terminator read what values have turned out to be."""
        operations = tuple(map(self.renamed, block.operations))
        return replace(block, operations=operations, terminator=self.resolved(block.terminator))

    def reading(self, operation: CoreOperation) -> CoreOperation:
        """Return an operation whose own operands are what they have turned out to be."""
        if all(value not in self.same for value in operation.operands):
            return operation
        return replace(operation, operands=self.found(operation.operands))

    def resolved(self, terminator: Terminator) -> Terminator:
        """Return a terminator that reads what its operands have turned out to be."""
        if all(value not in self.same for value in terminator.operands):
            return terminator
        match terminator:
            case Return() | Yield():
                return replace(terminator, operands=self.found(terminator.operands))
            case Branch():
                return replace(terminator, target=self._target(terminator.target))
            case CondBranch():
                return replace(
                    terminator,
                    condition=self.find(terminator.condition),
                    then=self._target(terminator.then),
                    otherwise=self._target(terminator.otherwise),
                )

    def _target(self, target: Target) -> Target:
        return replace(target, arguments=self.found(target.arguments))

    def incoming(self) -> Mapping[str, list[Target]]:
        """Return the edges to each block."""
        edges: dict[str, list[Target]] = {label: [] for label in self.bodies}
        for body in self.bodies.values():
            for target in body.terminator.targets:
                edges[target.label].append(target)
        return edges

    def order(self) -> None:
        """Put the blocks into reverse postorder, and drop those that nothing reaches any more."""
        entry = self.entry.label
        seen, postorder = {entry}, []
        path = [(entry, iter(self._targets(entry)))]
        while path:
            label, targets = path[-1]
            target = next(targets, None)
            if target is None:
                postorder.append(label)
                path.pop()
            elif target not in seen:
                seen.add(target)
                path.append((target, iter(self._targets(target))))
        self.bodies = {label: self.bodies[label] for label in reversed(postorder)}

    def _targets(self, label: str) -> list[str]:
        # The second one first, so that the first one's blocks come first in the end.
        return [target.label for target in reversed(self.bodies[label].terminator.targets)]


def _body(block: Block) -> Body:
    return Body(block.label, list(block.parameters), list(block.operations), block.terminator)
