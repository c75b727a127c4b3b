"""Single numbers that are added at positions known at run time, in tables beside the result.

Each chunk of the updates has tables of its own, which begin with nothing and are added to the result one
after the other; so threads share updates, wherever these go. Where tables are small, a chunk has several, by
turns: an addition to the element that the one before it was added to would wait until that is stored. How
many tables there are depends on shapes and target alone, and so does the order of additions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.movement.scatter_blocks import BLOCK, UpdateBlocks
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.movement.scatter_body import ScatterBody
    from mind_mlir.target import Target

#: What tables begin with, for each operation: the number that changes nothing.
NOTHING: dict[str | None, float] = {"arith.addi": 0, "arith.addf": -0.0}


@dataclass(frozen=True)
class Tables:
    """How updates are added in tables.

    Attributes:
        split: How the updates are cut in chunks.
        turns: The tables of a chunk; 0 where updates are added to the result itself, by one thread.
        size: The elements of a table, those for nowhere included.
        lanes: Elements of a vector.
        prepared: How many updates are prepared at once.
    """

    split: Split
    turns: int
    size: int
    lanes: int
    prepared: int

    @property
    def count(self) -> int:
        """The tables of all chunks."""
        return self.split.count * self.turns

    @property
    def pitch(self) -> int:
        """Elements from the beginning of a table to that of the next one: whole vectors."""
        return -(-self.size // self.lanes) * self.lanes


def tables_for(count: int, size: int, element: int, target: Target, *, may_add: bool) -> Tables | None:
    """Return the tables for ``count`` updates; None where these are so few that the loop stays as it is.

    Args:
        count: How many updates there are.
        size: The elements of a table.
        element: The bytes of one.
        target: The processor.
        may_add: Whether updates may be added to tables first; else they are combined with the result itself.
    """
    nanoseconds = count * constants.ELEMENT_NS
    if nanoseconds < constants.WORTHWHILE_NS:
        return None
    turns, lanes, prepared = constants.TURNS, target.lanes(8 * element), target.lanes(32)
    if turns * size * element > target.l1_bytes // 2 or constants.TABLE_SHARE * turns * size > count:
        turns = 1
    cached = max(2, target.l2_bytes // (2 * size * element))
    most = min(constants.MOST_TABLE_CHUNKS, count // (constants.TABLE_SHARE * turns * size), cached)
    if not may_add or most < 1 or most * turns == 1:
        whole = Split(count, 1, "one thread: tables would not be small beside the updates")
        return Tables(whole, 0, size, lanes, prepared)
    cut = split(count, nanoseconds, multiple=-(-count // (most * BLOCK)) * BLOCK)
    return Tables(cut, turns, size, lanes, prepared)


class TableEmitter:
    """Emits the additions to tables, and of these to the result.

    Args:
        emitter: Emits.
        body: What the loop does with one update.
        count: How many updates there are.
        tables: Where they are added.
    """

    def __init__(self, emitter: Emitter, body: ScatterBody, count: int, tables: Tables) -> None:
        self._e, self._body, self._count, self._t = emitter, body, count, tables
        self._blocks = UpdateBlocks(emitter, body, (body.place, body.update), tables.prepared)

    def emit(self, start: Value) -> list[Value]:
        """Emit the nest at the insertion point, and return ``start`` with the updates added."""
        e, tables = self._e, self._t
        if not tables.turns:
            return self._updates((0, self._count), [start], 0)
        element = ir.RankedTensorType(start.type).element_type
        none = e.empty([tables.count * tables.pitch], element)
        (added,) = e.chunks(tables.split, self._count, [none], self._chunk)
        return self._merged(start, added)

    def _chunk(self, first: Index, end: Index, carried: list[Value]) -> list[Value]:
        """Emit the additions of the updates ``first`` to ``end`` to the tables of their chunk."""
        e, tables = self._e, self._t
        element = ir.RankedTensorType(carried[0].type).element_type
        nothing = e.number(e.vector_type(tables.lanes, element), NOTHING[self._body.combined])
        size = tables.turns * tables.pitch
        own = e.mul(e.floordiv(first, tables.split.step), size)

        def fill(place: Index, inside: list[Value]) -> list[Value]:
            return [e.write(nothing, inside[0], [e.add(own, place)])]

        return self._updates((first, end), e.loop((0, size, tables.lanes), carried, fill), own)

    def _updates(self, bounds: tuple[Index, Index], carried: list[Value], own: Index) -> list[Value]:
        """Emit the updates within ``bounds``, in the tables from element ``own`` on."""
        e, turns, (first, end) = self._e, max(self._t.turns, 1), bounds

        def block(start: Index, inside: list[Value]) -> list[Value]:
            prepared = self._blocks.prepared(start)

            def several(place: Index, inside: list[Value]) -> list[Value]:
                for turn in range(turns):
                    to, new = self._blocks.single(start, e.add(place, turn), prepared)
                    inside = self._added(inside[0], e.add(e.add(own, turn * self._t.pitch), to), new)
                return inside

            return e.loop((0, BLOCK, turns), inside, several)

        def one(number: Index, inside: list[Value]) -> list[Value]:
            to, new = self._body.single(e, number)
            return self._added(inside[0], e.add(own, to), new)

        whole = e.sub(end, e.modulo(e.sub(end, first), BLOCK))
        carried = e.loop((first, whole, BLOCK), carried, block)
        return carried if self._count % BLOCK == 0 else e.loop((whole, end, 1), carried, one)

    def _added(self, target: Value, place: Index, new: Value) -> list[Value]:
        """Emit ``target`` with ``new`` added to an element."""
        e = self._e
        return [e.insert(self._body.combine(e.extract(target, [place]), new, ()), target, [place])]

    def _merged(self, start: Value, added: Value) -> list[Value]:
        """Emit ``start`` with all tables of ``added`` added, in order."""
        e, tables = self._e, self._t
        rows = ir.RankedTensorType(start.type).shape[0]
        element = ir.RankedTensorType(start.type).element_type
        type_, padding = e.vector_type(tables.lanes, element), e.number(element, 0)

        def vector(place: Index, inside: list[Value], mask: Value | None = None) -> list[Value]:
            def table(first: Index, sums: list[Value]) -> list[Value]:
                new = e.read(type_, added, [e.add(first, place)], padding)
                return [self._body.combine(sums[0], new, (tables.lanes,))]

            old = e.read(type_, inside[0], [place], padding, mask)
            (found,) = e.loop((0, tables.count * tables.pitch, tables.pitch), [old], table)
            return [e.write(found, inside[0], [place], mask)]

        whole = rows - rows % tables.lanes
        merged = [start]
        if whole:
            nanoseconds = whole // tables.lanes * tables.count * REFERENCE.vector_ns
            cut = split(whole, nanoseconds, multiple=tables.lanes)

            def chunk(first: Index, end: Index, inside: list[Value]) -> list[Value]:
                return e.loop((first, end, tables.lanes), inside, vector)

            merged = e.chunks(cut, whole, merged, chunk)
        return merged if whole == rows else vector(whole, merged, e.mask(tables.lanes, rows - whole))
