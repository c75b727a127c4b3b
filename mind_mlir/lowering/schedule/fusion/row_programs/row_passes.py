"""Emits what a row program does with rows: one pass after another, and the numbers that they hand on.

Where rows are computed in blocks, numbers of a row and what is kept along it are in memory of a few rows, a
slot for each: with passes that are a block of rows apart, those of two blocks. Of long rows they are known.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.fusion.groups.group import Group, is_identity
from mind_mlir.lowering.schedule.fusion.nests.body import NestBody, Prefetch
from mind_mlir.lowering.schedule.fusion.nests.elements import Elements, Known
from mind_mlir.lowering.schedule.fusion.nests.partial_results import SummedRows
from mind_mlir.lowering.schedule.fusion.nests.program import NestProgram, Output, Place, Range, reductions_of
from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import columns, row_totals
from mind_mlir.lowering.schedule.fusion.row_programs.passes import passes_of
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, Linear, View
from mind_mlir.mlir.bindings import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.nests.program import Totals
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowProgramSchedule


#: Tensors that are written while rows are computed, as they are by now: results, and memory of a few rows for
#: each value that is kept, by themselves; and numbers, by the name of what they are and the value that they
#: belong to, if any.
Written: TypeAlias = "dict[Value | tuple[str, Value | None], Value]"

#: The name of the numbers of rows that a pass gives to another.
_NUMBER = "number"


class RowPasses:
    """Emits passes over rows, or over segments of them."""

    def __init__(self, emitter: Emitter, nest: NestProgram, schedule: RowProgramSchedule) -> None:
        self._e = emitter
        self._nest = nest
        self.group = group = nest.group
        self.schedule = schedule
        self.outputs = {output.result: output for output in nest.outputs}
        self.passes = passes = passes_of(group, self.outputs, long=bool(schedule.segments))
        self._each = passes.passes
        self.sums = SummedRows(emitter, schedule.lanes, group.extents[: group.vector], schedule.summed)
        # The slots of a row for its numbers and for what is kept of it, as if they were loops.
        self._slot, self._kept_slot = len(group.extents), len(group.extents) + 1
        self._slots = schedule.block * (2 if schedule.pipelined else 1)
        early = schedule.pipelined and any(value in passes.passes[0].stored for value in passes.kept)
        self._kept_slots = schedule.block * (2 if early else 1)
        self._kept_access: Access = (Linear(((self._kept_slot, 1),)), Linear(((group.vector, 1),)))
        self._kept_shape = (self._kept_slots, group.extents[group.vector])

    def begin(self, carried: Sequence[Value]) -> Written:
        """Emit memory of a block for what is kept along the rows, and for what one pass gives to others.

        The tensors of the results are ``carried``.
        """
        numbers = list(self.passes.live_ins)
        if self.schedule.apart:
            numbers += [value for part in self._each if part.row_scalars for value in self._numbers(part)]
        block: Written = dict(zip(self.outputs, carried, strict=True))
        for value in dict.fromkeys(numbers):
            block[_NUMBER, value] = self._e.empty((self._slots,), value.type.element_type)
        for value in self.passes.kept:
            block[value] = self._e.empty(self._kept_shape, value.type.element_type)
        return block

    def run(
        self, number: int, place: Place, rows: tuple[Index, Index], slot: Index, block: Written
    ) -> Written:
        """Run a pass over a block of rows, from the first one to the one behind the last.

        The slots of the block begin with ``slot``; ``block`` is what has been written before.
        """

        def row(i: Index, inside: list[Value]) -> list[Value]:
            own = dict(zip(block, inside, strict=True))
            slots = {
                self.group.vector - 1: i,
                self._slot: self._e.modulo(i, self._slots),
                self._kept_slot: self._e.modulo(i, self._kept_slots),
            }
            self._row(number, place.at(place.env | slots), own)
            return list(own.values())

        block = dict(zip(block, self._e.apart((*rows, 1), list(block.values()), row), strict=True))
        if self.schedule.apart and self._each[number].row_scalars:
            self._emit_scalars_of_rows(self._each[number], place.known, slot, block)
        return block

    def slot_of(self, row: Index) -> Index:
        """Return the slot of ``row``, the first one of a block."""
        return self._e.modulo(row, self._slots)

    def _prefetches(self, number: int, env: Env, block: Written) -> list[Prefetch]:
        """Return what pass ``number`` prefetches: rows to be read in a while, and those of the last pass."""
        found: list[Prefetch] = []
        rows, last = self.group.vector - 1, len(self._each) - 1
        is_before_last = self.schedule.prefetch_pass >= 0 and number == last - 1
        if is_before_last and not self.schedule.passes[last].streaming:
            found += [
                Prefetch(block[value], output.access, env, write=True)
                for value in self._each[last].stored
                if (output := self.outputs.get(value)) is not None
            ]
        if number != self.schedule.prefetch_pass or rows < 0:
            return found
        # While the last pass is at a block, the first one has been over the next already.
        distance = self.schedule.block * (2 if self.schedule.pipelined and number == last else 1)
        next_row = self._e.minimum(self._e.add(env[rows], distance), self.group.extents[rows] - 1)
        whole = tuple(self.group.extents)
        read = {
            value: access
            for view in self._each[0].members
            for value, access, shape in zip(view.inputs, view.accesses, view.shapes, strict=False)
            if value not in self.group.produced and filler(value) is None
            if shape == whole and is_identity(access, len(whole))
        }
        return found + [Prefetch(*each, env | {rows: next_row}) for each in read.items()]

    def _row(self, number: int, place: Place, block: Written) -> None:
        """Run pass ``number`` over one row, whose numbers are in memory."""
        prefetches = self._prefetches(number, place.env, block)
        slot = [place.env[self._slot]]
        live_ins = self._each[number].live_ins
        numbers = {value: self._e.extract(block[_NUMBER, value], slot) for value in live_ins}
        here = place.at(place.env, Known({**place.known.scalars, **numbers}))
        totals = self.along(number, here, block, prefetches=prefetches)
        self.finish(number, here, block, lambda each: [totals[output.result] for output in each.outputs])

    def body(
        self,
        number: int,
        place: Place,
        block: Written,
        numbers: Collection[Value] = (),
        others: Sequence[Output] = (),
        prefetches: Sequence[Prefetch] = (),
    ) -> tuple[NestBody, Place]:
        """Return what a pass does along the row at ``place``, and that place with what is known there.

        Besides what is known at ``place``, ``numbers`` of the row are going to be known, and ``others`` are
        reduced.
        """
        part = self._each[number]
        members = {id(view): self._form(view, part) for view in part.members}
        reductions = (self.group.vector,) if part.reduced else ()
        group = dataclasses.replace(self.group, members=list(members.values()), reductions=reductions)
        outputs = [self._stream(value, members, block) for value in part.stored]
        outputs += [
            dataclasses.replace(self.outputs[view.op.results[0]], member=members[id(view)], adds=True)
            for view in part.summed
        ]
        reduced = reductions_of(members[id(view)] for view in part.reduced)
        outputs += [*(output for each in reduced for output in each.outputs), *others]
        live_ins = [value for value in part.live_ins if value in place.known.scalars]
        nest = NestProgram(group, outputs, self.schedule.passes[number], self._nest.target)
        body = NestBody(self._e, nest, self._dims([*live_ins, *numbers]), prefetches)
        here = body.inside(place.at(place.env, Known(dict(place.known.scalars))), place.env)
        body.elements.spread(here.known)
        return body, here

    def _dims(self, numbers: Collection[Value]) -> dict[Value, frozenset[int]]:
        """Return the loops that ``numbers`` of a row depend on."""
        return dict.fromkeys(numbers, frozenset(range(self.group.vector)))

    def along(
        self,
        number: int,
        place: Place,
        block: Written,
        range_: Range | None = None,
        others: Sequence[Output] = (),
        prefetches: Sequence[Prefetch] = (),
    ) -> dict[Value, Value]:
        """Run a pass along a row, or over a segment of it, and change ``block``; return what it reduces.

        That is by the results, or by the values of bodies that ``others`` reduce instead.
        """
        body, here = self.body(number, place, block, others=others, prefetches=prefetches)
        slot = self.sums.slot(place.env) if self._each[number].summed else None
        ranges = {} if range_ is None else {self.group.vector: range_}
        #: What is to be read instead of values, and of tensors that have been written over.
        now = {**{output.destination: block[value] for value, output in self.outputs.items()}, **block}
        here = dataclasses.replace(here, ranges=ranges, slot=slot, now=now)
        written = [output.result for output in body.streams]
        tensors, totals = [block[value] for value in written], list[Value]()
        if body.reducers:
            tensors, found = row_totals(body, here, tensors)
            totals = list(found)
        else:
            tensors = columns(body, here, tensors)
        block.update(zip(written, tensors, strict=True))
        keys = [output.result if output.instead is None else output.instead for output in body.reducers]
        return dict(zip(keys, totals, strict=True))

    def finish(self, number: int, place: Place, block: Written, total: Totals) -> Known:
        """Compute and store in ``block`` the numbers that a row ends a pass with; return all that are known.

        They are made of the ``total`` that the pass has found for each reduction.
        """
        part, env = self._each[number], place.env
        scalars = dict(place.known.scalars)
        for each in reductions_of(part.reduced):
            indices = each.outputs[0].indices(self._e, env)
            begun = each.begun(self._e, each.destinations, indices, total(each), scalars)
            scalars.update(zip(each.results, begun, strict=True))
        group = Group(self.group.extents, self.group.vector, [] if self.schedule.apart else part.row_scalars)
        elements = Elements(self._e, group, 1, (), self._dims(scalars), through=False)
        known = elements.advance(env, Known(scalars))
        for value in self._numbers(part):
            scalars[value] = elements.scalar(value, known)
            if (_NUMBER, value) in block:
                slot = [env[self._slot]]
                block[_NUMBER, value] = self._e.insert(scalars[value], block[_NUMBER, value], slot)
            if value in self.outputs:
                indices = self.outputs[value].indices(self._e, env)
                block[value] = self._e.insert(scalars[value], block[value], indices)
        return Known(scalars)

    def _numbers(self, part: Pass) -> list[Value]:
        """Return what each row of ``part`` ends with."""
        row_scalars = [] if self.schedule.apart else part.row_scalars
        return [result for view in (*part.reduced, *row_scalars) for result in view.op.results]

    def _form(self, view: View, part: Pass) -> View:
        """Return ``view`` as it is computed in ``part``, with what was kept for it in its own memory."""
        kept = [value for value in part.loaded if value in self.passes.kept]
        numbers = [number for number, value in enumerate(view.inputs) if value in kept]
        return _at(view, numbers, self._kept_access, self._kept_shape)

    def _stream(self, value: Value, members: dict[int, View], block: Written) -> Output:
        """Return how ``value``, which lies along the row, is stored: as a result or in the block's memory."""
        if value in self.outputs:
            output = self.outputs[value]
            return dataclasses.replace(output, member=members[id(output.member)])
        view, number = members[id(self.group.produced[value])], value.result_number
        form = _at(view, [len(view.inputs) + number], self._kept_access, self._kept_shape)
        return Output(form, number, block[value])

    def _emit_scalars_of_rows(self, part: Pass, known: Known, slot: Index, block: Written) -> None:
        """Compute the row scalars of ``part`` for the rows of the block that begins at ``slot``."""
        access: Access = (Linear(((self._slot, 1),)),)
        shape = (self._slots,)
        now = {key[1]: tensor for key, tensor in block.items() if isinstance(key, tuple)}
        members: list[View] = []
        for view in part.row_scalars:
            inputs = len(view.inputs)
            numbers = [n for n, value in enumerate(view.operands) if n >= inputs or value in now]
            members.append(_at(view, numbers, access, shape))
        group = Group((*self.group.extents, *shape), self._slot, members)
        streams = [
            Output(view, number, now[result])
            for view in members
            for number, result in enumerate(view.op.results)
            if result in now
        ]
        schedule = FusedSchedule(min(self.schedule.lanes, self.schedule.block))
        body = NestBody(self._e, NestProgram(group, streams, schedule, self._nest.target))
        ranges = {self._slot: Range(slot, self._e.add(slot, self.schedule.block))}
        here = body.inside(Place({}, known, ranges, now=now), {})
        tensors = columns(body, here, [output.destination for output in streams])
        block.update(zip([(_NUMBER, output.result) for output in streams], tensors, strict=True))


def _at(view: View, numbers: Sequence[int], access: Access, shape: tuple[int, ...]) -> View:
    """Return ``view`` with its operands ``numbers`` in tensors of ``shape``, by ``access``."""
    return view.reading({number: (view.operands[number], access, shape) for number in numbers})
