"""Positions of operations in their blocks, while operations are erased and moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.bindings import Block, Operation


class BlockOrder:
    """The operations of blocks by position.

    Operations cannot be keys of a mapping while they change: their hash is that of their contents. They are
    found by bisection instead. Erasing and moving operations must be announced; moved ones are not found any
    more.
    """

    def __init__(self) -> None:
        self._blocks: dict[Block, list[Operation | None]] = {}

    def forget(self, op: Operation) -> None:
        """Leave ``op`` out from now on: it is about to be erased or moved."""
        operations = self._of(op.block)
        index = self._index(operations, op)
        if index < len(operations) and operations[index] == op:
            operations[index] = None

    def between(self, first: Operation, last: Operation) -> Iterator[Operation]:
        """Iterate over the operations from ``first`` to ``last`` of the same block, both included."""
        operations = self._of(first.block)
        for index in range(self._index(operations, first), len(operations)):
            op = operations[index]
            if op is None:
                continue
            yield op
            if op == last:
                return

    def _of(self, block: Block) -> list[Operation | None]:
        if block not in self._blocks:
            self._blocks[block] = [op.operation for op in block.operations]
        return self._blocks[block]

    @staticmethod
    def _index(operations: list[Operation | None], op: Operation) -> int:
        """Return the index of ``op``, or of the next operation after it."""
        low, high = 0, len(operations)
        while low < high:
            middle = (low + high) // 2
            probe = next((at for at in range(middle, high) if operations[at] is not None), high)
            found = operations[probe] if probe < high else None
            if found is not None and found.is_before_in_block(op):
                low = probe + 1
            else:
                high = middle
        while low < len(operations) and operations[low] is None:
            low += 1
        return low
