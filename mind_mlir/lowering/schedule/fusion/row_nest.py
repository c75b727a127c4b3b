"""Emits a row program as one loop nest: over blocks of rows, and for each block one pass after the other.

A block is as many rows as fit the first-level cache. With one row at a time, each pass would wait for the
last number of the one before; in a block, the processor goes on with the next row meanwhile.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.fusion.ahead import Ahead
from mind_mlir.lowering.schedule.fusion.body import Body, Place
from mind_mlir.lowering.schedule.fusion.chunks import Chunks
from mind_mlir.lowering.schedule.fusion.columns import Columns
from mind_mlir.lowering.schedule.fusion.elements import Elements, Known
from mind_mlir.lowering.schedule.fusion.group import Group, is_identity
from mind_mlir.lowering.schedule.fusion.output import Output
from mind_mlir.lowering.schedule.fusion.row_space import stored_form
from mind_mlir.lowering.schedule.fusion.rows import Rows
from mind_mlir.lowering.schedule.reading.values import filler
from mind_mlir.lowering.schedule.reading.view import Linear

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.passes import Pass, Passes
    from mind_mlir.lowering.schedule.fusion.row_schedule import RowSchedule
    from mind_mlir.lowering.schedule.fusion.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.reading.view import Access, Env, View
    from mind_mlir.target import Target


class RowEmitter:
    """Emits one row program.

    Args:
        emitter: Where to emit.
        group: All operations of the program; their rows lie along the last loop.
        passes: What is computed when.
        outputs: The results that are used outside of it.
        starts: The number that each reduction starts from, where that is known.
        schedule: How.
        target: The processor.
    """

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        passes: Passes,
        outputs: Sequence[Output],
        starts: Mapping[Value, Value],
        schedule: RowSchedule,
        target: Target,
    ) -> None:
        self._e = emitter
        self._g = group
        self._p = passes
        self._s = schedule
        self._target = target
        self._starts = starts
        self._outputs = {output.result: output for output in outputs}
        self._rows = group.vector - 1  # the loop over rows that blocks are made of; -1: there is one row
        self._in_block = len(group.extents)  # the number of a row in its block, as a loop of its own
        self._outer = frozenset(range(group.vector))
        self._kept_access: Access = (Linear(((self._in_block, 1),)), Linear(((group.vector, 1),)))
        self._kept_shape = (schedule.block, group.extents[group.vector])
        lanes = schedule.rows.lanes
        self._numbers_size = -(-schedule.block // lanes) * lanes if schedule.vectors else schedule.block

    def emit(self, known: Known) -> list[Value]:
        """Emit the nest at the insertion point; return the tensors of the outputs, in their order.

        Args:
            known: Other values for some that the bodies take from outside.
        """
        carried = [output.destination for output in self._outputs.values()]
        rows = self._s.rows
        chunks = Chunks(self._e, self._g.extents, self._g.vector, self._g.reductions, rows)
        place = Place({}, known, {})
        return chunks.emit(rows.cuts, place, carried, self._loops, parallel=rows.parallel)

    def _loops(self, place: Place, carried: list[Value]) -> list[Value]:
        """Run over the blocks of rows of a chunk."""
        dim = next((dim for dim in sorted(self._outer) if dim not in place.env), self._rows)
        if dim < 0 or dim in place.env:
            row = place.env.get(dim, 0)
            return self._block(place, row, self._e.add(row, 1), carried)
        rows = place.ranges.get(dim)
        lower, upper = (0, self._g.extents[dim]) if rows is None else (rows.lower, rows.upper)
        step = self._s.block if dim == self._rows else 1
        cut = self._s.rows.cut(dim)
        whole = self._g.extents[dim] % step == 0 and (cut is None or cut.step % step == 0)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            if dim != self._rows:
                return self._loops(place.at(place.env | {dim: i}, place.known), inside)
            end = self._e.add(i, step)
            return self._block(place, i, end if whole else self._e.minimum(end, upper), inside)

        return self._e.loop((lower, upper, step), carried, body)

    def _block(self, place: Place, first: Index, end: Index, carried: list[Value]) -> list[Value]:
        """Run one pass after the other over the rows from ``first`` to ``end``."""
        block = _Block(dict(zip(self._outputs, carried, strict=True)), self._buffers())
        for part, schedule in zip(self._p.passes, self._s.passes, strict=True):
            numbers = self._numbers(part)
            slots = [(block.home(value), value) for value in part.stored]
            slots += [(block.buffers, value) for value in numbers if value in block.buffers]
            slots += [(block.outputs, value) for value in numbers if value in block.outputs]

            def row(
                i: Index,
                inside: list[Value],
                part: Pass = part,
                schedule: FusedSchedule = schedule,
                slots: list[tuple[dict[Value, Value], Value]] = slots,
            ) -> list[Value]:
                for (home, value), tensor in zip(slots, inside, strict=True):
                    home[value] = tensor
                env = place.env | {self._rows: i, self._in_block: self._e.sub(i, first)}
                ahead = self._ahead(env, block) if schedule is self._s.passes[self._s.asking] else []
                self._row(part, schedule, place.at(env, place.known), block, ahead)
                return [home[value] for home, value in slots]

            tensors = self._e.apart((first, end, 1), [home[value] for home, value in slots], row)
            for (home, value), tensor in zip(slots, tensors, strict=True):
                home[value] = tensor
            if self._s.vectors and part.settled:
                self._settle_rows(part, place.known, block)
        return list(block.outputs.values())

    def _ahead(self, env: Env, block: _Block) -> list[Ahead]:
        """Return what a pass asks for: the rows that the next block reads, those that this one writes."""
        if self._s.asking < 0:
            return []
        whole = tuple(self._g.extents)
        found = [
            Ahead(block.outputs[value], output.access, env, write=True)
            for number, part in enumerate(self._p.passes)
            for value in part.stored
            if number > self._s.asking and not self._s.passes[number].streaming
            if (output := self._outputs.get(value)) is not None
        ]
        if self._rows < 0:
            return found
        last = self._g.extents[self._rows] - 1
        next_ = env | {self._rows: self._e.minimum(self._e.add(env[self._rows], self._s.block), last)}
        for value, access in self._read(self._p.passes[0]).items():
            if tuple(value.type.shape) == whole and is_identity(access, len(whole)):
                found.append(Ahead(value, access, next_, write=False))
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
        numbers = list(self._p.given)
        if self._s.vectors:
            numbers += [value for part in self._p.passes if part.settled for value in self._numbers(part)]
        shapes: dict[Value, tuple[int, ...]] = dict.fromkeys(numbers, (self._numbers_size,))
        shapes.update(dict.fromkeys(self._p.kept, self._kept_shape))
        return {
            value: self._e.empty(shape, ir.RankedTensorType(value.type).element_type)
            for value, shape in shapes.items()
        }

    def _row(
        self, part: Pass, schedule: FusedSchedule, place: Place, block: _Block, ahead: list[Ahead]
    ) -> None:
        """Run ``part`` over one row."""
        env = place.env
        given = {value: self._e.extract(block.buffers[value], [env[self._in_block]]) for value in part.given}
        members = {id(view): self._form(view, part) for view in part.members}
        reductions = (self._g.vector,) if part.reduced else ()
        group = Group(self._g.extents, self._g.vector, list(members.values()), reductions)
        streams = [self._stream(value, members, block) for value in part.stored]
        reduced = [
            Output(members[id(view)], number, init, self._starts.get(view.op.results[number]))
            for view in part.reduced
            for number, init in enumerate(view.inits)
        ]
        outputs, dims = [*streams, *reduced], dict.fromkeys(given, self._outer)
        body = Body(self._e, group, outputs, schedule, self._target, dims, ahead)
        known = body.elements.advance(env, Known({**place.known.scalars, **given}))
        body.elements.spread(known)
        inside = Place(env, known, {}, now=block.now(self._outputs))
        tensors = [block.home(value)[value] for value in part.stored]
        if part.reduced:
            tensors, totals = Rows(body).totals(inside, tensors)
            for output, combiner, total in zip(body.reducers, body.combiners, totals, strict=True):
                given[output.result] = combiner.combine(self._start(output, env), total)
        else:
            tensors = Columns(body).emit(inside, tensors)
        for value, tensor in zip(part.stored, tensors, strict=True):
            block.home(value)[value] = tensor
        self._settle(part, Known({**place.known.scalars, **given}), env, block)

    def _numbers(self, part: Pass) -> list[Value]:
        """Return what each row of ``part`` ends with."""
        settled = [] if self._s.vectors else part.settled
        return [result for view in (*part.reduced, *settled) for result in view.op.results]

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

    def _stream(self, value: Value, members: dict[int, View], block: _Block) -> Output:
        """Return how ``value``, which lies along the row, is stored: as a result or in the block's memory."""
        if value in self._outputs:
            output = self._outputs[value]
            return dataclasses.replace(output, member=members[id(output.member)])
        view, number = members[id(self._g.produced[value])], value.result_number
        place = len(view.inputs) + number
        accesses = (*view.accesses[:place], self._kept_access, *view.accesses[place + 1 :])
        return Output(dataclasses.replace(view, accesses=accesses), number, block.buffers[value])

    def _settle(self, part: Pass, known: Known, env: Env, block: _Block) -> None:
        """Compute and store the numbers that a row of ``part`` ends with."""
        group = Group(self._g.extents, self._g.vector, [] if self._s.vectors else part.settled)
        elements = Elements(self._e, group, 1, (), dict.fromkeys(known.scalars, self._outer))
        known = elements.advance(env, known)
        for value in self._numbers(part):
            scalar = elements.scalar(value, known)
            if value in block.buffers:
                place = [env[self._in_block]]
                block.buffers[value] = self._e.insert(scalar, block.buffers[value], place)
            if value in block.outputs:
                indices = [index.emit(self._e, env) for index in self._outputs[value].access]
                block.outputs[value] = self._e.insert(scalar, block.outputs[value], indices)

    def _settle_rows(self, part: Pass, known: Known, block: _Block) -> None:
        """Compute what ``part`` settles for all rows of a block, some beside one another."""
        access: Access = (Linear(((self._in_block, 1),)),)
        shape = (self._numbers_size,)
        members: list[View] = []
        for view in part.settled:
            form = dataclasses.replace(
                view, accesses=(*view.accesses[: len(view.inputs)], *(access for _ in range(view.results)))
            )
            for value in block.buffers:
                form = stored_form(form, value, access, shape)
            members.append(form)
        group = Group((*self._g.extents, *shape), self._in_block, members)
        streams = [
            Output(view, number, block.buffers[result])
            for view in members
            for number, result in enumerate(view.op.results)
            if result in block.buffers
        ]
        schedule = dataclasses.replace(self._s.rows, vectors=1, cuts=(), parallel=False)
        body = Body(self._e, group, streams, schedule, self._target)
        inside = Place({}, body.elements.advance({}, known), {}, now=dict(block.buffers))
        tensors = Columns(body).emit(inside, [output.destination for output in streams])
        block.buffers.update(zip([output.result for output in streams], tensors, strict=True))


@dataclasses.dataclass
class _Block:
    """Tensors that are written while a block of rows is computed, as they are by now.

    Attributes:
        outputs: The results.
        buffers: Memory of the block: for each value that is kept, and each that a pass gives to another.
    """

    outputs: dict[Value, Value]
    buffers: dict[Value, Value]

    def home(self, value: Value) -> dict[Value, Value]:
        """Return which of the two ``value``, which lies along the rows, is in."""
        return self.outputs if value in self.outputs else self.buffers

    def now(self, outputs: dict[Value, Output]) -> dict[Value, Value]:
        """Return what is to be read instead of values and of tensors that have been written over."""
        found = {outputs[value].destination: tensor for value, tensor in self.outputs.items()}
        return {**found, **self.outputs, **self.buffers}


def starts_of(members: Sequence[View]) -> dict[Value, Value]:
    """Return the number that each reduction of ``members`` starts from, where that is known."""
    inits = [
        (result, filler(init))
        for view in members
        if view.reductions
        for result, init in zip(view.op.results, view.inits, strict=True)
    ]
    return {result: start for result, start in inits if start is not None}
