"""Emits what a row program does with rows: one pass after another, and the numbers that they hand on.

Where rows are computed in blocks, numbers of a row and what is kept along it are in memory of a few rows, a
slot for each: with passes that are a block of rows apart, those of two blocks. Of long rows they are known.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.group import Group, is_identity
from mind_mlir.lowering.schedule.fusion.groups.row_program import stored_form
from mind_mlir.lowering.schedule.fusion.nests.body import (
    NestBody,
    Output,
    Place,
    Prefetch,
    Range,
    combiner_of,
    reductions_of,
)
from mind_mlir.lowering.schedule.fusion.nests.elements import Elements, Known
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import columns, row_totals
from mind_mlir.lowering.schedule.fusion.row_programs.row_memory import Block
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, Linear, View
from mind_mlir.mlir.bindings import Value, ir

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass
    from mind_mlir.lowering.schedule.fusion.row_programs.row_memory import RowSums
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowPlan


class RowPasses:
    """Emits passes over rows, or over segments of them."""

    def __init__(self, emitter: Emitter, plan: RowPlan, sums: RowSums) -> None:
        group, passes, schedule = plan.group, plan.passes, plan.schedule
        self._e = emitter
        self._plan = plan
        self._g = group
        self._p = passes
        self._s = schedule
        self._outputs = plan.outputs
        self._sums = sums
        self._rows = plan.rows
        self._outer = frozenset(range(group.vector))
        # The slots of a row for its numbers and for what is kept of it, as if they were loops.
        self._slot, self._kept_slot = len(group.extents), len(group.extents) + 1
        self._slots = schedule.block * (2 if schedule.pipelined else 1)
        early = schedule.pipelined and any(value in passes.passes[0].stored for value in passes.kept)
        self._kept_slots = schedule.block * (2 if early else 1)
        self._kept_access: Access = (Linear(((self._kept_slot, 1),)), Linear(((group.vector, 1),)))
        self._kept_shape = (self._kept_slots, group.extents[group.vector])

    def begin(self, carried: Sequence[Value]) -> Block:
        """Emit memory for a few rows; ``carried`` are the tensors of the results."""
        return Block(dict(zip(self._outputs, carried, strict=True)), self._buffers())

    def run(self, number: int, place: Place, rows: tuple[Index, Index], slot: Index, block: Block) -> None:
        """Run pass ``number`` over ``rows``, from the first one to the one behind the last.

        Args:
            number: Which pass.
            place: The loops around the one over rows.
            rows: A block of rows, or none.
            slot: The first slot of the block.
            block: What is written; changed.
        """
        part = self._p.passes[number]
        numbers = self._numbers(part)
        slots = [(block.home(value), value) for value in part.stored]
        slots += [(block.buffers, value) for value in numbers if value in block.buffers]
        slots += [(block.outputs, value) for value in numbers if value in block.outputs]
        slots += [(block.outputs, view.op.results[0]) for view in part.summed]

        def row(i: Index, inside: list[Value]) -> list[Value]:
            for (home, value), tensor in zip(slots, inside, strict=True):
                home[value] = tensor
            own = {
                self._rows: i,
                self._slot: self._e.modulo(i, self._slots),
                self._kept_slot: self._e.modulo(i, self._kept_slots),
            }
            env = place.env | own
            self._row(number, place.at(env, place.known), block, self._prefetches(number, env, block))
            return [home[value] for home, value in slots]

        tensors = self._e.apart((*rows, 1), [home[value] for home, value in slots], row)
        for (home, value), tensor in zip(slots, tensors, strict=True):
            home[value] = tensor
        if self._s.vectors and part.row_scalars:
            self._emit_scalars_of_rows(part, place.known, slot, block)

    def slot_of(self, row: Index) -> Index:
        """Return the slot of ``row``, the first one of a block."""
        return self._e.modulo(row, self._slots)

    def _prefetches(self, number: int, env: Env, block: Block) -> list[Prefetch]:
        """Return what pass ``number`` prefetches: rows to be read in a while, and those of the last pass."""
        found: list[Prefetch] = []
        last = len(self._p.passes) - 1
        if self._s.prefetch_pass >= 0 and number == last - 1 and not self._s.passes[last].streaming:
            found += [
                Prefetch(block.outputs[value], output.access, env, write=True)
                for value in self._p.passes[last].stored
                if (output := self._outputs.get(value)) is not None
            ]
        if number != self._s.prefetch_pass or self._rows < 0:
            return found
        # While the last pass is at a block, the first one has been over the next already.
        distance = self._s.block * (2 if self._s.pipelined and number == last else 1)
        end = self._g.extents[self._rows] - 1
        next_ = env | {self._rows: self._e.minimum(self._e.add(env[self._rows], distance), end)}
        whole = tuple(self._g.extents)
        for value, access in self._read(self._p.passes[0]).items():
            if tuple(value.type.shape) == whole and is_identity(access, len(whole)):
                found.append(Prefetch(value, access, next_, write=False))
        return found

    def _read(self, part: Pass) -> dict[Value, Access]:
        """Return the tensors that ``part`` reads, each with how it is indexed."""
        return {
            value: access
            for view in part.members
            for value, access in zip(view.inputs, view.accesses, strict=False)
            if value not in self._g.produced
            and isinstance(value.type, ir.RankedTensorType)
            and filler(value) is None
        }

    def _buffers(self) -> dict[Value, Value]:
        """Return memory of a block for what is kept along the rows, and for what one pass gives to others."""
        numbers = list(self._p.live_ins)
        if self._s.vectors:
            numbers += [value for part in self._p.passes if part.row_scalars for value in self._numbers(part)]
        shapes: dict[Value, tuple[int, ...]] = dict.fromkeys(numbers, (self._slots,))
        shapes.update(dict.fromkeys(self._p.kept, self._kept_shape))
        return {
            value: self._e.empty(shape, ir.RankedTensorType(value.type).element_type)
            for value, shape in shapes.items()
        }

    def _row(self, number: int, place: Place, block: Block, prefetches: list[Prefetch]) -> None:
        """Run pass ``number`` over one row, whose numbers are in memory."""
        part = self._p.passes[number]
        slot = place.env[self._slot]
        numbers = {value: self._e.extract(block.buffers[value], [slot]) for value in part.live_ins}
        here = place.at(place.env, Known({**place.known.scalars, **numbers}))
        totals = self.along(number, here, block, prefetches=prefetches)
        self.finish(number, here, block, lambda view, place: totals[view.op.results[place]])

    def body(
        self,
        number: int,
        place: Place,
        block: Block,
        numbers: Collection[Value] = (),
        others: Sequence[Output] = (),
        prefetches: Sequence[Prefetch] = (),
    ) -> tuple[NestBody, Known]:
        """Return what pass ``number`` does along the row at ``place``, and what is known there.

        Args:
            number: Which pass.
            place: The loops over the rows, and the numbers of the row so far.
            block: What is written.
            numbers: Numbers of the row that are going to be known.
            others: What else it reduces.
            prefetches: What is prefetched meanwhile.
        """
        part = self._p.passes[number]
        members = {id(view): self._form(view, part) for view in part.members}
        reductions = (self._g.vector,) if part.reduced else ()
        group = Group(self._g.extents, self._g.vector, list(members.values()), reductions)
        outputs = [self._stream(value, members, block) for value in part.stored]
        outputs += [
            dataclasses.replace(self._outputs[view.op.results[0]], member=members[id(view)], adds=True)
            for view in part.summed
        ]
        outputs += [*reductions_of(members[id(view)] for view in part.reduced), *others]
        live_ins = [value for value in part.live_ins if value in place.known.scalars]
        dims = dict.fromkeys([*live_ins, *numbers], self._outer)
        schedule = self._s.passes[number]
        body = NestBody(self._e, group, outputs, schedule, self._plan.target, dims, prefetches)
        known = body.elements.advance(place.env, Known(dict(place.known.scalars)))
        body.elements.spread(known)
        return body, known

    def along(
        self,
        number: int,
        place: Place,
        block: Block,
        range_of: Callable[[int], Range] | None = None,
        others: Sequence[Output] = (),
        prefetches: Sequence[Prefetch] = (),
    ) -> dict[Value, Value]:
        """Run a pass along a row, or over a segment of it; return what it reduces, by the results.

        Args:
            number: Which pass.
            place: As for `body`.
            block: What is written; changed.
            range_of: Given the width of a step, the segment; the row if there is none.
            others: What else it reduces: instead of results, values of bodies.
            prefetches: What is prefetched meanwhile.
        """
        body, known = self.body(number, place, block, others=others, prefetches=prefetches)
        slot = self._sums.slot(place.env) if self._p.passes[number].summed else None
        ranges = {} if range_of is None else {self._g.vector: range_of(body.schedule.width)}
        inside = Place(place.env, known, ranges, slot, block.now(self._outputs))
        written = [output.result for output in body.streams]
        tensors, totals = [block.home(value)[value] for value in written], list[Value]()
        if body.reducers:
            tensors, totals = row_totals(body, inside, tensors)
        else:
            tensors = columns(body, inside, tensors)
        for value, tensor in zip(written, tensors, strict=True):
            block.home(value)[value] = tensor
        keys = [output.result if output.instead is None else output.instead for output in body.reducers]
        return dict(zip(keys, totals, strict=True))

    def finish(self, number: int, place: Place, block: Block, total: Callable[[View, int], Value]) -> Known:
        """Compute and store the numbers that a row ends pass ``number`` with, and return all that are known.

        Args:
            number: Which pass.
            place: The loops over the rows, and the numbers of the row before.
            block: What is written; changed.
            total: Gives what the pass has found for a result of a reduction.
        """
        part, env = self._p.passes[number], place.env
        scalars = dict(place.known.scalars)
        for view in part.reduced:
            for place_, result in enumerate(view.op.results):
                output = Output(view, place_, view.inits[place_])
                found = total(view, place_)
                scalars[result] = combiner_of(output).combine(self._start(output, env), found)
        group = Group(self._g.extents, self._g.vector, [] if self._s.vectors else part.row_scalars)
        elements = Elements(self._e, group, 1, (), dict.fromkeys(scalars, self._outer))
        known = elements.advance(env, Known(scalars))
        for value in self._numbers(part):
            scalars[value] = elements.scalar(value, known)
            if value in block.buffers:
                slot = [env[self._slot]]
                block.buffers[value] = self._e.insert(scalars[value], block.buffers[value], slot)
            if value in block.outputs:
                indices = [index.emit(self._e, env) for index in self._outputs[value].access]
                block.outputs[value] = self._e.insert(scalars[value], block.outputs[value], indices)
        return Known(scalars)

    def _numbers(self, part: Pass) -> list[Value]:
        """Return what each row of ``part`` ends with."""
        row_scalars = [] if self._s.vectors else part.row_scalars
        return [result for view in (*part.reduced, *row_scalars) for result in view.op.results]

    def _start(self, output: Output, env: Env) -> Value:
        """Return what the reduction of a row starts from."""
        start = self._plan.start(output.member, output.number)
        if start is not None:
            return start
        return self._e.extract(output.destination, [index.emit(self._e, env) for index in output.access])

    def _form(self, view: View, part: Pass) -> View:
        """Return ``view`` as it is computed in ``part``, with what was kept for it in its own memory."""
        for value in part.loaded:
            if value in self._p.kept:
                view = stored_form(view, value, self._kept_access, self._kept_shape)
        return view

    def _stream(self, value: Value, members: dict[int, View], block: Block) -> Output:
        """Return how ``value``, which lies along the row, is stored: as a result or in the block's memory."""
        if value in self._outputs:
            output = self._outputs[value]
            return dataclasses.replace(output, member=members[id(output.member)])
        view, number = members[id(self._g.produced[value])], value.result_number
        place = len(view.inputs) + number
        form = view.reading({place: (view.operands[place], self._kept_access, self._kept_shape)})
        return Output(form, number, block.buffers[value])

    def _emit_scalars_of_rows(self, part: Pass, known: Known, slot: Index, block: Block) -> None:
        """Compute the row scalars of ``part`` for the rows of the block that begins at ``slot``."""
        access: Access = (Linear(((self._slot, 1),)),)
        shape = (self._slots,)
        members: list[View] = []
        for view in part.row_scalars:
            form = dataclasses.replace(
                view, accesses=(*view.accesses[: len(view.inputs)], *(access for _ in range(view.results)))
            )
            for value in block.buffers:
                form = stored_form(form, value, access, shape)
            members.append(form)
        group = Group((*self._g.extents, *shape), self._slot, members)
        streams = [
            Output(view, number, block.buffers[result])
            for view in members
            for number, result in enumerate(view.op.results)
            if result in block.buffers
        ]
        lanes = min(self._s.rows.lanes, self._s.block)
        schedule = dataclasses.replace(self._s.rows, lanes=lanes, vectors=1, cuts=(), parallel=False)
        body = NestBody(self._e, group, streams, schedule, self._plan.target)
        ranges = {self._slot: Range(slot, self._e.add(slot, self._s.block))}
        inside = Place({}, body.elements.advance({}, known), ranges, now=dict(block.buffers))
        tensors = columns(body, inside, [output.destination for output in streams])
        block.buffers.update(zip([output.result for output in streams], tensors, strict=True))
