"""Operations in the place of those that stand for others (`OpDef.expand`, `OpDef.in_contract`).

Before: a verified function in structured form. After: the same, without operations whose records have such a
rule; all values keep their ids. Regions come before what holds them, and nest no deeper than they may.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.value import Value
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.vjp import ExpandContext
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.module import Block, CoreOperation, Function
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.ops.rules import ExpandRule


def expand(
    function: Function, profile: str, rule: Callable[[OpDef], ExpandRule | None] = attrgetter("expand")
) -> Function:
    """Return ``function``, of a module of ``profile``, with its operations expanded as ``rule`` says."""
    records = by_opcode()
    if not any(rule(records[operation.opcode]) for operation in operations_of(function.blocks)):
        return function
    expansion = _Expansion(function, profile, rule)
    return replace(function, blocks=tuple(map(expansion.block, function.blocks)))


class _Expansion:
    """Expands what stands in one function."""

    def __init__(self, function: Function, profile: str, rule: Callable[[OpDef], ExpandRule | None]) -> None:
        self.rule = rule
        self.types = value_types(function.blocks)
        self.builder = Builder(next_id=max(self.types, default=-1) + 1, profile=profile)

    def block(self, block: Block) -> Block:
        """Return a block with everything in it expanded."""
        outside, self.builder.operations = self.builder.operations, []
        for operation in block.operations:
            deliver()
            inside = tuple(map(self.block, operation.regions))
            held = replace(operation, regions=inside) if operation.regions else operation
            if not self._expand(held):
                self.builder.operations.append(held)
        operations, self.builder.operations = self.builder.operations, outside
        return replace(block, operations=tuple(operations))

    def _expand(self, operation: CoreOperation) -> bool:
        """Append what takes the place of an operation; return whether anything does."""
        record, builder = by_opcode()[operation.opcode], self.builder
        rule = self.rule(record)
        if rule is None:
            return False
        first = len(builder.operations)
        context = ExpandContext(
            builder,
            tuple([Value(value, self.types[value], builder) for value in operation.operands]),
            tuple([Value(value, self.types[value], builder) for value in operation.result_ids]),
            complete_attributes(record, operation.attributes),
            operation.regions,
        )
        if not rule(context):
            return False
        builder.operations[first:] = [self._placed(each, operation) for each in builder.operations[first:]]
        return True

    def _placed(self, new: CoreOperation, operation: CoreOperation) -> CoreOperation:
        """Return an operation that says of where it comes from what ``operation`` does."""
        return replace(new, source=operation.source, names=operation.names, origin=operation.label)
