"""A nest that is to be emitted: a group, or a row program, with its results and its schedule."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.nests.body import reductions_of
from mind_mlir.lowering.schedule.fusion.nests.nest import GroupEmitter
from mind_mlir.lowering.schedule.fusion.row_programs.passes import passes_of
from mind_mlir.lowering.schedule.fusion.row_programs.row_nest import RowEmitter
from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowPlan, RowSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.body import Output
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class NestProgram:
    """All that a nest is emitted from.

    Attributes:
        group: The operations, over the same loops.
        outputs: The results that are used outside of it.
        schedule: How; that of a row program, if it is one.
        target: The processor.
    """

    group: Group
    outputs: Sequence[Output]
    schedule: FusedSchedule | RowSchedule
    target: Target

    @property
    def starts(self) -> dict[Value, Value | None]:
        """What each reduction starts from, those that are no outputs last; None if that is in a tensor."""
        found = {output.result: output.start for output in self.outputs if output.member.reductions}
        for output in reductions_of(view for view in self.group.members if view.reductions):
            found.setdefault(output.result, output.start)
        return found

    def emit(self, emitter: Emitter, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order.

        Args:
            emitter: Emits it.
            known: Numbers from outside that are known as others.
        """
        if not isinstance(self.schedule, RowSchedule):
            return GroupEmitter(emitter, self.group, self.outputs, self.schedule, self.target).emit(known)
        outputs = {output.result: output for output in self.outputs}
        passes = passes_of(self.group, outputs, long=bool(self.schedule.segments))
        plan = RowPlan(self.group, passes, outputs, self.schedule, self.target, known.scalars)
        return RowEmitter(emitter, plan).emit(known)
