"""What operations read, and which of them anything needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mind_mlir.ir.module import CoreOperation, ValueId


def reads(operation: CoreOperation) -> Iterator[ValueId]:
    """Yield the values that ``operation`` and all that its regions hold read, inner ones too."""
    if not operation.regions:
        yield from operation.operands
        return
    pending = [operation]
    while pending:
        nest = pending.pop()
        yield from nest.operands
        for region in nest.regions:
            yield from region.terminator.operands
            pending += region.operations


def live_operations(operations: Sequence[CoreOperation], roots: Iterable[ValueId]) -> list[CoreOperation]:
    """Return those of the operations of a block that ``roots``, values of it, depend on."""
    live = set(roots)
    kept = []
    for operation in reversed(operations):
        if not live.isdisjoint(operation.result_ids):
            live.update(reads(operation))
            kept.append(operation)
    return kept[::-1]
