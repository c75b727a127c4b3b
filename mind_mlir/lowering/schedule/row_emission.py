"""Emits row programs as nests in the place of their last member."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.decision import Decision, computed
from mind_mlir.lowering.schedule.fusion.collapse import collapse, expand_value, merged_loops
from mind_mlir.lowering.schedule.fusion.elements import Known
from mind_mlir.lowering.schedule.fusion.group import Group
from mind_mlir.lowering.schedule.fusion.output import Output
from mind_mlir.lowering.schedule.fusion.row_choice import choose_rows, emit_rows
from mind_mlir.lowering.schedule.fusion.row_nest import starts_of
from mind_mlir.lowering.schedule.group_emission import form_of, leaves, targets_of
from mind_mlir.lowering.schedule.sharing.groups import share_rows
from mind_mlir.lowering.schedule.sharing.nests import choices_of_sharing
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Container

    from mind_mlir.lowering.schedule.emission.decision import Decisions
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.passes import Passes
    from mind_mlir.lowering.schedule.fusion.row_program import RowProgram
    from mind_mlir.lowering.schedule.sharing.nests import SharedNests
    from mind_mlir.mlir.bindings import Operation, Value
    from mind_mlir.target import Target


class RowEmission:
    """Emits the row programs of one block.

    Args:
        emitter: Where to emit.
        shared: The nests that the function repeats.
        target: The processor.
        decisions: Is told what is decided.
    """

    def __init__(self, emitter: Emitter, shared: SharedNests, target: Target, decisions: Decisions) -> None:
        self._emitter = emitter
        self._shared = shared
        self._target = target
        self._decisions = decisions

    def emit(self, program: RowProgram, pending: Container[Value]) -> bool:
        """Replace the members of ``program`` by one nest.

        Args:
            program: What to emit.
            pending: Results of operations that stand in the block, but are emitted later.

        Returns:
            False, with the operations as they were, if its groups are better nests of their own.
        """
        if len(program.groups) < 2:
            return False
        operations = {view.op: None for view in program.members}
        inside = {**operations, **dict.fromkeys(program.reshapes.values())}
        seen: list[Operation] = []
        for op in reversed(program.reshapes.values()):  # what one reads stands before it, and is kept, too
            if leaves(op.results[0], inside):
                seen.insert(0, op)
                del inside[op]
        written = [result for op in operations for result in op.results if leaves(result, inside)]
        last = max(program.groups, key=lambda group: group.place)
        end = last.members[-1].op
        location = ir.Location.fused([op.location for op in operations])
        with ir.InsertionPoint(end), location:
            if not written or not self._nest(program, written, last, pending):
                return False
        for op in seen:
            op.move_before(end)
        _erase(program, seen)
        return True

    def _nest(
        self, program: RowProgram, written: list[Value], last: Group, pending: Container[Value]
    ) -> bool:
        """Emit the nest and let ``written`` be its results; return False if it is not to be one."""
        group = Group(program.space.extents, program.space.last, list(program.members), program.space.along)
        group.produced = dict(program.produced)
        end = [view for view in group.members if view.op == last.members[-1].op]
        before = [view for view in group.members if view.op != end[0].op]
        targets = targets_of(dataclasses.replace(group, members=[*before, *end]), written, pending)
        loops = merged_loops(group.members)
        if loops is not None and not collapse(group, loops):
            return False
        rank = len(group.extents)
        if group.reductions != (rank - 1,) or group.vector != rank - 1:
            return False
        group.produced = {result: view for view in group.members for result in view.op.results}
        chosen = choose_rows(group, written, self._target)
        if chosen is None:
            return False
        passes, schedule = chosen
        pairs = zip(written, targets, strict=True)
        outputs = [self._output(group, passes, result, target) for result, target in pairs]
        tensors = share_rows(self._shared, group, outputs, schedule, self._target)
        choices = (*schedule.choices(), *choices_of_sharing(tensors))
        operations = [view.op for view in program.members]
        self._decisions.add(
            lambda: Decision(schedule.kind, computed(operations), group.extents, choices), last.place
        )
        if tensors is None:
            starts = starts_of(group.members)
            tensors = emit_rows(self._emitter, group, outputs, starts, schedule, self._target, Known())
        for old, value in zip(written, tensors, strict=True):
            old.replace_all_uses_with(expand_value(value, list(old.type.shape)))
        return True

    def _output(self, group: Group, passes: Passes, result: Value, target: Value | None) -> Output:
        """Return where ``result`` is written: over ``target`` unless a later pass reads that."""
        view, number = group.produced[result], result.result_number
        access = view.accesses[len(view.inputs) + number]
        shape = [group.extents[index.terms[0][0]] if index.terms else 1 for index in access]
        if target is not None:
            form = form_of(group, target, shape)
            if not passes.reads_after(result, form):
                return Output(view, number, form)
        element = ir.RankedTensorType(result.type).element_type
        return Output(view, number, self._emitter.empty(shape, element))


def _erase(program: RowProgram, kept: list[Operation]) -> None:
    """Erase the members of ``program`` and the reshapes of their results but those that are ``kept``."""
    reshapes = [op for op in program.reshapes.values() if op not in kept]
    left = [view.op for view in program.members] + reshapes
    while left:
        unused = [not any(True for result in op.results for _ in result.uses) for op in left]
        assert any(unused), "what uses a member is one, or uses what has taken its place"
        pairs = list(zip(left, unused, strict=True))
        left = [op for op, erased in pairs if not erased]
        for op, erased in pairs:
            if erased:
                op.erase()
