"""Emits groups and row programs as nests in the place of their last member."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Decision, Decisions, computed
from mind_mlir.lowering.schedule.deduplication import DeduplicatedNests, call_choices
from mind_mlir.lowering.schedule.epilogues import ending_of
from mind_mlir.lowering.schedule.folds.matching import folds_pairs
from mind_mlir.lowering.schedule.fusion.groups.collapse import (
    collapse,
    collapse_value,
    expand_value,
    merged_loops,
)
from mind_mlir.lowering.schedule.fusion.groups.in_place import overwritten
from mind_mlir.lowering.schedule.fusion.nests.elements import Known
from mind_mlir.lowering.schedule.fusion.nests.program import NestProgram, Output
from mind_mlir.lowering.schedule.fusion.nests.schedule import choose_schedule
from mind_mlir.lowering.schedule.fusion.nests.work import work_of
from mind_mlir.lowering.schedule.fusion.row_programs.row_nest import emit_nest
from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import choose_rows
from mind_mlir.lowering.schedule.linalg_view.values import filler, used
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import is_result_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.groups.row_program import RowProgram
    from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Passes
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.target import Target


class NestEmission:
    """Emits the groups and the row programs of one block."""

    def __init__(
        self, emitter: Emitter, nests: DeduplicatedNests, target: Target, decisions: Decisions
    ) -> None:
        self._emitter, self._nests, self._target, self._decisions = emitter, nests, target, decisions
        self._numbers = itertools.count()  # of products whose macro-tiles groups end

    def emit_group(self, group: Group, pending: Container[Value]) -> None:
        """Replace the members of ``group`` by a nest."""
        operations = [view.op for view in group.members]
        written = written_by(group.members)
        if written:
            with ir.InsertionPoint(operations[-1]), ir.Location.fused([op.location for op in operations]):
                self._group_nest(group, written, pending)
        for operation in reversed(operations):
            operation.erase()

    def _group_nest(self, group: Group, written: list[Value], pending: Container[Value]) -> None:
        ending = ending_of(group, self._target)
        targets = targets_of(group, written, pending, None if ending is None else ending.result)
        if ending is not None and not collapse(group, ending.loops):
            ending = None
        loops = merged_loops(group.members) if ending is None else None
        if loops is not None:
            collapse(group, loops)
        work = work_of(group, written)
        if ending is None:
            schedule = choose_schedule(work, self._target)
        else:
            schedule = ending.schedule(work, self._target, next(self._numbers))
        self._emit(group, zip(written, targets, strict=True), schedule, group.place)

    def _emit(
        self,
        group: Group,
        written: Iterable[tuple[Value, Value | None]],
        schedule: FusedSchedule,
        place: int,
        passes: Passes | None = None,
    ) -> None:
        """Put a nest, or a call of what does so, in place of results, each with what it may overwrite."""
        outputs = [self._output(group, *pair, passes, in_memory=schedule.in_memory) for pair in written]
        nest = NestProgram(group, outputs, schedule, self._target)
        called = self._nests.call(nest) if schedule.epilogue is None else None

        def decision() -> Decision:
            operations = computed(view.op for view in group.members)
            return Decision(
                schedule.kind, operations, group.extents, (*schedule.choices(), *call_choices(called))
            )

        self._decisions.add(decision, place)
        tensors = emit_nest(self._emitter, nest, Known()) if called is None else called
        for output, value in zip(outputs, tensors, strict=True):
            old = output.result
            old.replace_all_uses_with(expand_value(value, list(old.type.shape)))

    def _output(
        self, group: Group, result: Value, target: Value | None, passes: Passes | None, *, in_memory: bool
    ) -> Output:
        """Return where ``result`` is written: ``target``, its init if it starts from that, or a new tensor.

        It is not written over ``target`` if a later one of ``passes`` over a row reads that. Reductions may
        accumulate ``in_memory``, in their results.
        """
        view, number = group.produced[result], result.result_number
        access = view.accesses[len(view.inputs) + number]
        shape = [group.extents[index.terms[0][0]] if index.terms else 1 for index in access]
        if target is not None:
            form = form_of(group, target, shape)
            if passes is None or not passes.reads_after(result, form):
                return Output(view, number, form)
        init = view.op.operands[len(view.inputs) + number]
        start = filler(init) if view.reductions and not in_memory else None
        if view.reductions and start is None and passes is None:
            return Output(view, number, collapse_value(init, shape))
        element = ir.RankedTensorType(init.type).element_type
        return Output(view, number, self._emitter.empty(shape, element), start)

    def emit_rows(self, program: RowProgram, pending: Container[Value]) -> None:
        """Replace the members of ``program`` by one nest, or each of its groups where these are better."""
        if len(program.groups) < 2 or not self._replaced(program, pending):
            for group in program.groups:
                group.refresh()
                self.emit_group(group, pending)

    def _replaced(self, program: RowProgram, pending: Container[Value]) -> bool:
        """Replace the members of ``program`` by one nest; return False, with them as they were, if not."""
        operations = [view.op for view in program.whole.members]
        inside = dict.fromkeys((*operations, *program.reshapes.values()))
        seen: list[Operation] = []
        for op in reversed(program.reshapes.values()):  # what one reads stands before it, and is kept, too
            if leaves(op.results[0], inside):
                seen.insert(0, op)
                del inside[op]
        written = [result for op in operations for result in op.results if leaves(result, inside)]
        last = max(program.groups, key=lambda group: group.place)
        end = last.members[-1].op
        with ir.InsertionPoint(end), ir.Location.fused([op.location for op in operations]):
            if not written or not self._row_nest(program.whole, written, last, pending):
                return False
        for op in seen:
            op.move_before(end)
        _erase(list(inside))
        return True

    def _row_nest(self, group: Group, written: list[Value], last: Group, pending: Container[Value]) -> bool:
        """Emit the nest and let ``written`` be its results; return False if it is not to be one."""
        end = last.members[-1].op
        in_place = sorted(group.members, key=lambda view: view.op == end)  # the last one last
        targets = targets_of(dataclasses.replace(group, members=in_place), written, pending)
        loops = merged_loops(group.members)
        if loops is not None and not collapse(group, loops):
            return False
        rank = len(group.extents)
        if group.reductions != (rank - 1,) or group.vector != rank - 1:
            return False
        chosen = choose_rows(group, written, self._target)
        if chosen is None:
            return False
        passes, schedule = chosen
        self._emit(group, zip(written, targets, strict=True), schedule, last.place, passes)
        return True


def written_by(members: Sequence[View]) -> list[Value]:
    """Return the results of ``members`` that anything else uses; of one fold, all if any is used."""
    operations = [view.op for view in members]
    written: list[Value] = []
    for view in members:
        used_results = [result for result in view.op.results if leaves(result, operations)]
        written += view.op.results if used_results and folds_pairs(view) else used_results
    return written


def targets_of(
    group: Group, results: list[Value], pending: Container[Value], spared: Value | None = None
) -> list[Value | None]:
    """Return for each of ``results`` the value that it may overwrite, if there is one (see `overwritten`)."""
    taken: dict[Value, None] = {}
    targets: list[Value | None] = []
    for result in results:
        reduced = group.produced[result].reductions
        target = None if reduced else overwritten(group, result, pending, spared)
        targets.append(None if target in taken else target)
        if target is not None:
            taken[target] = None
    group.over = frozenset(taken)
    return targets


def form_of(group: Group, value: Value, shape: list[int]) -> Value:
    """Return ``value`` in ``shape``, as a member of ``group`` reads it if one does."""
    for view in group.members:
        for operand in view.inputs:
            is_view = is_result_of(operand, "tensor.collapse_shape") and operand.owner.operands[0] == value
            if (is_view or operand == value) and list(operand.type.shape) == shape:
                return operand
    return collapse_value(value, shape)


def leaves(result: Value, members: Container[Operation]) -> bool:
    """Return whether ``result`` is used by anything but ``members``."""
    return any(use.owner.operation not in members for use in result.uses)


def _erase(operations: list[Operation]) -> None:
    """Erase ``operations``, whose results nothing else uses any more."""
    left = operations
    while left:
        unused = [op for op in left if not any(used(result) for result in op.results)]
        assert unused, "what uses a member is one, or uses what has taken its place"
        left = [op for op in left if op not in unused]
        for op in unused:
            op.erase()
