"""Groups over the rows of a tensor that wait for one another: what is one nest over rows in the end.

A group ends where something reads what it reduces. If that is over the same rows, both become parts of a
program that is computed for one row after the other, while the row is in the cache. The program ends where
something else reads a result of it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import ROW_PROGRAM_GROUPS, ROW_PROGRAM_LIMIT
from mind_mlir.lowering.schedule.fusion.groups.group import Group, is_identity
from mind_mlir.lowering.schedule.fusion.groups.row_space import RowSpace, space_of

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Operation, Value


class RowProgram:
    """Groups over the same rows, in the order in which they are complete.

    Attributes:
        space: The loops over the rows.
        groups: The groups; each reads results of those before it, or of none.
        members: Their operations over the loops of ``space``.
        produced: Which member computes each result.
        read: What members read, from one another or from outside.
        reshapes: Reshapes of results that there is one of for each row, by their own results.
        waiting: Groups that are still open and read a result, by their identity.
        weight: Operations in the bodies of all members.
        joined: The program that this one has become a part of, if any.
    """

    def __init__(self, space: RowSpace) -> None:
        self.space = space
        self.groups: list[Group] = []
        self.members: list[View] = []
        self.produced: dict[Value, View] = {}
        self.read: dict[Value, None] = {}
        self.reshapes: dict[Value, Operation] = {}
        self.waiting: dict[int, Group] = {}
        self.weight = 0
        self.joined: RowProgram | None = None

    @property
    def current(self) -> RowProgram:
        """The program that this one has become a part of; it itself if none."""
        program = self
        while program.joined is not None:
            program = program.joined
        return program

    def fitted(self, view: View) -> View | None:
        """Return ``view`` over the loops of this program; None if it cannot be a part of it."""
        if self.weight >= ROW_PROGRAM_LIMIT or len(self.groups) >= ROW_PROGRAM_GROUPS:
            return None
        return self._fitted(view)

    def _fitted(self, view: View) -> View | None:
        found = self.space.whole(view) or self.space.lifted(view) or self.space.summed(view)
        if found is None:
            return None
        for number, value in enumerate(found.operands):
            source = self.source(value)
            member = self.produced.get(source)
            if member is None:
                continue
            if number >= len(found.inputs):
                return None  # to be updated in place
            access = found.accesses[number]
            if self.space.is_single(member):
                if not self.space.is_access(access, found.shapes[number]):
                    return None
            elif not is_identity(access, len(self.space.extents)):
                return None
        return self._through_reshapes(found)

    def source(self, value: Value) -> Value:
        """Return the result that ``value`` is a reshape of; else itself."""
        while value in self.reshapes:
            value = self.reshapes[value].operands[0]
        return value

    def _through_reshapes(self, view: View) -> View:
        if not any(value in self.reshapes for value in view.operands):
            return view
        operands, accesses, shapes = list(view.operands), list(view.accesses), list(view.shapes)
        for number, value in enumerate(operands):
            if value in self.reshapes:
                operands[number] = self.source(value)
                shapes[number] = tuple(operands[number].type.shape)
                access = self.space.access(shapes[number])
                assert access is not None, "a reshape of what there is one of for each row"
                accesses[number] = access
        return dataclasses.replace(
            view, operands=tuple(operands), accesses=tuple(accesses), shapes=tuple(shapes)
        )

    def add(self, group: Group) -> None:
        """Append ``group``, each of whose operations was `fitted`."""
        self.groups.append(group)
        for view in group.members:
            fitted = self._fitted(view)
            self.weight += len(view.body.operations) - 1
            assert fitted is not None, "it was asked whether it fits"
            self.members.append(fitted)
            self.read.update(dict.fromkeys(fitted.inputs))
            for result in view.op.results:
                self.produced[result] = fitted

    def sums_beside(self, group: Group) -> bool:
        """Return whether ``group`` reads no result, but sums over the same rows what members read."""
        if group.rows is not None or group.extents != self.space.extents:
            return False
        if group.reductions != self.space.outer:
            return False
        views = group.members
        if not any(value in self.read for view in views for value in view.inputs):
            return False
        return all(self.fitted(view) is not None for view in views)

    def may_join(self, other: RowProgram) -> bool:
        """Return whether ``other`` is over the same rows; neither reads a result of the other."""
        return self.space == other.space and self.weight + other.weight < ROW_PROGRAM_LIMIT

    def join(self, other: RowProgram) -> None:
        """Take over all of ``other``."""
        self.groups += other.groups
        self.members += other.members
        self.produced.update(other.produced)
        self.read.update(other.read)
        self.reshapes.update(other.reshapes)
        self.waiting.update(other.waiting)
        self.weight += other.weight
        other.joined = self


def begun_by(group: Group) -> RowProgram | None:
    """Return a program that ``group`` is the first part of; None if it reduces no rows."""
    space = space_of(group)
    if space is None:
        return None
    program = RowProgram(space)
    if any(program.fitted(view) is None for view in group.members):
        return None
    program.add(group)
    return program
