"""Heads of an attention side by side, where elements are summed over batches or heads.

The heads whose elements are terms compute the same queries, each into a tile of its own that all threads see;
then each thread sums some keys of all of these tiles, in the order of the heads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.squares import Squares, Tiles
from mind_mlir.lowering.schedule.emission.constants import VECTOR_NS
from mind_mlir.lowering.schedule.emission.split import Split, split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.attention.memory import Rooms, Scratch
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.mlir.bindings import Value

    #: Emits a block of queries of a head: its batches, the number of the block, and memory.
    Head = Callable[[Env, Index, Scratch], object]


class HeadsTogether:
    """Emits blocks of queries of several heads, and sums over them.

    Heads are numbered by the batches of results, then by those that are summed: ``across`` of the former and
    ``within`` of the latter are computed together.
    """

    def __init__(self, nest: AttentionNest, rooms: Rooms, squares: Squares) -> None:
        self._e = nest.e
        self._nest = nest
        self._rooms = rooms
        self._squares = squares
        self._heads, self._members = (
            math.prod(nest.extents[dim] for dim in dims) for dims in (nest.own, nest.summed)
        )
        self._within = min(self._members, nest.schedule.together)
        self._across = nest.schedule.together // self._within

    def emit(self, head: Head) -> None:
        """Emit all heads, given what emits a block of queries of one."""
        e, nest, s = self._e, self._nest, self._nest.schedule
        count = -(-s.together // s.units)
        shared = self._rooms.shared()
        whole = self._rooms.own(shared, parallel=False) if count == 1 else None

        def step(first: tuple[Index, Index], queries: Index) -> list[Value]:
            def chunk(start: Index, end: Index, _: list[Value]) -> list[Value]:
                own = whole or self._rooms.own(shared, parallel=True)

                def one(number: Index, _: list[Value]) -> list[Value]:
                    self._one(head, number, first, queries, (own, shared))
                    return []

                return e.loop((start, end, 1), [], one)

            e.chunks(Split(s.units, count, "", s.brief), s.together, [], chunk)
            for out, place in zip(nest.kept, self._rooms.kept, strict=True):
                self._sum(out, shared["array", place], first, queries)
            return []

        def rows(first: Index, member: Index) -> list[Value]:
            blocks = -(-nest.queries // s.queries)
            return e.loop((0, blocks, 1), [], lambda queries, _: step((first, member), queries))

        def parts(first: Index, _: list[Value]) -> list[Value]:
            return e.loop((0, self._members, self._within), [], lambda member, _: rows(first, member))

        e.loop((0, self._heads, self._across), [], parts)

    def _one(
        self,
        head: Head,
        number: Index,
        first: tuple[Index, Index],
        queries: Index,
        rooms: tuple[Scratch, Scratch],
    ) -> None:
        """Emit a block of queries of the head of a number among those that are computed together."""
        e, nest = self._e, self._nest
        place = e.add(first[0], e.floordiv(number, self._within))
        member = e.add(first[1], e.modulo(number, self._within))
        env = {**self._digits(place, nest.own), **self._digits(member, nest.summed)}
        env |= {dim: 0 for dim in range(nest.row) if dim not in env}
        there = [(place, self._heads)] * (self._heads % self._across > 0)
        there += [(member, self._members)] * (self._members % self._within > 0)
        nest.where(there, lambda: head(env, queries, self._rooms.part(*rooms, number)))

    def _digits(self, number: Index, dims: Sequence[int]) -> dict[int, Index]:
        """Return the batches ``dims``, the last one of which counts fastest."""
        order = dims[::-1]
        digits = self._e.digits(number, [self._nest.extents[dim] for dim in order])
        return dict(zip(order, digits, strict=True))

    def _sum(self, out: Buffer, tiles: Value, first: tuple[Index, Index], block: Index) -> None:
        """Emit sums over heads of a block of queries, of a tensor of elements."""
        e, nest, lanes = self._e, self._nest, self._nest.lanes
        members, within = self._members, self._within
        several = e.minimum(e.sub(members, first[1]), within) if members % within else within
        adds = None if members == within else e.compare("ne", first[1], 0)
        squares = -(-nest.keys // lanes.count)
        cut = split(squares, 2 * nest.schedule.together * squares * nest.schedule.queries * VECTOR_NS)
        rows = e.mul(block, nest.schedule.queries)

        def chunk(start: Index, end: Index, _: list[Value]) -> list[Value]:
            keys = (e.mul(start, lanes.count), e.mul(end, lanes.count))

            def head(place: Index, _: list[Value]) -> list[Value]:
                batch = e.add(first[0], place)
                env = {**self._digits(batch, nest.own), nest.row: rows}
                found = Tiles(tiles, e.mul(place, within * nest.keys), several, adds)
                there = [(batch, self._heads)] * (self._heads % self._across > 0)
                nest.where(there, lambda: self._squares.write(out, found, env, keys))
                return []

            return e.loop((0, self._across, 1), [], head)

        e.chunks(cut, squares, [], chunk)
