"""Computes elementwise values again where a later part of a program reads them, if memory takes longer.

Before: a module in structured form. After: the same, where operations behind another contraction read copies
of cheap ones rather than what these have left in memory.

A gradient is full of values that stand between an activation and its derivative. One of them is computed
again, in each level (`recompute.levels`) that reads it, if

- all that it is computed from is in memory then anyway, or computed again there, too;
- its readers are elementwise and of its shape: a contraction would only write the copy again;
- no reduction has part in it on its level: row programs and attentions are made of such values as they are;
- that takes less time than to write it and to read it, what has to be read in its place included.

So are weights of attention, from their factors, wherever a later level reads them (`recompute.scores`).

A copy has the bits of the value. It comes before `passes.layers`, whose functions then hand on less.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.module import Functions
from mind_mlir.ir.regions import live_operations, value_types
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.recompute.choice import RecomputationChoice
from mind_mlir.passes.recompute.levels import Levels, OperationCopies
from mind_mlir.passes.recompute.scores import chains_of, with_copies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.target import Target


def recompute(module: Module, target: Target) -> Module:
    """Return ``module``, in structured form, with values computed again where that takes less time.

    Args:
        module: What to change.
        target: The processor.
    """
    functions = [_changed(each, target) for each in module.functions]
    if all(one is other for one, other in zip(functions, module.functions, strict=True)):
        return module
    return replace(module, functions=Functions(functions))


def _changed(function: Function, target: Target) -> Function:
    (block,) = function.blocks
    if not any(by_opcode()[each.opcode].contracts for each in operations_of(function.blocks)):
        return function
    types = value_types(function.blocks)
    changed = _Function(types, target).block(block)
    return function if changed is block else replace(function, blocks=(changed,))


class _Function:
    """Changes the blocks of one function."""

    def __init__(self, types: dict[ValueId, TensorType], target: Target) -> None:
        self._types = types
        self._target = target
        self._fresh = count(max(types, default=-1) + 1)

    def block(self, block: Block) -> Block:
        """Return ``block``, and those within it, changed; itself if there is nothing to change."""
        operations = [self._within(operation) for operation in block.operations]
        results = block.terminator.operands
        levels = Levels(operations, results, self._types)
        chains = list(chains_of(levels))
        if chains:
            operations = live_operations(list(with_copies(levels, chains, self._fresh)), results)
            self._types.update((each.value_id, each.tensor_type) for each in operations)
            levels = Levels(operations, results, self._types)
        choice = RecomputationChoice(levels, self._target)
        if choice.values:
            operations = live_operations(list(self._copied(levels, choice)), results)
        elif all(one is other for one, other in zip(operations, block.operations, strict=True)):
            return block
        return replace(block, operations=tuple(operations))

    def _within(self, operation: CoreOperation) -> CoreOperation:
        regions = tuple([self.block(region) for region in operation.regions])
        same = all(one is other for one, other in zip(regions, operation.regions, strict=True))
        return operation if same else replace(operation, regions=regions)

    def _copied(self, levels: Levels, choice: RecomputationChoice) -> Iterator[CoreOperation]:
        """Yield the operations, with copies in front of the first one of a level that reads them."""
        copies: dict[int, OperationCopies] = {}
        for number, operation in enumerate(levels.operations):
            level = levels.of[number]
            again = [value for value in operation.operands if choice.is_computed(value, level)]
            if not again:
                yield operation
                continue
            if level not in copies:
                copies[level] = OperationCopies(levels, choice.computed[level], self._fresh)
            yield from copies[level].reading(operation, again)
