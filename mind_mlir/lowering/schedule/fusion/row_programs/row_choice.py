"""Row programs over rows that the cache holds, or does not: how they are computed, and emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.emission.constants import REPEATED, REPEATED_LONG
from mind_mlir.lowering.schedule.fusion.groups.row_space import RowSpace
from mind_mlir.lowering.schedule.fusion.row_programs.long_nest import LongRowEmitter
from mind_mlir.lowering.schedule.fusion.row_programs.long_schedule import LongSchedule, choose_long_schedule
from mind_mlir.lowering.schedule.fusion.row_programs.long_stages import stages_of
from mind_mlir.lowering.schedule.fusion.row_programs.passes import Passes, passes_of
from mind_mlir.lowering.schedule.fusion.row_programs.row_nest import RowEmitter
from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import (
    RowPlan,
    RowSchedule,
    choose_row_schedule,
    is_long,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.output import Output
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target

AnyRowSchedule: TypeAlias = RowSchedule | LongSchedule


def choose_rows(
    group: Group, results: Sequence[Value], target: Target
) -> tuple[Passes, AnyRowSchedule] | None:
    """Return the passes of a row program and how they are computed; None if it is not to be one nest.

    Args:
        group: All its operations, over its loops; their rows lie along the last one.
        results: The results that are used outside of it.
        target: The processor.
    """
    passes = _passes(group, results, REPEATED)
    schedule = choose_row_schedule(group, passes, results, target)
    if schedule is not None:
        return passes, schedule
    if not is_long(group, passes, results, target):
        return None
    passes = _passes(group, results, REPEATED_LONG)
    long = choose_long_schedule(group, passes, stages_of(passes, group.produced), results, target)
    return None if long is None else (passes, long)


def emit_rows(
    emitter: Emitter,
    group: Group,
    outputs: Sequence[Output],
    starts: Mapping[Value, Value],
    schedule: AnyRowSchedule,
    target: Target,
    known: Known,
) -> list[Value]:
    """Emit a row program at the insertion point; return the tensors of the outputs, in their order.

    Args:
        emitter: Where to emit.
        group: All its operations; their rows lie along the last loop.
        outputs: The results that are used outside of it.
        starts: The number that each reduction starts from, where that is known.
        schedule: How.
        target: The processor.
        known: Other values for some that the bodies take from outside.
    """
    results = [output.result for output in outputs]
    if isinstance(schedule, LongSchedule):
        passes = _passes(group, results, REPEATED_LONG)
        return LongRowEmitter(emitter, group, passes, outputs, starts, schedule, target).emit(known)
    passes = _passes(group, results, REPEATED)
    plan = RowPlan(group, passes, outputs, starts, schedule, target)
    return RowEmitter(emitter, plan).emit(known)


def _passes(group: Group, results: Sequence[Value], repeated: int) -> Passes:
    space = RowSpace(group.extents, group.reductions)
    return passes_of(group.members, group.produced, space, results, repeated)
