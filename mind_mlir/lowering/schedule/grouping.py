"""Collects operations into groups while going through a block, and emits groups when they are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.emission.decision import Decision, computed
from mind_mlir.lowering.schedule.fusion.collapse import collapse, collapse_value, expand_value, merged_loops
from mind_mlir.lowering.schedule.fusion.elements import Known
from mind_mlir.lowering.schedule.fusion.group import Group, extractions
from mind_mlir.lowering.schedule.fusion.in_place import overwritten
from mind_mlir.lowering.schedule.fusion.nest import GroupEmitter
from mind_mlir.lowering.schedule.fusion.output import Output
from mind_mlir.lowering.schedule.fusion.schedule import choose_schedule
from mind_mlir.lowering.schedule.fusion.work import work_of
from mind_mlir.lowering.schedule.reading.values import filler
from mind_mlir.lowering.schedule.sharing.groups import share_group
from mind_mlir.lowering.schedule.sharing.nests import choices_of_sharing
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.bindings import Operation, Value
    from mind_mlir.lowering.schedule.emission.decision import Decisions
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.fusion.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.reading.view import View
    from mind_mlir.lowering.schedule.sharing.nests import SharedNests
    from mind_mlir.target import Target


class Grouping:
    """The groups of one block that are still open.

    A group is closed, and emitted in the place of its last member, when something that cannot join it uses
    one of its results. So no open group depends on another open group: two that an operation reads become one
    if they may, and each operation is looked at once.

    In a loop, what reads the same carried value goes together where it may, be its results as independent as
    they are: only then can the value be overwritten by its next one (see `overwritten`).
    """

    def __init__(self, emitter: Emitter, shared: SharedNests, target: Target, decisions: Decisions) -> None:
        self._emitter = emitter
        self._shared = shared
        self._target = target
        self._decisions = decisions
        self._open: dict[Value, Group] = {}
        #: The open group that reads a value which a loop carries.
        self._readers: dict[Value, Group] = {}

    def add(self, view: View, dims: tuple[int, ...]) -> None:
        """Add ``view``, which can run in vectors along ``dims``, to a group that it reads or to a new one."""
        self.close([op.operands[0] for op in extractions(view)])
        group: Group | None = None
        for value in view.operands:
            candidate = self._open.get(value)
            if candidate is None or candidate is group:
                continue
            joined = self._joined(group, candidate, view, dims)
            if joined is None:
                self.close([value])
            else:
                group = joined
        carried = [value for value in view.operands[: len(view.inputs)] if _is_carried(value)]
        for value in carried:
            reader = self._readers.get(value)
            if reader is not None and reader is not group:
                group = self._joined(group, reader, view, dims) or group
        if group is None:
            group = Group(view.extents, dims[0])
        group.add(view.current())
        group.place = self._decisions.place
        self._readers.update(dict.fromkeys(carried, group))
        for result in view.op.results:
            self._open[result] = group

    def _joined(
        self, group: Group | None, candidate: Group, view: View, dims: tuple[int, ...]
    ) -> Group | None:
        """Return the open group of ``group``, if there is one yet, and ``candidate``, or None.

        Args:
            group: A group that ``view`` may join.
            candidate: Another one.
            view: The operation that brings them together.
            dims: Along which it can run in vectors.
        """
        if not candidate.accepts(view, dims):
            return None
        if group is None:
            return candidate
        if not group.takes(candidate):
            return None
        for member in candidate.members:
            group.add(member)
            self._open.update(dict.fromkeys(member.op.results, group))
            for value in member.operands[: len(member.inputs)]:
                if self._readers.get(value) is candidate:
                    self._readers[value] = group
        return group

    def add_alone(self, view: View, dims: tuple[int, ...], place: int | None = None) -> None:
        """Emit ``view``, which reads nothing that an open group computes, as a group of its own.

        Args:
            view: The operation.
            dims: Along which it can run in vectors.
            place: Its place (see `Decisions`), unless the scheduler has just come to it.
        """
        group = Group(view.extents, dims[0])
        group.add(view)
        group.place = self._decisions.place if place is None else place
        for result in view.op.results:
            self._open[result] = group
        self._emit(group)

    def close(self, values: Iterable[Value]) -> None:
        """Emit the open groups that compute ``values``; these are replaced, do not look at them again."""
        for value in values:
            group = self._open.get(value)
            if group is not None:
                self._emit(group)

    def close_all(self) -> None:
        """Emit all open groups."""
        self.close(list(self._open))

    def _emit(self, group: Group) -> None:
        for value in group.produced:
            del self._open[value]
        for view in group.members if self._readers else ():  # which only loops have
            for value in view.operands[: len(view.inputs)]:
                if self._readers.get(value) is group:
                    del self._readers[value]
        operations = [view.op for view in group.members]
        results = [
            (number, place)
            for number, view in enumerate(group.members)
            for place, result in enumerate(view.op.results)
            if _leaves(result, operations)
        ]
        if results:
            self._emit_nest(group, operations, results)
        for operation in reversed(operations):
            operation.erase()

    def _emit_nest(self, group: Group, operations: list[Operation], results: list[tuple[int, int]]) -> None:
        location = ir.Location.fused([operation.location for operation in operations])
        with ir.InsertionPoint(operations[-1]), location:
            targets = self._targets(group, [operations[number].results[place] for number, place in results])
            loops = merged_loops(group.members)
            if loops is not None:
                collapse(group, loops)
            written = [operations[number].results[place] for number, place in results]
            schedule = choose_schedule(work_of(group, written), self._target)
            outputs = [
                self._output(group, schedule, number, place, operations[number], target)
                for (number, place), target in zip(results, targets, strict=True)
            ]
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
            for (number, place), value in zip(results, tensors, strict=True):
                old = operations[number].results[place]
                old.replace_all_uses_with(expand_value(value, list(old.type.shape)))

    def _targets(self, group: Group, results: list[Value]) -> list[Value | None]:
        """Return for each of ``results`` the value of a loop that it may overwrite, if there is one."""
        taken: dict[Value, None] = {}
        targets: list[Value | None] = []
        for result in results:
            reduced = group.produced[result].reductions
            target = None if reduced else overwritten(group, result, self._open)
            targets.append(None if target in taken else target)
            if target is not None:
                taken[target] = None
        return targets

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
            return Output(view, place, _form(group, target, shape))
        start = None if schedule.in_memory else filler(init)
        if view.reductions and start is None:
            return Output(view, place, collapse_value(init, shape))
        element = ir.RankedTensorType(init.type).element_type
        return Output(view, place, self._emitter.empty(shape, element), start)


def _is_carried(value: Value) -> bool:
    """Return whether a loop carries ``value``: whether it is an argument of its body or condition."""
    return isinstance(value, ir.BlockArgument) and value.owner.owner.name in ("scf.for", "scf.while")


def _form(group: Group, value: Value, shape: list[int]) -> Value:
    """Return ``value`` in ``shape``, as a member of ``group`` reads it if one does."""
    for view in group.members:
        for operand in view.inputs:
            op = definition(operand)
            is_view = op is not None and op.name == "tensor.collapse_shape" and op.operands[0] == value
            if (is_view or operand == value) and list(operand.type.shape) == shape:
                return operand
    return collapse_value(value, shape)


def _leaves(result: Value, members: list[Operation]) -> bool:
    """Return whether ``result`` is used by anything but ``members``."""
    return any(use.owner.operation not in members for use in result.uses)
