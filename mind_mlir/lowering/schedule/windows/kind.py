"""The kind of schedules of convolutions of each channel by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.collapse import expand_value
from mind_mlir.lowering.schedule.kind import Kind
from mind_mlir.lowering.schedule.windows.depthwise import (
    Depthwise,
    DepthwiseSchedule,
    depthwise_schedule,
    match_depthwise,
)
from mind_mlir.lowering.schedule.windows.depthwise_emission import DepthwiseEmitter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.kind import Refusal, Site
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


class DepthwiseKind(Kind[Depthwise, DepthwiseSchedule]):
    """Convolutions in groups of one channel, or of few."""

    name = "depthwise"

    def match(self, site: Site) -> Depthwise | Refusal | None:
        """Return the operation as a convolution in groups if it is one."""
        return None if site.view is None else match_depthwise(site.view, site.scope.target)

    def choose(self, nest: Depthwise, target: Target) -> DepthwiseSchedule:
        """Return how many neighbours of a line are computed at once."""
        return depthwise_schedule(nest, target)

    def emit(self, nest: Depthwise, schedule: DepthwiseSchedule, site: Site) -> Sequence[Value]:
        """Emit the lines."""
        found = DepthwiseEmitter(site.scope.emitter, nest, schedule, fma=site.scope.target.fma).emit()
        return [expand_value(found, list(nest.view.op.results[0].type.shape))]
