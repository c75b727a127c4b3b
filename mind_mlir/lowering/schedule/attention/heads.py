"""Results that have an element of an attention for each of its scores, or sums of these over batches.

Elements lie in memory ``[key][query]`` and are transposed in squares of a vector. Where they are summed, the
heads whose elements are terms compute the same queries side by side, each into a tile of its own that all
threads see; then each thread sums some keys of all of these tiles, in the order of the heads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.emission.shuffles import transpose
from mind_mlir.lowering.emission.split import emit_ranges, split
from mind_mlir.mlir.bindings import Value, arith
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, Scratch
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env

    #: Emits a block of queries of a head: its batches, the number of the block, and memory.
    Head = Callable[[Env, Index, Scratch], object]


class Tiles(NamedTuple):
    """Elements of some heads for a block of queries.

    Attributes:
        room: Their memory, ``[head, key][query]``.
        first: The first row of the first head.
        heads: How many heads there are to be summed.
        adds: Whether they are added to what there is; None if they never are.
    """

    room: Value
    first: Index = 0
    heads: Index = 1
    adds: Value | None = None


def write_elements(
    nest: AttentionNest, out: Buffer, tiles: Tiles, env: Env, keys: tuple[Index, Index]
) -> None:
    """Emit the rows of a tensor for a block of queries, of some keys, which are squares."""
    e, lanes = nest.e, nest.lanes

    def square(key: Index) -> None:
        for c in range(0, lanes.vectors * lanes.count, lanes.count):
            for lane, value in enumerate(transpose(_sums(nest, tiles, key, c))):
                row = e.add(env[nest.row], c + lane)
                here = {**env, nest.row: row, nest.column: key}
                _where(e, [(row, nest.queries)] * nest.is_ragged, partial(put, value, here))

    def put(value: Value, here: Env) -> None:
        live = e.sub(nest.keys, here[nest.column]) if nest.keys % lanes.count else None
        indices = out.indices(e, here)
        if tiles.adds is not None:
            old = lanes.load(out.value, indices, live)
            value = arith.AddFOp(value, arith.SelectOp(tiles.adds, old, lanes.splat(0.0)).result).result
        lanes.store(e.cast(value, out.element), out.value, indices, live)

    e.each((*keys, lanes.count), square)


def _sums(nest: AttentionNest, tiles: Tiles, key: Index, query: int) -> list[Value]:
    """Emit sums over heads: a vector of queries for each of as many keys."""
    e, lanes, keys = nest.e, nest.lanes, nest.keys
    places = [e.add(key, lane) for lane in range(lanes.count)]
    if keys % lanes.count:  # nothing lies behind the last key
        places = [e.minimum(place, keys - 1) for place in places]

    def one(head: Index) -> list[Value]:
        start = e.add(tiles.first, e.mul(head, keys))
        return [lanes.load(tiles.room, [e.add(start, place), query]) for place in places]

    def more(head: Index, sums: list[Value]) -> list[Value]:
        return [arith.AddFOp(*each).result for each in zip(sums, one(head), strict=True)]

    return e.loop((1, tiles.heads, 1), one(0), more)


def _where(e: Emitter, bounds: Sequence[tuple[Index, int]], body: Callable[[], object]) -> None:
    """Emit ``body``, where numbers are below their bounds."""
    if bounds:
        e.when(e.all([e.compare("ult", *each) for each in bounds]), body)
    else:
        body()


class HeadsTogether:
    """Emits blocks of queries of several heads, and sums over them.

    Heads are numbered by the batches of results, then by those that are summed: ``across`` of the former and
    ``within`` of the latter are computed together.
    """

    def __init__(self, nest: AttentionNest) -> None:
        self._e = nest.e
        self._nest = nest
        self._summed = nest.summed
        self._own = [dim for dim in range(nest.row) if dim not in nest.summed]
        self._members, self._heads = nest.members, nest.heads // nest.members
        self._within = min(self._members, nest.schedule.together)
        self._across = nest.schedule.together // self._within

    def emit(self, head: Head) -> None:
        """Emit all heads, given what emits a block of queries of one."""
        e, nest = self._e, self._nest
        shared = nest.shared()
        chunks = nest.chunks(nest.schedule.together, shared)

        def step(first: tuple[Index, Index], queries: Index) -> None:
            def one(_: Index, number: Index, own: Scratch) -> None:
                env, there = self._place(number, first)
                _where(e, there, lambda: head(env, queries, nest.part(own, shared, number)))

            chunks(one)
            for out, node in zip(nest.kept, nest.program.kept, strict=True):
                self._sum(out, shared["array", nest.program.places[node]], first, queries)

        def rows(first: Index, member: Index) -> None:
            e.each((0, nest.blocks, 1), partial(step, (first, member)))

        members = (0, self._members, self._within)
        heads = (0, self._heads, self._across)
        e.each(heads, lambda first: e.each(members, partial(rows, first)))

    def _place(self, number: Index, first: tuple[Index, Index]) -> tuple[Env, list[tuple[Index, int]]]:
        """Return the batches of one of the heads computed together, and bounds within which there is one."""
        e = self._e
        place = e.add(first[0], e.floordiv(number, self._within))
        member = e.add(first[1], e.modulo(number, self._within))
        env = {**self._digits(place, self._own), **self._digits(member, self._summed)}
        there = [(member, self._members)] * (self._members % self._within > 0)
        return env, self._bounds(place) + there

    def _bounds(self, place: Index) -> list[tuple[Index, int]]:
        """Return a bound within which there is a head of such batches, if not always."""
        return [(place, self._heads)] * (self._heads % self._across > 0)

    def _digits(self, number: Index, dims: Sequence[int]) -> Env:
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
        vectors = 2 * nest.schedule.together * squares * nest.schedule.queries
        cut = split(squares, vectors * REFERENCE.vector_ns)
        rows = e.mul(block, nest.schedule.queries)

        def chunk(start: Index, end: Index) -> None:
            keys = (e.mul(start, lanes.count), e.mul(end, lanes.count))

            def head(place: Index) -> None:
                batch = e.add(first[0], place)
                env = {**self._digits(batch, self._own), nest.row: rows}
                found = Tiles(tiles, e.mul(place, within * nest.keys), several, adds)
                _where(e, self._bounds(batch), lambda: write_elements(nest, out, found, env, keys))

            e.each((0, self._across, 1), head)

        emit_ranges(e, squares, cut.step, chunk, brief=cut.brief)
