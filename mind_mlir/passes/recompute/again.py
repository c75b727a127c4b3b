"""Copies of operations, for values that are computed again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.recompute.levels import Levels


class Copies:
    """Copies of operations of a block, each made in front of the first operation that needs it.

    Nothing is copied sooner: what an operation reads may be defined no earlier than where it is needed.

    Args:
        levels: The block.
        numbers: The operations that are copied, of one result each; what others make is read as it is.
        fresh: Numbers for values.
    """

    def __init__(self, levels: Levels, numbers: Collection[int], fresh: Iterator[ValueId]) -> None:
        self._levels = levels
        self._numbers = numbers
        self._fresh = fresh
        self._made: dict[ValueId, ValueId] = {}

    def reading(self, operation: CoreOperation, values: Collection[ValueId]) -> Iterator[CoreOperation]:
        """Yield, in order, the copies of what makes ``values`` that there are not yet.

        Then ``operation``, which reads ``values``, reading the copies.
        """
        levels, needed = self._levels, set[int]()
        pending = list(values)
        while pending:
            value = pending.pop()
            maker = levels.made_by.get(value)
            if maker is None or maker not in self._numbers or value in self._made:
                continue
            if maker not in needed:
                needed.add(maker)
                pending += levels.operations[maker].operands
        for number in sorted(needed):
            copied = levels.operations[number]
            copy = self._with(copied, copied.operands)
            self._made[copied.value_id] = value = next(self._fresh)
            yield replace(copy, value_id=value, origin=f"{copied.label} again")
        yield self._with(operation, values)

    def _with(self, operation: CoreOperation, values: Collection[ValueId]) -> CoreOperation:
        """Return ``operation``, where it reads the copies of ``values`` that there are."""
        made = self._made
        operands = [made.get(each, each) if each in values else each for each in operation.operands]
        return replace(operation, operands=tuple(operands))
