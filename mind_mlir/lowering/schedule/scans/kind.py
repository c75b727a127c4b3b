"""The kind of schedules of scans along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.kind import Kind
from mind_mlir.lowering.schedule.scans.emission import ScanEmitter
from mind_mlir.lowering.schedule.scans.match import Scan, match_scan
from mind_mlir.lowering.schedule.scans.schedule import ScanSchedule, choose_scan_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


class ScanKind(Kind[Scan, ScanSchedule]):
    """Sums, products and extremes up to each element."""

    name = "scan"

    def match(self, site: Site) -> Scan | None:
        """Return the operation as a scan if it is marked as one."""
        return None if site.view is None else match_scan(site.view)

    def choose(self, nest: Scan, target: Target) -> ScanSchedule:
        """Return how vectors run, and what threads share."""
        return choose_scan_schedule(nest, target)

    def emit(self, nest: Scan, schedule: ScanSchedule, site: Site) -> Sequence[Value]:
        """Emit the passes."""
        return [ScanEmitter(site.scope.emitter, nest, schedule).emit()]
