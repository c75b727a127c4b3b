"""Transposes narrow matrices, such as pixels of three colours, in rows that are read or written whole.

One of the last two dimensions is a few elements long. Each of these is a column: vectors of the columns are
read, or written, side by side, and what moves elements that lie apart in memory makes one access of whole
rows of them (`lowering/strided_rows.py`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.mlir.bindings import Value, ir, tensor
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.lowering.schedule.movement.transposition import Transposition
    from mind_mlir.target import Target


@dataclass(frozen=True)
class NarrowSchedule:
    """The schedule of a transposition of narrow matrices.

    Attributes:
        lanes: Elements in a vector.
        columns: How many columns there are.
        long: The loop along them.
        shared: The loop that threads share.
        split: How it is split.
    """

    lanes: int
    columns: int
    long: int
    shared: int
    split: Split

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return chosen(
            ("columns", f"{self.columns} x {self.lanes}", "rows are so short that some are moved at once"),
            ("chunks", f"{self.split.count} of loop {self.shared}", self.split.reason),
        )


def narrow_schedule(
    nest: Transposition, target: Target, most: int = constants.NARROW
) -> NarrowSchedule | None:
    """Return how to transpose matrices of few columns; None if they have more, or rows lie apart."""
    extents, size = nest.extents, element_bytes(nest.element)
    long, narrow = sorted((nest.row, nest.column), key=lambda dim: -extents[dim])
    lanes, access = target.lanes(8 * size), nest.view.accesses[0 if narrow == nest.row else 1]
    if extents[narrow] > most or extents[long] < 2 * lanes or access[-2].dim != long:
        return None
    shared = max((dim for dim in range(len(extents)) if dim != narrow), key=lambda dim: extents[dim])
    nanoseconds = 2 * math.prod(extents) * size * target.rates.byte_ns
    cut = split(extents[shared], nanoseconds, multiple=lanes if shared == long else 1)
    if shared == long and 0 < extents[long] % cut.step < lanes:
        step = cut.step + lanes  # else vectors of the last chunk would overlap those of the one before
        cut = dataclasses.replace(cut, step=step, count=-(-extents[long] // step))
    return NarrowSchedule(lanes, extents[narrow], long, shared, cut)


class NarrowEmitter:
    """Emits one such transposition."""

    def __init__(self, emitter: Emitter, nest: Transposition, schedule: NarrowSchedule) -> None:
        self._e, self._t, self._s = emitter, nest, schedule
        self._reads_rows = schedule.long == nest.column
        self._vector = emitter.vector_type(schedule.lanes, nest.element)
        self._padding = emitter.number(nest.element, 0)

    def emit(self) -> Value:
        """Emit the nest at the insertion point and return the result tensor."""
        e, t, s = self._e, self._t, self._s
        source, shape = t.view.operands[0], list(t.view.shapes[1])
        if self._reads_rows:
            self._sources = [self._column(source, number) for number in range(s.columns)]
            carried = [e.empty(shape, t.element)]
        else:
            carried = [e.empty(shape[:-1], t.element) for _ in range(s.columns)]
        outer = [dim for dim in range(len(t.extents)) if dim not in (t.row, t.column)]
        order = [*sorted(outer, key=lambda dim: dim != s.shared), s.long]
        found = e.chunks(
            s.split,
            t.extents[s.shared],
            carried,
            lambda first, end, inside: self._loops(order, (first, end), {}, inside),
        )
        return found[0] if self._reads_rows else self._joined(found, shape)

    def _loops(
        self, dims: list[int], bounds: tuple[Index, Index], env: Env, carried: list[Value]
    ) -> list[Value]:
        """Emit the loops over ``dims``, of which the shared one is within ``bounds``, and the vectors."""
        if not dims:
            return self._rows(env, carried)
        e, (dim, *rest), extent = self._e, dims, self._t.extents[dims[0]]
        step = self._s.lanes if dim == self._s.long else 1
        first, end = bounds if dim == self._s.shared else (0, extent)

        def body(i: Index, inside: list[Value]) -> list[Value]:
            i = e.minimum(i, extent - step) if extent % step else i  # what is written twice is the same
            return self._loops(rest, bounds, env | {dim: i}, inside)

        return e.loop((first, end, step), carried, body)

    def _rows(self, env: Env, carried: list[Value]) -> list[Value]:
        """Emit the vectors of all columns, from the row at ``env`` on."""
        e, (read, write) = self._e, self._t.view.accesses
        if self._reads_rows:
            there = [index.emit(e, env) for index in read[:-1]]
            values = [e.read(self._vector, each, there, self._padding) for each in self._sources]
            (result,) = carried
            for number, value in enumerate(values):
                here = [index.emit(e, env | {self._t.row: number}) for index in write]
                result = e.write(value, result, here)
            return [result]
        source, there = self._t.view.operands[0], [index.emit(e, env) for index in write[:-1]]
        found = []
        for number, result in enumerate(carried):
            here = [index.emit(e, env | {self._t.column: number}) for index in read]
            found.append(e.write(e.read(self._vector, source, here, self._padding), result, there))
        return found

    def _column(self, source: Value, number: int) -> Value:
        """Return one of the last elements of all rows of ``source``."""
        shape = list(source.type.shape)
        type_ = ir.RankedTensorType.get(shape[:-1], self._t.element)
        offsets, sizes = [*[0] * (len(shape) - 1), number], [*shape[:-1], 1]
        return tensor.ExtractSliceOp(type_, source, [], [], [], offsets, sizes, [1] * len(shape)).result

    def _joined(self, columns: list[Value], shape: list[int]) -> Value:
        """Return the tensor of ``columns``."""
        result = self._e.empty(shape, self._t.element)
        for number, column in enumerate(columns):
            offsets, sizes = [*[0] * (len(shape) - 1), number], [*shape[:-1], 1]
            static = offsets, sizes, [1] * len(shape)
            result = tensor.InsertSliceOp(column, result, [], [], [], *static).result
        return result
