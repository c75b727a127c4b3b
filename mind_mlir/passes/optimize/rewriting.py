"""Operations and terminators that read other values, or hold other regions; as they are where none do."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Return, Yield

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Block, CoreOperation, Terminator, ValueId


def reading(
    operation: CoreOperation, same: Mapping[ValueId, ValueId], regions: tuple[Block, ...] | None = None
) -> CoreOperation:
    """Return ``operation`` where its operands are what they have turned out to be.

    Args:
        operation: The operation.
        same: What values have turned out to be.
        regions: Its regions, where they may be others.
    """
    inside = operation.regions if regions is None else regions
    changed = any(one is not other for one, other in zip(inside, operation.regions, strict=True))
    operands = operation.operands
    if not changed and not any(value in same for value in operands):
        return operation
    return replace(operation, operands=tuple([same.get(value, value) for value in operands]), regions=inside)


def ending(terminator: Terminator, same: Mapping[ValueId, ValueId]) -> Terminator:
    """Return the terminator of a function in structured form, or of a region, that reads ``same``."""
    assert isinstance(terminator, (Return, Yield)), "branches are operations in structured form"
    if not any(value in same for value in terminator.operands):
        return terminator
    return replace(terminator, operands=tuple([same.get(value, value) for value in terminator.operands]))


def substituted(block: Block, same: Mapping[ValueId, ValueId]) -> Block:
    """Return ``block``, with all that is in its regions, reading what values have turned out to be."""
    operations = tuple([
        reading(each, same, tuple([substituted(region, same) for region in each.regions]))
        for each in block.operations
    ])  # fmt: skip
    terminator = ending(block.terminator, same)
    if terminator is block.terminator and all(map(is_, operations, block.operations)):
        return block
    return replace(block, operations=operations, terminator=terminator)
