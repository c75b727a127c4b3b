"""Collects operations into groups while going through a block, and emits groups when they are complete."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.emission.constants import SHARED_BYTES
from mind_mlir.lowering.schedule.fusion.groups.group import Group, extractions, is_identity
from mind_mlir.lowering.schedule.fusion.groups.row_program import RowProgram, begun_by, space_of
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.memory import bytes_of
from mind_mlir.mlir.values import is_result_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.lowering.emission.decision import Decisions
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.lowering.schedule.nest_emission import NestEmission


class Grouping:
    """The groups of one block that are still open, and the row programs that are.

    A group is closed, and emitted in the place of its last member, when something that cannot join it uses
    one of its results. So no open group depends on another open group: two that an operation reads become one
    if they may, and each operation is looked at once.

    What reduces rows becomes part of a row program when it is closed, and so do groups over the same rows
    that read it, or that sum over these rows what it reads, too. A program is emitted, with the open groups
    that belong to it, when something else uses one of its results. So what depends on a program is part of
    it, or behind it.

    Reductions of one large tensor go together, and with what else reads it if it is an argument. So do
    columns that are joined, whose elements lie side by side in the result: they are written together. In a
    loop, what reads the same carried value goes together where it may, be its results as independent as they
    are: only then can the value be overwritten by its next one (see `overwritten`).
    """

    def __init__(self, nests: NestEmission, decisions: Decisions) -> None:
        self._nests, self._decisions = nests, decisions
        self._open: dict[Value, Group] = {}
        #: Of each result of a row program that is still to be emitted, and each reshape of one, the program.
        self._programs: dict[Value, RowProgram] = {}
        #: The results of operations that are still to be emitted.
        self._pending = ChainMap[Value, Any](self._open, self._programs)
        #: The open group that reads a value which a loop carries, reduces a large one, or has its columns.
        self._readers: dict[Value, Group] = {}

    def add(self, view: View, dims: tuple[int, ...]) -> None:
        """Add ``view``, which can run in vectors along ``dims``, to a group that it reads or to a new one."""
        self.close([op.operands[0] for op in extractions(view)])
        for value in view.operands:
            candidate = self._open.get(value)
            if candidate is not None and not candidate.accepts(view, dims):
                self._retire(candidate)
        program = self._program(view)
        group: Group | None = None
        for value in view.operands:
            candidate = self._open.get(value)
            if candidate is None or candidate is group:
                continue
            joined = self._joined(group, candidate, view, dims, program)
            if joined is None:
                self.close([value])  # and perhaps the program that it reads
                self.add(view.current(), dims)
                return
            group = joined
        self._append(group, view, dims, program)

    def _append(
        self, group: Group | None, view: View, dims: tuple[int, ...], program: RowProgram | None
    ) -> None:
        """Add ``view``, which reads ``program`` if that is one, to ``group`` or to another one."""
        view = view.current()
        carried = [value for value in view.operands[: len(view.inputs)] if _is_carried(value)]
        whole = [value for value in _whole(view) if view.reductions or isinstance(value, ir.BlockArgument)]
        columns = _columns(view)
        for value in dict.fromkeys((*carried, *whole, *columns)):
            reader = self._readers.get(value)
            if reader is not None and reader is not group:
                group = self._joined(group, reader, view, dims, program) or group
        if group is None:
            group = Group(view.extents, dims[0])
        if program is not None:
            group.rows = program
        group.add(view, self._decisions.place)
        kept = (*carried, *whole) if view.reductions else (*carried, *columns)
        self._readers.update(dict.fromkeys(kept, group))
        for result in view.op.results:
            self._open[result] = group

    def _program(self, view: View) -> RowProgram | None:
        """Return the row program that ``view`` reads and can be part of; others that it reads are emitted."""
        found: RowProgram | None = None
        for value in view.operands:
            program = self._programs.get(value)
            if program is None or program is found:
                continue
            if program.fitted(view) is None:
                self._finish(program)
            elif found is None:
                found = program
            elif found.may_join(program):
                self._join(found, program)
            else:
                self._finish(program)
        return found

    def _join(self, program: RowProgram, other: RowProgram) -> None:
        """Let ``other`` become part of ``program``."""
        program.join(other)
        self._programs.update(dict.fromkeys((*other.whole.produced, *other.reshapes), program))
        for group in self._open.values():
            if group.rows is other:
                group.rows = program

    def _joined(
        self,
        group: Group | None,
        candidate: Group,
        view: View,
        dims: tuple[int, ...],
        program: RowProgram | None,
    ) -> Group | None:
        """Return the open group of ``group``, if there is one yet, and ``candidate``, or None.

        ``view``, which can run in vectors along ``dims`` and may read ``program``, brings them together.
        """
        if not candidate.accepts(view, dims) or not _agree(group, candidate, view, program):
            return None
        if group is None:
            return candidate
        if not group.takes(candidate):
            return None
        group.rows = group.rows or candidate.rows
        for member, place in zip(candidate.members, candidate.places, strict=True):
            group.add(member, place)
            self._open.update(dict.fromkeys(member.op.results, group))
            for value in (*member.operands[: len(member.inputs)], *_columns(member)):
                if self._readers.get(value) is candidate:
                    self._readers[value] = group
        return group

    def would_take(self, view: View, dims: tuple[int, ...]) -> bool:
        """Return whether an open group computes what ``view`` reads along all loops, and takes it."""
        if not dims:
            return False
        found = [self._open.get(value) for value in view.inputs]
        groups = [group for group in found if group is not None]
        return bool(groups) and all(group.accepts(view, dims) for group in groups)

    def add_alone(self, view: View, dims: tuple[int, ...], place: int | None = None) -> None:
        """Emit ``view``, which reads nothing that an open group computes, as a group of its own.

        Its ``place`` (see `Decisions`) is where the scheduler has come to, unless given.
        """
        group = Group(view.extents, dims[0])
        group.add(view, self._decisions.place if place is None else place)
        self._nests.emit_group(group, self._pending)

    def takes_reshape(self, op: Operation) -> bool:
        """Return whether ``op`` reshapes what a row program has one of for each row, and joined it."""
        if op.name not in RESHAPES:
            return False
        value = op.operands[0]
        group = self._open.get(value)
        if group is not None:
            self._retire(group)
        program = self._programs.get(value)
        if program is None:
            return False
        shape = list(op.results[0].type.shape)
        single = program.space.is_single(program.whole.produced[program.source(value)])
        if not single or program.space.access(shape) is None:
            return False
        program.reshapes[op.results[0]] = op
        self._programs[op.results[0]] = program
        return True

    def close(self, values: Iterable[Value]) -> None:
        """Emit what is open and computes ``values``; these are replaced, do not look at them again."""
        for value in values:
            group = self._open.get(value)
            if group is not None:
                self._retire(group)
            program = self._programs.get(value)
            if program is not None:
                self._finish(program)

    def close_all(self) -> None:
        """Emit all that is open."""
        self.close(list(self._open))
        self.close(list(self._programs))

    def _retire(self, group: Group) -> None:
        """Close ``group``: it becomes part of a row program, or is emitted."""
        for value in group.produced:
            del self._open[value]
        for view in group.members if self._readers else ():  # which few blocks have
            for value in (*view.operands[: len(view.inputs)], *_columns(view)):
                if self._readers.get(value) is group:
                    del self._readers[value]
        program = group.rows or self._beside(group) or begun_by(group)
        if program is None:
            self._nests.emit_group(group, self._pending)
            return
        program.add(group)
        self._programs.update(dict.fromkeys(group.produced, program))

    def _beside(self, group: Group) -> RowProgram | None:
        """Return a row program that reads what ``group`` sums over the same rows, if there is one."""
        if not group.sums_rows:
            return None
        read = {value for view in group.members for value in view.inputs}
        for other in dict.fromkeys(self._open.values()):
            alike = other.rows is None and other.extents == group.extents and space_of(other) is not None
            if alike and any(value in read for view in other.members for value in view.inputs):
                self._retire(other)
        programs = dict.fromkeys(self._programs.values())
        return next((program for program in programs if program.sums_beside(group)), None)

    def _finish(self, program: RowProgram) -> None:
        """Emit ``program`` and the open groups that read it, or sum over its rows what it reads."""
        for belongs in (lambda group: group.rows is program, program.sums_beside):
            for group in dict.fromkeys(self._open.values()):
                if belongs(group):
                    group.rows = program
                    self._retire(group)
        for value in (*program.whole.produced, *program.reshapes):
            del self._programs[value]
        self._nests.emit_rows(program, self._pending)


def _agree(group: Group | None, candidate: Group, view: View, program: RowProgram | None) -> bool:
    """Return whether all of these may be parts of one row program, if any reads one."""
    groups = [candidate] if group is None else [group, candidate]
    programs = [each.rows for each in groups if each.rows is not None]
    if program is not None:
        programs.append(program)
    if not programs:
        return True
    if any(each is not programs[0] for each in programs) or programs[0].fitted(view) is None:
        return False
    free = [each for each in groups if each.rows is None]
    return all(programs[0].fitted(member) is not None for each in free for member in each.members)


def _whole(view: View) -> Iterable[Value]:
    """Yield the large tensors that ``view`` reads element by element."""
    for number, value in enumerate(view.inputs):
        if is_identity(view.accesses[number], len(view.extents)) and bytes_of(value) >= SHARED_BYTES:
            yield value


def _columns(view: View) -> tuple[Value, ...]:
    """Return the tensor that the result of ``view`` becomes a column of, if it does: before any is there."""
    results = view.op.results
    uses = list(results[0].uses) if len(results) == 1 else []
    if len(uses) != 1 or uses[0].operand_number != 0:
        return ()
    op = uses[0].owner.operation
    if op.name != "tensor.insert_slice" or op.operands[0].type.rank + 1 != op.results[0].type.rank:
        return ()
    if ir.DenseI64ArrayAttr(op.attributes["static_sizes"])[-1] != 1:
        return ()
    into: Value = op.operands[1]
    while is_result_of(into, "tensor.insert_slice"):
        into = into.owner.operation.operands[1]
    return (into,)


def _is_carried(value: Value) -> bool:
    """Return whether a loop carries ``value``: whether it is an argument of its body or condition."""
    return isinstance(value, ir.BlockArgument) and value.owner.owner.name in ("scf.for", "scf.while")
