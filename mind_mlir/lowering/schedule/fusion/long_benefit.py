"""Decide whether a row program over long rows pays: groups would go to memory for longer than it computes.

Groups keep what one of them computes along the row, and another one reads, in memory; each reads its operands
anew. Stages compute such values again instead, and some have two passes that read the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import (
    BYTE_NS,
    CACHE_SPEEDUP,
    RELATIVE_COST,
    SHARED_CACHE_SPEEDUP,
    VECTOR_NS,
)
from mind_mlir.lowering.schedule.fusion.group import widest
from mind_mlir.lowering.schedule.fusion.passes import cost_of
from mind_mlir.lowering.schedule.fusion.row_schedule import row_bytes_of
from mind_mlir.lowering.schedule.fusion.row_space import RowSpace
from mind_mlir.lowering.schedule.fusion.work import bytes_of, read_by

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from mind_mlir.lowering.schedule.fusion.group import Group
    from mind_mlir.lowering.schedule.fusion.long_stages import Stage
    from mind_mlir.lowering.schedule.fusion.passes import Passes
    from mind_mlir.lowering.schedule.fusion.work import Work
    from mind_mlir.lowering.schedule.reading.view import View
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


def pays(
    group: Group,
    passes: Passes,
    stages: Sequence[Stage],
    results: Container[Value],
    whole: Work,
    target: Target,
    *,
    by_rows: bool,
) -> bool:
    """Return whether stages take less time than groups, for all that is known.

    Args:
        group: All operations of a row program; their rows lie along the last loop.
        passes: What is computed when.
        stages: Which passes go along a row together.
        results: The results that are used outside of it.
        whole: The work of all passes.
        target: The processor.
        by_rows: Whether groups would go through a few rows one after the other.
    """
    again, kept = _again(group, passes, results)
    joined = [stage for stage in stages if stage.relative]
    again += RELATIVE_COST * len(joined)
    read = [row_bytes_of(group, read_by(stage.passes[1].members, group.produced)) for stage in joined]
    # A line that is written is read first.
    saved = sum(read) / group.extents[group.vector] + 2 * sum(kept)
    rate = BYTE_NS
    row_bytes = whole.bytes * group.extents[group.vector] // math.prod(group.extents)
    if 2 * whole.bytes <= target.l3_bytes:
        rate /= CACHE_SPEEDUP
    elif by_rows and 2 * row_bytes <= target.l3_bytes:
        rate /= SHARED_CACHE_SPEEDUP
    return again * VECTOR_NS / target.lanes(widest(group.members)) < saved * rate


def _again(group: Group, passes: Passes, results: Container[Value]) -> tuple[int, list[int]]:
    """Return the operations that passes do again, and the bytes of an element of each value kept for them."""
    space = RowSpace(group.extents, group.reductions)
    first: dict[int, int] = {}
    again = 0
    kept: dict[Value, int] = {}
    for number, part in enumerate(passes.passes):
        along = [view for view in part.members if not view.reductions and not space.is_single(view)]
        again += sum(cost_of(view) for view in along if first.setdefault(id(view), number) < number)
        new = [view for view in part.members if first.get(id(view), number) == number]
        for value in (value for view in new for value in _inputs(view)):
            source = group.produced.get(value)
            if first.get(id(source), number) < number and value not in results:
                kept[value] = bytes_of(value) // math.prod(group.extents)
    return again, list(kept.values())


def _inputs(view: View) -> list[Value]:
    return [value for number, value in enumerate(view.inputs) if view.used(number)]
