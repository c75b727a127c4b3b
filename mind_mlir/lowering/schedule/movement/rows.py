"""Shares loops over rows that do not depend on one another among threads, as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.decision import Choice, Decision, computed
from mind_mlir.lowering.schedule.emission.split import split
from mind_mlir.mlir.bindings import ir
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.emission.decision import Decisions
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.mlir.bindings import Operation, Value


def share_rows(op: Operation, emitter: Emitter, decisions: Decisions) -> bool:
    """Put a loop over chunks of rows in the place of ``op``, if it is a loop over rows.

    Args:
        op: Any operation.
        emitter: Where to emit.
        decisions: Is told what is decided.

    Returns:
        Whether it was one.
    """
    if op.name != "scf.for" or ROWS_ATTRIBUTE not in op.attributes:
        return False
    nanoseconds = ir.IntegerAttr(op.attributes[ROWS_ATTRIBUTE]).value
    del op.attributes[ROWS_ATTRIBUTE]
    count = ir.IntegerAttr(op.operands[1].owner.attributes["value"]).value
    cut = split(count, nanoseconds)
    choice = Choice("chunks", f"{cut.count} of the rows", cut.reason)
    decisions.add(lambda: Decision("rows", computed([op]), (count,), (choice,)))

    def rows(first: Index, end: Index, carried: list[Value]) -> list[Value]:
        clone = op.clone().operation
        for place, value in enumerate([emitter.index(first), emitter.index(end)]):
            clone.operands[place] = value
        for place, value in enumerate(carried, start=3):
            clone.operands[place] = value
        return list(clone.results)

    with ir.InsertionPoint(op), op.location:
        found = emitter.chunks(cut, count, list(op.operands)[3:], rows)
    for old, new in zip(op.results, found, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return True
