"""Emits a row program as one loop nest: over the rows, and in each row one pass after the other."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.fusion.body import Body, Place
from mind_mlir.lowering.schedule.fusion.chunks import Chunks
from mind_mlir.lowering.schedule.fusion.columns import Columns
from mind_mlir.lowering.schedule.fusion.elements import Elements, Known
from mind_mlir.lowering.schedule.fusion.group import Group
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
    from mind_mlir.lowering.schedule.fusion.plan import Root
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
        self._outer = frozenset(range(group.vector))
        self._row_access: Access = (Linear(((group.vector, 1),)),)
        self._row_shape = (group.extents[group.vector],)

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
        """Run over the rows of a chunk."""
        left = [dim for dim in sorted(self._outer) if dim not in place.env]
        if not left:
            return self._row(place, carried)
        dim = left[0]
        rows = place.ranges.get(dim)
        lower, upper = (0, self._g.extents[dim]) if rows is None else (rows.lower, rows.upper)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            return self._loops(place.at(place.env | {dim: i}, place.known), inside)

        return self._e.loop((lower, upper, 1), carried, body)

    def _row(self, place: Place, carried: list[Value]) -> list[Value]:
        tensors = dict(zip(self._outputs, carried, strict=True))
        row = _Row(tensors, self._buffers(), dict(place.known.scalars), {})
        for number, part in enumerate(self._p.passes):
            self._pass(part, self._s.passes[number], place.env, row)
        self._end(place.env, row)
        return list(row.tensors.values())

    def _buffers(self) -> dict[Value, Value]:
        """Return memory of one row for each value that is kept."""
        elements = [ir.RankedTensorType(value.type).element_type for value in self._p.kept]
        rows = [self._e.empty(self._row_shape, element) for element in elements]
        return dict(zip(self._p.kept, rows, strict=True))

    def _pass(self, part: Pass, schedule: FusedSchedule, env: Env, row: _Row) -> None:
        members = {id(view): self._form(view, part) for view in part.members}
        reductions = (self._g.vector,) if part.reduced else ()
        group = Group(self._g.extents, self._g.vector, list(members.values()), reductions)
        streams = [self._stream(value, members, row) for value in part.stored]
        reduced = [
            Output(members[id(view)], number, init, self._starts.get(view.op.results[number]))
            for view in part.reduced
            for number, init in enumerate(view.inits)
        ]
        given = dict.fromkeys(row.totals, self._outer)
        body = Body(self._e, group, [*streams, *reduced], schedule, self._target, given)
        known = body.elements.advance(env, row.known())
        body.elements.spread(known)
        row.scalars.update(known.scalars)
        place = Place(env, known, {}, now=row.now(self._outputs))
        carried = [row.tensor(value) for value in part.stored]
        if part.reduced:
            carried, totals = Rows(body).totals(place, carried)
            for output, combiner, total in zip(body.reducers, body.combiners, totals, strict=True):
                start = output.start
                if start is None:
                    start = self._e.extract(
                        output.destination, [index.emit(self._e, env) for index in output.access]
                    )
                row.totals[output.result] = combiner.combine(start, total)
        else:
            carried = Columns(body).emit(place, carried)
        for value, tensor in zip(part.stored, carried, strict=True):
            row.write(value, tensor)

    def _form(self, view: View, part: Pass) -> View:
        """Return ``view`` as it is computed in ``part``, with what was kept for it in its own memory."""
        for value in part.loaded:
            if value in self._p.kept:
                view = stored_form(view, value, self._row_access, self._row_shape)
        return view

    def _stream(self, value: Value, members: dict[int, View], row: _Row) -> Output:
        """Return how ``value``, which lies along the row, is stored: as a result or in memory of the row."""
        if value in self._outputs:
            output = self._outputs[value]
            return dataclasses.replace(output, member=members[id(output.member)])
        producer = self._g.produced[value]
        view, number = members[id(producer)], value.result_number
        place = len(view.inputs) + number
        accesses = (*view.accesses[:place], self._row_access, *view.accesses[place + 1 :])
        return Output(dataclasses.replace(view, accesses=accesses), number, row.buffers[value])

    def _end(self, env: Env, row: _Row) -> None:
        """Compute and store the results of which there is one for each row."""
        group = Group(self._g.extents, self._g.vector, self._p.ending)
        given = dict.fromkeys(row.totals, self._outer)
        elements = Elements(self._e, group, 1, (), given)
        known = elements.advance(env, row.known())
        for value, output in self._outputs.items():
            if any(index.uses(self._g.vector) for index in output.access):
                continue
            indices = [index.emit(self._e, env) for index in output.access]
            row.tensors[value] = self._e.insert(elements.scalar(value, known), row.tensors[value], indices)


@dataclasses.dataclass
class _Row:
    """What is known while a row is computed.

    Attributes:
        tensors: The results so far.
        buffers: Memory of one row for each value that is kept.
        scalars: Single elements.
        totals: What has been reduced.
    """

    tensors: dict[Value, Value]
    buffers: dict[Value, Value]
    scalars: dict[Root, Value]
    totals: dict[Value, Value]

    def known(self) -> Known:
        """Return the single elements that are known."""
        return Known({**self.scalars, **self.totals}, {})

    def tensor(self, value: Value) -> Value:
        """Return the tensor that ``value`` is written to."""
        return self.tensors[value] if value in self.tensors else self.buffers[value]

    def write(self, value: Value, tensor: Value) -> None:
        """Note that ``value`` is in ``tensor`` by now."""
        (self.tensors if value in self.tensors else self.buffers)[value] = tensor

    def now(self, outputs: dict[Value, Output]) -> dict[Value, Value]:
        """Return what is to be read instead of values and of tensors that have been written over."""
        found = {outputs[value].destination: tensor for value, tensor in self.tensors.items()}
        return {**found, **self.tensors, **self.buffers}


def starts_of(members: Sequence[View]) -> dict[Value, Value]:
    """Return the number that each reduction of ``members`` starts from, where that is known."""
    inits = [
        (result, filler(init))
        for view in members
        if view.reductions
        for result, init in zip(view.op.results, view.inits, strict=True)
    ]
    return {result: start for result, start in inits if start is not None}
