"""The scopes of a function: where it defines its values, and where each of them is visible.

A scope is a block of the function or of a region. A value is visible after its definition in the same scope,
in the regions of operations there, and in the blocks that its block dominates. What a region defines is
visible in that region only, and in those within it.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mind_mlir.builders.type_rules import usable
from mind_mlir.ir.analysis.dominance import DominatorTree, successors
from mind_mlir.ir.module import CoreOperation, Parameter
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import Block, Function, ValueId
    from mind_mlir.ir.types import TensorType

Definer: TypeAlias = CoreOperation | Parameter

#: The position of a block's parameters.
PARAMETERS = -1


class ValueDefinition(NamedTuple):
    """The definition of a value: its scope, and the position of the operation there."""

    scope: int
    position: int
    value: ValueId
    #: Its declared type; None where that is none that rules work with.
    type: TensorType | None
    definer: Definer

    @property
    def label(self) -> str:
        """Return what messages call the value."""
        if isinstance(self.definer, Parameter) or self.definer.value_id == self.value:
            return self.definer.label
        return self.definer.spell(self.value)

    @property
    def location(self) -> Location | None:
        """Return where it is defined."""
        if isinstance(self.definer, Parameter):
            return self.definer.location
        place = self.definer.result_ids.index(self.value)
        places = self.definer.source.results if self.definer.source else ()
        return places[place] if place < len(places) else self.definer.location


@dataclass(slots=True)
class FunctionScopes:
    """The scopes of one function and what is defined in them.

    Attributes:
        blocks: The block of each scope: first those of the function, then those of regions, in source order.
        parents: For each scope of a region the scope and the position of its operation, by scope.
        definitions: The first definition of each value.
        repeated: The other definitions of values that have several, in source order.
        too_deep: The operations whose regions nest deeper than `MAX_NESTING`; nobody has looked inside.
        tree: Which blocks of the function dominate which.
    """

    blocks: list[Block]
    tree: DominatorTree
    parents: dict[int, tuple[int, int]] = field(default_factory=dict)
    definitions: dict[ValueId, ValueDefinition] = field(default_factory=dict)
    repeated: list[ValueDefinition] = field(default_factory=list)
    too_deep: list[CoreOperation] = field(default_factory=list)
    _regions: dict[tuple[int, int], int] = field(default_factory=dict)
    _repeated: set[ValueId] = field(default_factory=set)
    _count: int = 0

    @classmethod
    def of(cls, function: Function) -> FunctionScopes:
        """Find the definitions of a function of at least one block."""
        tree = DominatorTree.of(successors(function.blocks))
        scopes = cls(list(function.blocks), tree, _count=len(function.blocks))
        for scope in range(len(function.blocks)):
            scopes._enter(scope, 0)
        return scopes

    def regions(self, scope: int, position: int) -> Iterator[int]:
        """Yield the scopes of the regions of an operation; none where they nest too deep."""
        first = self._regions.get((scope, position))
        if first is None:
            return
        operation = self.blocks[scope].operations[position]
        yield from range(first, first + len(operation.regions))

    def is_visible(self, definition: ValueDefinition, scope: int, position: int) -> bool:
        """Return whether ``definition`` is visible to the operation at ``position`` of ``scope``.

        A block that cannot be reached sees everything, and everyone sees what it defines, or what is defined
        twice: each has an error of its own.
        """
        if definition.value in self._repeated:
            return True
        while scope >= self._count:
            if scope == definition.scope:
                return definition.position < position
            scope, position = self.parents[scope]
        if scope == definition.scope:
            return definition.position < position
        if definition.scope >= self._count:
            return False
        if not (self.tree.is_reachable(scope) and self.tree.is_reachable(definition.scope)):
            return True
        return self.tree.dominates(definition.scope, scope)

    def holds(self, outer: int, scope: int) -> bool:
        """Return whether ``scope`` is ``outer``, or a region within it."""
        while scope != outer and scope >= self._count:
            scope, _position = self.parents[scope]
        return scope == outer

    def is_region(self, scope: int) -> bool:
        """Return whether ``scope`` is the block of a region, and not one of the function."""
        return scope >= self._count

    def path(self, scope: int) -> Sequence[str]:
        """Return the labels of the blocks around and at ``scope``, from the function's on."""
        labels = [self.blocks[scope].label]
        while scope >= self._count:
            scope, _position = self.parents[scope]
            labels.append(self.blocks[scope].label)
        return labels[::-1]

    def _enter(self, scope: int, depth: int) -> None:
        block = self.blocks[scope]
        for parameter in block.parameters:
            type_ = usable(parameter.type)
            self._define(ValueDefinition(scope, PARAMETERS, parameter.value_id, type_, parameter))
        for position, operation in enumerate(block.operations):
            deliver()
            type_ = usable(operation.result_type)
            self._define(ValueDefinition(scope, position, operation.value_id, type_, operation))
            for result in operation.others:
                type_ = usable(result.type)
                self._define(ValueDefinition(scope, position, result.value_id, type_, operation))
            if not operation.regions:
                continue
            if depth == MAX_NESTING:
                self.too_deep.append(operation)
                continue
            first = self._regions[scope, position] = len(self.blocks)
            self.blocks.extend(operation.regions)
            for region in range(first, len(self.blocks)):
                self.parents[region] = scope, position
            for region in range(first, first + len(operation.regions)):
                self._enter(region, depth + 1)

    def _define(self, definition: ValueDefinition) -> None:
        if self.definitions.setdefault(definition.value, definition) is not definition:
            self.repeated.append(definition)
            self._repeated.add(definition.value)
