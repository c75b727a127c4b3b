"""Emits groups as nests in the place of their last member."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.decision import Decision, computed
from mind_mlir.lowering.schedule.epilogues import ending_of
from mind_mlir.lowering.schedule.fusion.collapse import collapse, collapse_value, expand_value, merged_loops
from mind_mlir.lowering.schedule.fusion.elements import Known
from mind_mlir.lowering.schedule.fusion.in_place import overwritten
from mind_mlir.lowering.schedule.fusion.nest import GroupEmitter
from mind_mlir.lowering.schedule.fusion.output import Output
from mind_mlir.lowering.schedule.fusion.schedule import choose_schedule
from mind_mlir.lowering.schedule.fusion.work import work_of
from mind_mlir.lowering.schedule.reading.values import filler
from mind_mlir.lowering.schedule.sharing.groups import share_group
from mind_mlir.lowering.schedule.sharing.nests import choices_of_sharing
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Container

    from mind_mlir.lowering.schedule.emission.decision import Decisions
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.group import Group
    from mind_mlir.lowering.schedule.fusion.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.sharing.nests import SharedNests
    from mind_mlir.mlir.bindings import Operation, Value
    from mind_mlir.target import Target


class GroupEmission:
    """Emits the groups of one block.

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
        self._numbers = itertools.count()  # of products whose pieces groups end

    def emit(self, group: Group, pending: Container[Value]) -> None:
        """Replace the members of ``group`` by a nest.

        Args:
            group: What to emit.
            pending: Results of operations that stand in the block, but are emitted later.
        """
        operations = [view.op for view in group.members]
        results = [
            (number, place)
            for number, view in enumerate(group.members)
            for place, result in enumerate(view.op.results)
            if leaves(result, operations)
        ]
        if results:
            self._emit_nest(group, operations, results, pending)
        for operation in reversed(operations):
            operation.erase()

    def _emit_nest(
        self,
        group: Group,
        operations: list[Operation],
        results: list[tuple[int, int]],
        pending: Container[Value],
    ) -> None:
        location = ir.Location.fused([operation.location for operation in operations])
        with ir.InsertionPoint(operations[-1]), location:
            written = [operations[number].results[place] for number, place in results]
            ending = ending_of(group, self._target)
            spared = None if ending is None else ending.result
            targets = targets_of(group, written, pending, spared)
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
            outputs = [
                self._output(group, schedule, number, place, operations[number], target)
                for (number, place), target in zip(results, targets, strict=True)
            ]
            tensors = None
            if ending is None:
                tensors = share_group(self._shared, group, outputs, schedule, self._target)
            shared = choices_of_sharing(tensors)
            self._decisions.add(
                lambda: Decision(
                    "fused", computed(operations), group.extents, (*schedule.choices(), *shared)
                ),
                group.place,
            )
            if tensors is None:
                tensors = GroupEmitter(self._emitter, group, outputs, schedule, self._target).emit(Known())
            for old, value in zip(written, tensors, strict=True):
                old.replace_all_uses_with(expand_value(value, list(old.type.shape)))

    def _output(
        self,
        group: Group,
        schedule: FusedSchedule,
        number: int,
        place: int,
        op: Operation,
        target: Value | None,
    ) -> Output:
        """Return where a result is written: ``target``, its init if it starts from that, or a new tensor."""
        view = group.members[number]
        operand = len(view.inputs) + place
        shape = [group.extents[dim] for index in view.accesses[operand] for dim, _ in index.terms]
        init = op.operands[operand]
        if target is not None:
            return Output(view, place, form_of(group, target, shape))
        start = None if schedule.in_memory else filler(init)
        if view.reductions and start is None:
            return Output(view, place, collapse_value(init, shape))
        element = ir.RankedTensorType(init.type).element_type
        return Output(view, place, self._emitter.empty(shape, element), start)


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
    return targets


def form_of(group: Group, value: Value, shape: list[int]) -> Value:
    """Return ``value`` in ``shape``, as a member of ``group`` reads it if one does."""
    for view in group.members:
        for operand in view.inputs:
            op = definition(operand)
            is_view = op is not None and op.name == "tensor.collapse_shape" and op.operands[0] == value
            if (is_view or operand == value) and list(operand.type.shape) == shape:
                return operand
    return collapse_value(value, shape)


def leaves(result: Value, members: Container[Operation]) -> bool:
    """Return whether ``result`` is used by anything but ``members``."""
    return any(use.owner.operation not in members for use in result.uses)
