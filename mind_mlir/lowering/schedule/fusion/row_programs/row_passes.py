"""Emits what a row program does with rows: one pass after another, and the numbers that they hand on.

Numbers of a row and what is kept along it are in memory of a few rows, a slot for each: with passes that are
a block of rows apart, those of two blocks.

A pass over a row adds to a partial sum in memory, which has as many elements as the row and stays in the
cache. Some rows that follow one another have one in common: no more than an accumulator may take, and never
rows of different chunks. So what is added up in which order depends on the schedule alone.
"""

from __future__ import annotations

import dataclasses
import math
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
)
from mind_mlir.lowering.schedule.fusion.nests.elements import Elements, Known
from mind_mlir.lowering.schedule.fusion.nests.nest import Joiner, partial_results
from mind_mlir.lowering.schedule.fusion.nests.vector_loops import Columns, Rows
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, Linear, View
from mind_mlir.mlir.bindings import Value, ir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass
    from mind_mlir.lowering.schedule.fusion.row_programs.row_schedule import RowPlan, RowSchedule


class RowSums:
    """Emits them."""

    def __init__(self, emitter: Emitter, group: Group, schedule: RowSchedule) -> None:
        self._e = emitter
        self._outer = group.extents[: group.vector]
        self._rows = schedule.summed
        self._lanes = schedule.rows.lanes

    def partial(self, output: Output) -> Value:
        """Emit memory for the partial sums of ``output``, which is indexed by the last loop alone."""
        slots = math.prod(self._outer[:-1]) * -(-self._outer[-1] // self._rows)
        return partial_results(self._e, output, slots, last=False)

    def slot(self, env: Env) -> Index:
        """Return which partial sum the row at ``env`` is added to."""
        return self._slot(env, env[len(self._outer) - 1])

    def _slot(self, env: Env, row: Index) -> Index:
        place: Index = 0
        for dim, extent in enumerate(self._outer[:-1]):
            place = self._e.add(self._e.mul(place, extent), env[dim])
        place = self._e.mul(place, -(-self._outer[-1] // self._rows))
        return self._e.add(place, self._e.floordiv(row, self._rows))

    def clear(self, output: Output, partial: Value, env: Env, rows: tuple[Index, Index]) -> Value:
        """Write what changes nothing to the partial sums of ``rows``; return them.

        Args:
            output: What is summed.
            partial: The partial sums.
            env: The loops around the one over rows.
            rows: The first row, which is the first one of a partial sum, and the one behind the last.
        """
        element = ir.RankedTensorType(partial.type).element_type
        count = partial.type.shape[-1]
        type_ = self._e.vector_type(self._lanes, element)
        neutral = self._e.splat(type_, combiner_of(output).neutral_attribute(element))

        def slot(number: Index, inside: list[Value]) -> list[Value]:
            return self._e.vectors(
                count,
                self._lanes,
                inside,
                lambda at, mask, now: [self._e.write(neutral, now[0], [number, at], mask)],
            )

        first = self._slot(env, rows[0])
        last = self._slot(env, self._e.sub(rows[1], 1))
        (found,) = self._e.loop((first, self._e.add(last, 1), 1), [partial], slot)
        return found

    def join(self, output: Output, partial: Value) -> Value:
        """Return the sums that the ``partial`` ones of ``output`` add up to."""
        joiner = Joiner(self._e, self._lanes)
        return joiner.join(output, combiner_of(output), partial, last=False)


@dataclasses.dataclass
class Block:
    """Tensors that are written while rows are computed, as they are by now.

    Attributes:
        outputs: The results.
        buffers: Memory of a few rows: for each value that is kept, and each that a pass gives to another.
    """

    outputs: dict[Value, Value]
    buffers: dict[Value, Value]

    @property
    def tensors(self) -> list[Value]:
        """All of them, in order."""
        return [*self.outputs.values(), *self.buffers.values()]

    def at(self, tensors: Sequence[Value]) -> Block:
        """Return the same with other ``tensors``, in order."""
        count = len(self.outputs)
        pairs = zip(self.outputs, tensors[:count], strict=True)
        return Block(dict(pairs), dict(zip(self.buffers, tensors[count:], strict=True)))

    def home(self, value: Value) -> dict[Value, Value]:
        """Return which of the two ``value``, which lies along the rows, is in."""
        return self.outputs if value in self.outputs else self.buffers

    def now(self, outputs: dict[Value, Output]) -> dict[Value, Value]:
        """Return what is to be read instead of values and of tensors that have been written over."""
        found = {outputs[value].destination: tensor for value, tensor in self.outputs.items()}
        return {**found, **self.outputs, **self.buffers}


class RowPasses:
    """Emits passes over rows."""

    def __init__(self, emitter: Emitter, plan: RowPlan[RowSchedule], sums: RowSums) -> None:
        group, passes, schedule = plan.group, plan.passes, plan.schedule
        self._e = emitter
        self._g = group
        self._p = passes
        self._s = schedule
        self._target = plan.target
        self._starts = plan.starts
        self._outputs = {output.result: output for output in plan.outputs}
        self._sums = sums
        self._rows = group.vector - 1  # the loop over rows that blocks are made of; -1: there is one row
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
        """Run pass ``number`` over one row."""
        part, schedule, env = self._p.passes[number], self._s.passes[number], place.env
        live_ins = {
            value: self._e.extract(block.buffers[value], [env[self._slot]]) for value in part.live_ins
        }
        members = {id(view): self._form(view, part) for view in part.members}
        reductions = (self._g.vector,) if part.reduced else ()
        group = Group(self._g.extents, self._g.vector, list(members.values()), reductions)
        streams = [self._stream(value, members, block) for value in part.stored]
        reduced = [
            Output(members[id(view)], number, init, self._starts.get(view.op.results[number]))
            for view in part.reduced
            for number, init in enumerate(view.inits)
        ]
        summed = [
            dataclasses.replace(self._outputs[view.op.results[0]], member=members[id(view)], adds=True)
            for view in part.summed
        ]
        outputs, dims = [*streams, *summed, *reduced], dict.fromkeys(live_ins, self._outer)
        body = NestBody(self._e, group, outputs, schedule, self._target, dims, prefetches)
        known = body.elements.advance(env, Known({**place.known.scalars, **live_ins}))
        body.elements.spread(known)
        sums = self._sums.slot(env) if summed else None
        inside = Place(env, known, {}, sums, block.now(self._outputs))
        written = [*part.stored, *(output.result for output in summed)]
        tensors = [block.home(value)[value] for value in written]
        if part.reduced:
            tensors, totals = Rows(body).totals(inside, tensors)
            for output, combiner, total in zip(body.reducers, body.combiners, totals, strict=True):
                live_ins[output.result] = combiner.combine(self._start(output, env), total)
        else:
            tensors = Columns(body).emit(inside, tensors)
        for value, tensor in zip(written, tensors, strict=True):
            block.home(value)[value] = tensor
        self._emit_scalars(part, Known({**place.known.scalars, **live_ins}), env, block)

    def _numbers(self, part: Pass) -> list[Value]:
        """Return what each row of ``part`` ends with."""
        row_scalars = [] if self._s.vectors else part.row_scalars
        return [result for view in (*part.reduced, *row_scalars) for result in view.op.results]

    def _start(self, output: Output, env: Env) -> Value:
        """Return what the reduction of a row starts from."""
        if output.start is not None:
            return output.start
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
        accesses = (*view.accesses[:place], self._kept_access, *view.accesses[place + 1 :])
        return Output(dataclasses.replace(view, accesses=accesses), number, block.buffers[value])

    def _emit_scalars(self, part: Pass, known: Known, env: Env, block: Block) -> None:
        """Compute and store the numbers that a row of ``part`` ends with."""
        group = Group(self._g.extents, self._g.vector, [] if self._s.vectors else part.row_scalars)
        elements = Elements(self._e, group, 1, (), dict.fromkeys(known.scalars, self._outer))
        known = elements.advance(env, known)
        for value in self._numbers(part):
            scalar = elements.scalar(value, known)
            if value in block.buffers:
                place = [env[self._slot]]
                block.buffers[value] = self._e.insert(scalar, block.buffers[value], place)
            if value in block.outputs:
                indices = [index.emit(self._e, env) for index in self._outputs[value].access]
                block.outputs[value] = self._e.insert(scalar, block.outputs[value], indices)

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
        body = NestBody(self._e, group, streams, schedule, self._target)
        ranges = {self._slot: Range(slot, self._e.add(slot, self._s.block))}
        inside = Place({}, body.elements.advance({}, known), ranges, now=dict(block.buffers))
        tensors = Columns(body).emit(inside, [output.destination for output in streams])
        block.buffers.update(zip([output.result for output in streams], tensors, strict=True))
