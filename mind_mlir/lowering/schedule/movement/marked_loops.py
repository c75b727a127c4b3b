"""Loops that lowering marks: over rows that stay as they are, and over rows that are scattered.

Scattered rows are added at positions known at run time, or combined otherwise with those that are there. Rows
that go to the same place do so in their order, whichever thread does it: a chunk of the work is a range of
rows of the result, and each goes through all updates and takes those that belong there.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.kind import Kind, OperationNest, Site
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Operation, Type, Value, ir
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.mlir.values import constant_of, integer_of, is_result_of
from mind_mlir.ops.gather_scatter import LINES_ATTRIBUTE, SCATTER_ATTRIBUTE
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class LoopSchedule:
    """How threads share a marked loop.

    Attributes:
        split: How what they share is split.
        shared: What that is, for people.
        lanes: Elements of rows that are combined at once; 0 where the loop stays as it is.
        digit: Which digit of the number of an update is split where these are lines: 0 or 2.
    """

    split: Split
    shared: str
    lanes: int = 0
    digit: int | None = None

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return chosen(
            self.lanes > 0 and ("vector", str(self.lanes), "a vector register has that many elements"),
            ("chunks", f"{self.split.count} of the {self.shared}", self.split.reason),
        )


@dataclasses.dataclass(frozen=True)
class RowLoop(OperationNest):
    """A loop over rows, each of which is computed by itself, and about how long all of them take."""

    count: int
    nanoseconds: int

    @property
    def extents(self) -> tuple[int, ...]:
        """The rows."""
        return (self.count,)


def _match_rows(site: Site) -> RowLoop | None:
    """Return the operation as a loop over rows if it is marked as one."""
    op = site.op
    if op.name != "scf.for" or ROWS_ATTRIBUTE not in op.attributes:
        return None
    count = constant_of(op.operands[1])
    assert count is not None, "the rows of a loop that is marked are counted"
    return RowLoop(op, count, integer_of(op, ROWS_ATTRIBUTE))


def _emit_rows(nest: RowLoop, schedule: LoopSchedule, site: Site) -> list[Value]:
    """Emit a loop over chunks of rows, and return what it carries in the end."""
    e, loop = site.scope.emitter, nest.op
    return e.chunks(
        schedule.split,
        nest.count,
        list(loop.operands)[3:],
        lambda first, end, carried: _part_of(loop, e, carried, (first, end)),
    )


def _part_of(
    loop: Operation, emitter: Emitter, carried: Sequence[Value], bounds: tuple[Index, Index] | None = None
) -> list[Value]:
    """Emit ``loop``, without its marks, on what is ``carried``, and within ``bounds`` if these are given."""
    clone = loop.clone().operation
    for mark in (ROWS_ATTRIBUTE, SCATTER_ATTRIBUTE, LINES_ATTRIBUTE):
        if mark in clone.attributes:
            del clone.attributes[mark]
    for place, bound in enumerate(bounds or ()):
        clone.operands[place] = emitter.index(bound)
    for place, value in enumerate(carried, start=3):
        clone.operands[place] = value
    return list(clone.results)


ROWS = Kind(
    "rows", _match_rows, lambda nest, _: LoopSchedule(split(nest.count, nest.nanoseconds), "rows"), _emit_rows
)


@dataclasses.dataclass(frozen=True)
class Scatter(OperationNest):
    """A loop over rows of updates, as ScatterAdd is lowered to, on flat tensors.

    The body of the loop computes where a row begins, in the updates and in the result, and ends with the loop
    over the columns.

    Attributes:
        updates: The flat tensor of updates.
        count: How many updates there are.
        rows: The rows of the result.
        width: The elements of a row.
        combiner: The operation on an old element and an update that gives the new one; None where that is the
            update.
        lines: How updates of single elements lie (see `LINES_ATTRIBUTE`), if that is known.
        skips: Whether there may be updates that go nowhere, behind the last row.
    """

    updates: Value
    count: int
    rows: int
    width: int
    combiner: Operation | None
    lines: tuple[int, ...] = ()
    skips: bool = False

    @property
    def element(self) -> Type:
        """The type of the elements."""
        return ir.RankedTensorType(self.updates.type).element_type

    @property
    def extents(self) -> tuple[int, ...]:
        """The updates, and the elements of each."""
        return (self.count, self.width)


def _match_scatter(site: Site) -> Scatter | None:
    """Return the operation as a scatter if it is marked as one."""
    op = site.op
    if op.name != "scf.for" or SCATTER_ATTRIBUTE not in op.attributes:
        return None
    inner = _columns(op)
    body = list(inner.regions[0].blocks[0].operations)
    update = next(each for each in body if each.name == "tensor.extract").operation
    inserted = next(each for each in body if each.name == "tensor.insert").operands[0].owner
    end = inner.operands[1]
    skips = is_result_of(end, "arith.select")
    width, count = constant_of(end.owner.operands[1] if skips else end), constant_of(op.operands[1])
    assert width is not None, "rows are of known width"
    assert count is not None, "the updates are counted"
    return Scatter(
        op,
        update.operands[0],
        count,
        op.results[0].type.shape[0] // width,
        width,
        None if inserted == update else inserted,
        tuple(op.attributes[LINES_ATTRIBUTE]) if LINES_ATTRIBUTE in op.attributes else (),
        skips,
    )


#: Elements that threads take from a row at least: a cache line or more of them.
_LINE = 64


def _choose_scatter(scatter: Scatter, target: Target) -> LoopSchedule:
    """Return how to combine the updates of ``scatter`` with what is there."""
    if scatter.lines:
        outer, _, inner = scatter.lines
        nanoseconds = math.prod(scatter.lines) * constants.ELEMENT_NS
        if outer >= constants.FEWEST_SHARED or inner < constants.FEWEST_SHARED * _LINE:
            return LoopSchedule(split(outer, nanoseconds), "rows", digit=0)
        return LoopSchedule(split(inner, nanoseconds, multiple=_LINE), "columns", digit=2)
    size = element_bytes(scatter.element)
    each = constants.ROW_NS + 3 * scatter.width * size * constants.BYTE_NS
    most = max(1, int(constants.SKIPPED * each / constants.SKIP_NS))
    cut = split(scatter.rows, scatter.count * each, multiple=-(-scatter.rows // most))
    return LoopSchedule(cut, "result's rows", target.lanes(8 * size))


class ScatterEmitter:
    """Emits one scatter as its schedule says."""

    def __init__(self, emitter: Emitter, scatter: Scatter, schedule: LoopSchedule) -> None:
        self._e, self._scatter, self._s = emitter, scatter, schedule

    def emit(self) -> list[Value]:
        """Emit the nest at the insertion point and return the result tensor."""
        digit = self._s.digit
        extent = self._scatter.rows if digit is None else self._scatter.lines[digit]
        body = self._chunk if digit is None else self._lines
        return self._e.chunks(self._s.split, extent, [self._scatter.op.operands[3]], body)

    def _lines(self, first: Index, end: Index, carried: list[Value]) -> list[Value]:
        """Emit the loops over the updates of which a digit is from ``first`` to ``end``."""
        e, (outer, along, inner) = self._e, self._scatter.lines
        if self._s.digit == 0:
            row = along * inner
            return _part_of(self._scatter.op, e, carried, (e.mul(first, row), e.mul(end, row)))

        def part(number: Index, inside: list[Value]) -> list[Value]:
            start = e.mul(number, inner)
            return _part_of(self._scatter.op, e, inside, (e.add(start, first), e.add(start, end)))

        return e.loop((0, outer * along, 1), carried, part)

    def _chunk(self, first: Index, end: Index, carried: list[Value]) -> list[Value]:
        """Emit the loop over the updates, for rows ``first`` to ``end`` of the result."""
        e, found = self._e, _part_of(self._scatter.op, self._e, carried)
        inner = _columns(found[0].owner)
        width = self._scatter.width
        full = width - width % self._s.lanes
        to_target, to_update = (op.operands[0] for op in list(inner.regions[0].blocks[0].operations)[:2])
        with ir.InsertionPoint(inner):
            ends: list[Index] = [full, width]
            if self._s.split.count > 1 or self._scatter.skips:
                offset = e.sub(to_target, e.index(e.mul(first, width)))
                size = e.index(e.mul(e.sub(end, first), width))
                here = e.compare("ult", offset, size)
                nothing = e.index(0)
                ends = [e.select(here, e.index(each), nothing) for each in ends]
            inner.operands[3] = self._vectors(inner.operands[3], to_target, to_update, ends[0])
            inner.operands[0] = e.index(full)
            inner.operands[1] = e.index(ends[1])
        if full == width:
            inner.results[0].replace_all_uses_with(inner.operands[3])
            inner.erase()
        return found

    def _vectors(self, result: Value, to_target: Value, to_update: Value, end: Index) -> Value:
        """Emit the combination of the columns below ``end`` of a row in vectors."""
        type_ = self._e.vector_type(self._s.lanes, self._scatter.element)
        padding = self._e.number(self._scatter.element, 0)
        combiner = self._scatter.combiner

        def body(column: Index, inside: list[Value]) -> list[Value]:
            place = [self._e.add(to_target, column)]
            new = self._e.read(type_, self._scatter.updates, [self._e.add(to_update, column)], padding)
            if combiner is not None:
                old = self._e.read(type_, inside[0], place, padding)
                new = repeat(combiner, [old, new], (self._s.lanes,))[0]
            return [self._e.write(new, inside[0], place)]

        return self._e.loop((0, end, self._s.lanes), [result], body)[0]


def _columns(loop: Operation) -> Operation:
    """Return the loop over the columns, which the body of ``loop`` over the updates ends with."""
    operations = loop.regions[0].blocks[0].operations
    return operations[len(operations) - 2].operation


SCATTER = Kind(
    "scatter",
    _match_scatter,
    _choose_scatter,
    lambda nest, schedule, site: ScatterEmitter(site.scope.emitter, nest, schedule).emit(),
)
