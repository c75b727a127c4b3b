"""The kinds that move elements: transpositions, scatters, and loops over rows that stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.collapse import expand_value
from mind_mlir.lowering.schedule.kind import Kind, Refusal, merged
from mind_mlir.lowering.schedule.movement.row_loops import RowLoop, RowSchedule, emit_rows, match_rows
from mind_mlir.lowering.schedule.movement.scatter import (
    Scatter,
    ScatterEmitter,
    ScatterSchedule,
    choose_scatter_schedule,
    match_scatter,
)
from mind_mlir.lowering.schedule.movement.transposition import (
    Transposition,
    TranspositionEmitter,
    TranspositionSchedule,
    choose_transposition_schedule,
    match_transposition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


class TranspositionKind(Kind[Transposition, TranspositionSchedule]):
    """Copies whose source and result are contiguous along different loops."""

    name = "transposition"

    def match(self, site: Site) -> Transposition | None:
        """Return the operation as a transposition if it is one."""
        return None if site.view is None else match_transposition(site.view)

    def prepare(self, nest: Transposition, site: Site) -> Transposition | Refusal:
        """Return the transposition with as few loops as it can have, unless only products read it."""
        del nest
        if all(site.scope.absorbs(use) for use in site.op.results[0].uses):
            return Refusal("the products that read it read its source instead", stays=True)
        return self.merged(site.loops)

    def merged(self, view: View) -> Transposition:
        """Return a transposition with as few loops as it can have; reshapes of its operand are emitted."""
        found = match_transposition(merged(view))
        assert found is not None, "merged loops transpose what they did"
        return found

    def choose(self, nest: Transposition, target: Target) -> TranspositionSchedule:
        """Return how to transpose."""
        return choose_transposition_schedule(nest.extents, nest.row, nest.column, nest.bits, target)

    def emit(self, nest: Transposition, schedule: TranspositionSchedule, site: Site) -> Sequence[Value]:
        """Emit the squares."""
        found = TranspositionEmitter(site.scope.emitter, nest, schedule).emit()
        return [expand_value(found, list(nest.view.op.results[0].type.shape))]


class ScatterKind(Kind[Scatter, ScatterSchedule]):
    """Rows, or elements, that are combined with others at positions known at run time."""

    name = "scatter"

    def match(self, site: Site) -> Scatter | None:
        """Return the operation as a scatter if it is marked as one."""
        return match_scatter(site.op)

    def choose(self, nest: Scatter, target: Target) -> ScatterSchedule:
        """Return how threads share the rows of the result."""
        return choose_scatter_schedule(nest, target)

    def emit(self, nest: Scatter, schedule: ScatterSchedule, site: Site) -> Sequence[Value]:
        """Emit the loops over the updates."""
        return [ScatterEmitter(site.scope.emitter, nest, schedule).emit()]


class RowKind(Kind[RowLoop, RowSchedule]):
    """Loops over rows, each of which is computed by itself, among threads."""

    name = "rows"

    def match(self, site: Site) -> RowLoop | None:
        """Return the operation as a loop over rows if it is marked as one."""
        return match_rows(site.op)

    def choose(self, nest: RowLoop, target: Target) -> RowSchedule:
        """Return how the rows are split."""
        del target
        return nest.schedule()

    def emit(self, nest: RowLoop, schedule: RowSchedule, site: Site) -> Sequence[Value]:
        """Emit the loop over chunks."""
        return emit_rows(nest, schedule, site.scope.emitter)
