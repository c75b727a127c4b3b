"""Updates that are combined with rows of a tensor at positions known at run time.

Rows that go to the same place do so in an order that shapes and target alone decide, whichever thread does
it. A chunk is a range of rows of the result, and lists which updates belong there, without a branch, before
it takes them in their order; or a range of updates that are known to go to places of their own; or any range
of single numbers, where the result is small beside them: each chunk has tables of its own, which are added to
the result in the end (see `scatter_tables`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.kind import Kind, OperationNest
from mind_mlir.lowering.schedule.movement.marked_loops import part_of
from mind_mlir.lowering.schedule.movement.scatter_blocks import BLOCK, UpdateBlocks
from mind_mlir.lowering.schedule.movement.scatter_body import ScatterBody
from mind_mlir.lowering.schedule.movement.scatter_tables import NOTHING, TableEmitter, Tables, tables_for
from mind_mlir.mlir.bindings import Operation, Type, Value, arith, ir
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.mlir.values import constant_of, is_result_of
from mind_mlir.ops.gather_scatter import LINES_ATTRIBUTE, SCATTER_ATTRIBUTE
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.emission.emitter import Emitter, Index, LoopBody
    from mind_mlir.target import Target


@dataclass(frozen=True)
class Scatter(OperationNest):
    """A loop over rows of updates, as ScatterAdd is lowered to, on flat tensors.

    Attributes:
        body: What the loop does with one row.
        count: How many updates there are.
        rows: The rows of the result.
        width: The elements of a row.
        lines: How updates of single elements lie (see `LINES_ATTRIBUTE`), if that is known.
        skips: Whether there may be updates that go nowhere, behind the last row.
    """

    body: ScatterBody
    count: int
    rows: int
    width: int
    lines: tuple[int, ...] = ()
    skips: bool = False

    @property
    def element(self) -> Type:
        """The type of the elements."""
        return ir.RankedTensorType(self.op.results[0].type).element_type

    @property
    def extents(self) -> tuple[int, ...]:
        """The updates, and the elements of each."""
        return (self.count, self.width)


def _match(op: Operation) -> Scatter | None:
    """Return ``op`` as a scatter if it is marked as one."""
    if op.name != "scf.for" or SCATTER_ATTRIBUTE not in op.attributes:
        return None
    body = ScatterBody(op)
    end = body.columns.operands[1]
    skips = is_result_of(end, "arith.select")
    width, count = constant_of(end.owner.operands[1] if skips else end), constant_of(op.operands[1])
    assert width is not None, "rows are of known width"
    assert count is not None, "the updates are counted"
    lines = tuple(op.attributes[LINES_ATTRIBUTE]) if LINES_ATTRIBUTE in op.attributes else ()
    return Scatter(op, body, count, op.results[0].type.shape[0] // width, width, lines, skips)


#: Elements that threads take from a row at least: a cache line or more of them.
_LINE = 64


@dataclass(frozen=True)
class ScatterSchedule:
    """How threads share a scatter.

    Attributes:
        split: How what they share is split.
        shared: What that is, for people.
        lanes: Elements of rows that are combined at once; 0 where the loop stays as it is.
        digit: Which digit of the number of an update is split where these are lines: 0 or 2; the latter where
            columns of rows are.
        tables: The tables that updates are added to first, if there are such.
    """

    split: Split
    shared: str
    lanes: int = 0
    digit: int | None = None
    tables: Tables | None = None

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        tables = self.tables
        return chosen(
            self.lanes > 0 and ("vector", str(self.lanes), "a vector register has that many elements"),
            tables is not None and ("updates", f"{BLOCK} at a time", "prepared in vectors, added one by one"),
            tables is not None
            and tables.turns > 0
            and ("tables", str(tables.count), "small beside the updates, and added to the result afterwards"),
            ("chunks", f"{self.split.count} of the {self.shared}", self.split.reason),
        )


def _choose(scatter: Scatter, target: Target) -> ScatterSchedule:
    """Return how to combine the updates of ``scatter`` with what is there."""
    size = element_bytes(scatter.element)
    if scatter.lines:
        outer, _, inner = scatter.lines
        nanoseconds = math.prod(scatter.lines) * constants.ELEMENT_NS
        if outer >= constants.FEWEST_SHARED or inner < constants.FEWEST_SHARED * _LINE:
            cut = split(outer, nanoseconds)
            may_add = scatter.body.combined in NOTHING
            tables = None
            if cut.count == 1 and (may_add or not scatter.skips):
                places = scatter.rows + scatter.skips
                tables = tables_for(scatter.count, places, size, target, may_add=may_add)
            if tables is None or (scatter.skips and not tables.turns):
                return ScatterSchedule(cut, "rows", digit=0)
            return ScatterSchedule(tables.split, "updates", tables=tables)
        return ScatterSchedule(split(inner, nanoseconds, multiple=_LINE), "columns", digit=2)
    return _choose_rows(scatter, size, target)


def _choose_rows(scatter: Scatter, size: int, target: Target) -> ScatterSchedule:
    """Return how to combine rows of several elements, of ``size`` bytes.

    Where the result is in the cache, threads share the columns: each goes through all updates, one after the
    other in memory. Else it takes longer to find a row than to pass over others, and they share the rows.
    """
    lanes, row = target.lanes(8 * size), scatter.width * size
    each = constants.ROW_NS + 3 * row * target.rates.byte_ns
    if scatter.rows * row <= target.l2_bytes:
        nearer = target.rates.l2_byte_ns / target.rates.byte_ns
        half = -(-scatter.width // (2 * lanes)) * lanes
        part = half if row >= 2 * constants.PART_OF_ROW else scatter.width
        cut = split(scatter.width, scatter.count * each * nearer, multiple=part)
        return ScatterSchedule(cut, "columns", lanes, 2)
    most = max(1, int(constants.LISTED * each / constants.LIST_NS))
    cut = split(scatter.rows, scatter.count * each, multiple=-(-scatter.rows // most))
    return ScatterSchedule(cut, "result's rows", lanes)


def has_tables(op: Operation, target: Target) -> bool:
    """Return whether ``op`` is a scatter whose updates are added to tables first, which threads share."""
    scatter = _match(op)
    tables = None if scatter is None else _choose(scatter, target).tables
    return tables is not None and tables.turns > 0


class ScatterEmitter:
    """Emits one scatter as its schedule says."""

    def __init__(self, emitter: Emitter, scatter: Scatter, schedule: ScatterSchedule) -> None:
        self._e, self._scatter, self._s = emitter, scatter, schedule

    def emit(self) -> list[Value]:
        """Emit the nest at the insertion point and return the result tensor."""
        digit, start = self._s.digit, self._scatter.op.operands[3]
        if self._s.tables is not None:
            return TableEmitter(self._e, self._scatter.body, self._scatter.count, self._s.tables).emit(start)
        if digit is not None and self._scatter.lines:
            return self._e.chunks(self._s.split, self._scatter.lines[digit], [start], self._lines)
        extent, body = (
            (self._scatter.rows, self._chunk) if digit is None else (self._scatter.width, self._part)
        )
        return self._e.chunks(self._s.split, extent, [start], body)

    def _lines(self, first: Index, end: Index, carried: list[Value]) -> list[Value]:
        """Emit the loops over the updates of which a digit is from ``first`` to ``end``."""
        e, (outer, along, inner) = self._e, self._scatter.lines
        if self._s.digit == 0:
            row = along * inner
            return part_of(self._scatter.op, e, carried, (e.mul(first, row), e.mul(end, row)))

        def part(number: Index, inside: list[Value]) -> list[Value]:
            start = e.mul(number, inner)
            return part_of(self._scatter.op, e, inside, (e.add(start, first), e.add(start, end)))

        return e.loop((0, outer * along, 1), carried, part)

    def _part(self, first: Index, end: Index, carried: list[Value]) -> list[Value]:
        """Emit the combination of all updates with the columns ``first`` to ``end``."""

        def row(number: Index, inside: list[Value]) -> list[Value]:
            return self._row(self._scatter.body.row(self._e, number), number, inside, (first, end))

        return self._e.loop((0, self._scatter.count, 1), carried, row)

    def _chunk(self, first: Index, end: Index, carried: list[Value]) -> list[Value]:
        """Emit the combination of the updates with rows ``first`` to ``end`` of the result."""
        e, body, count, width = self._e, self._scatter.body, self._scatter.count, self._scatter.width
        if self._s.split.count == 1:
            return self._part(0, width, carried)
        rows = e.mul(first, width), e.mul(e.sub(end, first), width)
        blocks = UpdateBlocks(e, body, (body.begin,), self._s.lanes)

        def block(start: Index, inside: list[Value]) -> list[Value]:
            prepared = blocks.prepared(start)
            return self._listed(start, BLOCK, rows, lambda at: blocks.single(start, at, prepared)[0], inside)

        rest = count - count % BLOCK
        carried = e.loop((0, rest, BLOCK), carried, block)
        return self._listed(rest, count - rest, rows, lambda at: body.row(e, e.add(at, rest)), carried)

    def _listed(
        self,
        start: Index,
        count: int,
        rows: tuple[Index, Index],
        begin: Callable[[Index], Value],
        carried: list[Value],
    ) -> list[Value]:
        """Emit the combination of ``count`` updates from ``start`` on, of those that begin in ``rows``.

        These are listed first: whether an update belongs there is nothing that a processor could guess.
        """
        e, i32 = self._e, ir.IntegerType.get_signless(32)

        def test(at: Index, inside: list[Value]) -> list[Value]:
            here = e.compare("ult", e.sub(begin(at), rows[0]), rows[1])
            noted = arith.IndexCastUIOp(i32, e.index(at)).result
            more = arith.IndexCastUIOp(e.index_type, here).result
            return [e.insert(noted, inside[0], [inside[1]]), e.index(e.add(inside[1], more))]

        def row(place: Index, inside: list[Value]) -> list[Value]:
            at = arith.IndexCastUIOp(e.index_type, e.extract(numbers, [place])).result
            return self._row(begin(at), e.add(start, at), inside)

        if count == 0:
            return carried
        numbers, listed = e.loop((0, count, 1), [e.empty([BLOCK], i32), e.index(0)], test)
        return e.loop((0, listed, 1), carried, row)

    def _row(
        self, to: Value, number: Index, carried: list[Value], part: tuple[Index, Index] | None = None
    ) -> list[Value]:
        """Emit the combination of an update with the row at ``to``: in vectors, then the columns left."""
        e, scatter, lanes = self._e, self._scatter, self._s.lanes
        full, update = scatter.width - scatter.width % lanes, e.mul(number, scatter.width)
        first, end = part or (0, scatter.width)
        if scatter.skips and part is not None:
            here = e.compare("ult", to, scatter.rows * scatter.width)
            end = e.select(here, e.index(end), e.index(0))
        whole = full if end == scatter.width else e.minimum(end, full)
        carried = e.loop((first, whole, lanes), carried, self._columns(to, update, lanes))
        if full == scatter.width:
            return carried
        return e.loop((e.maximum(first, full), end, 1), carried, self._columns(to, update, 0))

    def _columns(self, to: Index, update: Index, lanes: int) -> LoopBody:
        """Return what combines so many columns, a single one for 0, of the row at ``to``."""
        e, body, element = self._e, self._scatter.body, self._scatter.element

        def columns(column: Index, inside: list[Value]) -> list[Value]:
            place, source = e.add(to, column), e.add(update, column)
            new = body.elements(e, source, lanes)
            if not lanes:
                return [e.insert(body.combine(e.extract(inside[0], [place]), new, ()), inside[0], [place])]
            old = e.read(e.vector_type(lanes, element), inside[0], [place], e.number(element, 0))
            return [e.write(body.combine(old, new, (lanes,)), inside[0], [place])]

        return columns


SCATTER = Kind(
    "scatter",
    lambda site: _match(site.op),
    _choose,
    lambda nest, schedule, site: ScatterEmitter(site.scope.emitter, nest, schedule).emit(),
)
