"""Merges operations that compute the same (common subexpressions).

Before: a function in structured form. After: the same, where no operation without regions computes what one
before it, in its block or in a block around it, has computed. Operations are pure, random numbers included,
which are a function of their seed and stream; a run-time check of what is merged is that of the first one,
which comes first anyway. What two regions of one operation have in common is `hoisting`'s.

A large broadcast or iota stays where it is, for one that is read from afar would have to be stored; but what
is made of equal ones is equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.effects import is_effect
from mind_mlir.ir.numbered import joined
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonical.body import FunctionBlocks
from mind_mlir.passes.optimize.hoist_rules import bytes_of
from mind_mlir.passes.optimize.rewriting import key_of, reading

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId
    from mind_mlir.ir.source_info import SourceInfo


#: What takes no more than this may be in memory.
_FEW_BYTES = 4096


def merge_common(function: Function) -> Function:
    """Return ``function``, in structured form, with equal operations as one; itself where there are none."""
    (block,) = function.blocks
    merged = _Merging().block(block)
    return function if merged is block else replace(function, blocks=(merged,))


def _is_free(operation: CoreOperation) -> bool:
    """Return whether an operation takes no time where it is read, but memory where it is read from afar."""
    return by_opcode()[operation.opcode].spreads and bytes_of(operation.result_type) > _FEW_BYTES


class _Merging:
    """Merges the operations of one function, in order."""

    def __init__(self) -> None:
        #: The results of what has been computed where the walk is, by key.
        self._known: dict[Hashable, tuple[ValueId, ...]] = {}
        #: What values of merged operations have turned out to be.
        self._code = FunctionBlocks({})
        self._same = self._code.same
        #: The first of the values that are equal to what stays where it is.
        self._equal: dict[ValueId, ValueId] = {}
        #: What the place of an operation is also that of, by its first result.
        self._merged: dict[ValueId, list[SourceInfo | None]] = {}

    def block(self, block: Block) -> Block:
        """Return ``block`` merged; itself where nothing changes."""
        entered: list[Hashable] = []
        kept: list[CoreOperation] = []
        changed = False
        for operation in block.operations:
            if operation.regions:
                left = reading(operation, self._same, tuple([self.block(each) for each in operation.regions]))
            elif is_effect(operation):
                left = reading(operation, self._same)
            else:
                operands = tuple([self._same.get(value, value) for value in operation.operands])
                key = key_of(operation, [self._equal.get(value, value) for value in operands])
                known = self._known.get(key)
                if known is not None and _is_free(operation):
                    self._equal[operation.value_id] = known[0]
                elif known is not None:
                    self._same.update(zip(operation.result_ids, known, strict=True))
                    self._merged.setdefault(known[0], []).append(operation.source)
                    changed = True
                    continue
                else:
                    self._known[key] = operation.result_ids
                    entered.append(key)
                left = operation if operands == operation.operands else replace(operation, operands=operands)
            changed = changed or left is not operation
            kept.append(left)
        for key in entered:  # what a region computes is not there behind it
            del self._known[key]
        terminator = self._code.resolved(block.terminator)
        if not changed and terminator is block.terminator:
            return block
        return replace(block, operations=tuple(map(self._located, kept)), terminator=terminator)

    def _located(self, operation: CoreOperation) -> CoreOperation:
        """Return an operation with the place of all that it was merged with, where there can be several."""
        others = self._merged.get(operation.value_id, ())
        place = joined([operation.source, *others]) if others else operation.source
        return operation if place is operation.source else replace(operation, source=place)
