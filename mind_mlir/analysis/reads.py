"""What operations read and define, regions included."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import Block, CoreOperation, ValueId


def blocks_within(operation: CoreOperation) -> Iterator[Block]:
    """Yield the blocks of an operation's regions, and of those of the operations in them."""
    pending = list(reversed(operation.regions))
    while pending:
        block = pending.pop()
        yield block
        for inner in block.operations:
            if inner.regions:
                pending.extend(reversed(inner.regions))


def reads(operation: CoreOperation) -> tuple[ValueId, ...]:
    """Return the values that an operation reads and that are defined around it; some may come twice."""
    if not operation.regions:
        return operation.operands
    found = list(operation.operands)
    defined: set[ValueId] = set()
    for block in blocks_within(operation):
        defined.update(parameter.value_id for parameter in block.parameters)
        found.extend(block.terminator.operands)
        for inner in block.operations:
            defined.update(inner.result_ids)
            found.extend(inner.operands)
    return tuple(value for value in found if value not in defined)


def depth_of(operation: CoreOperation) -> int:
    """Return how deep regions nest in an operation: 0 without regions."""
    deepest, pending = 0, [(operation, 0)]
    while pending:
        current, depth = pending.pop()
        deepest = max(deepest, depth)
        for region in current.regions:
            deepest = max(deepest, depth + 1)
            pending.extend((inner, depth + 1) for inner in region.operations if inner.regions)
    return deepest
