"""Emits the memory of an attention, and tensors of elements: written as they are, or summed over batches.

Elements lie in memory ``[key][query]`` and are transposed in squares of a vector. Where they are summed, the
heads whose elements are terms compute the same queries side by side, each into a tile of its own that all
threads see; then each thread sums some keys of all of these tiles, in the order of the heads.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.choice import has_tiles, query_pack
from mind_mlir.lowering.schedule.attention.memory import Buffer, Scratch, Shared, load, store
from mind_mlir.lowering.schedule.attention.online import Online
from mind_mlir.lowering.schedule.attention.passes import TERMS
from mind_mlir.lowering.schedule.contraction.kernels.library import private_memory
from mind_mlir.lowering.schedule.emission.constants import VECTOR_NS
from mind_mlir.lowering.schedule.emission.split import Split, split
from mind_mlir.lowering.schedule.movement.transposition import transpose
from mind_mlir.mlir.bindings import Type, Value, arith, ir, memref, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env


@dataclasses.dataclass(frozen=True)
class Tiles:
    """Elements of some heads for a block of queries.

    Attributes:
        memory: Their memory, ``[head, key][query]``.
        first: The first row of the first head.
        heads: How many heads there are to be summed.
        adds: Whether they are added to what there is; None if they never are.
    """

    memory: Value
    first: Index
    heads: Index
    adds: Value | None


class Written(Online):
    """Emits the memory of chunks of one attention, and what it writes of its elements."""

    def _scratch(self, shared: Shared, *, parallel: bool) -> Scratch:
        """Emit the memory of a chunk, but for what is ``shared``."""
        s = self._s
        square = query_pack(s, str(self._element), self._stored, transposed=True).square
        rounded = [-(-self._extents[dim] // square) * square for dim in self._depths]
        tiled = [
            node
            for node in self._p.inputs
            if has_tiles(self._p, node, self._buffers[self._input(node)].access)
        ]

        def memory(rows: int, type_: Type, columns: int = s.queries) -> Value:
            return self._memory(rows, type_, columns, parallel=parallel)

        columns = s.out_vectors * s.lanes
        words = [self._word_rows(number) for number in range(len(self._widths))] if s.pairs else []
        values = [
            shared.values[number] if number in shared.values else memory(count, self._word, columns)
            for number, count in enumerate(words)
        ]
        half = ir.IntegerType.get_signless(16)
        even = 2 * self._value_words
        column_places = self._places_of(self._p.column_terms) if s.pairs else []
        halves = [-(-self._extents[dim] // 2 // square) * square for dim in self._depths]
        queries = [memory(depth + 1, self._word) for depth in halves] if s.pairs else []
        row, greatest, sums = (memory(1, self._element) for _ in range(3))
        return Scratch(
            queries=[memory(depth, self._element) for depth in rounded] if not s.pairs else queries,
            values=values,
            least=shared.least or memory(len(self._m.scores), self._word, 1),
            arrays=[
                shared.arrays[place] if place in shared.arrays else memory(s.keys, self._element)
                for place in range(self._p.arrays)
            ],
            halves={place: memory(even, half) for place in column_places},
            tiles={
                node.number: memory(-(-TERMS // square) * square, _in_memory(node.type)) for node in tiled
            },
            row=row,
            greatest=greatest,
            sums=sums,
            outputs={
                number: memory(s.queries, self._element, -(-self._extents[width] // s.lanes) * s.lanes)
                for number, width in enumerate(self._widths)
                if self._rounds(number)
            },
        )

    def _memory(self, rows: int, type_: Type, columns: int, *, parallel: bool) -> Value:
        shape = ir.MemRefType.get([rows, columns], type_)
        return private_memory(shape) if parallel else memref.AllocOp(shape, [], []).result

    def _side_by_side(self, block: Callable[[Env, Index, Scratch], object]) -> None:
        """Emit all of an attention, given what emits a block of queries of a head.

        Args:
            block: Takes the batches, the number of the block, and memory.
        """
        e, s = self._e, self._s
        heads = math.prod(self._extents[dim] for dim in self._own)
        members = math.prod(self._extents[dim] for dim in self._summed)
        within = min(members, s.together)
        across = s.together // within
        count = -(-s.together // s.units)
        places = self._places_of(self._p.kept)
        shared = self._shared(places)
        scratch = self._scratch(shared, parallel=False) if count == 1 else None

        def one(number: Index, first: tuple[Index, Index], queries: Index, own: Scratch) -> list[Value]:
            head, member = e.add(first[0], e.floordiv(number, within)), e.modulo(number, within)
            member = e.add(first[1], member)
            env = {**self._digits(head, self._own), **self._digits(member, self._summed)}
            env |= {dim: 0 for dim in range(self._row) if dim not in env}

            def inside() -> None:
                parts = self._parts(own, shared, number)
                if s.pairs:
                    is_first = None if isinstance(queries, int) else e.compare("eq", queries, 0)
                    self._prepare(env, parts, is_first)
                block(env, queries, parts)

            there = [(head, heads)] * bool(heads % across) + [(member, members)] * bool(members % within)
            self._where(there, inside)
            return []

        def step(first: tuple[Index, Index], queries: Index) -> list[Value]:
            def chunk(start: Index, end: Index, _: list[Value]) -> list[Value]:
                own = scratch or self._scratch(shared, parallel=True)
                return e.loop((start, end, 1), [], lambda number, _: one(number, first, queries, own))

            e.chunks(Split(s.units, count, "", s.brief), s.together, [], chunk)
            for number, place in enumerate(places):
                self._sum(number, shared.arrays[place], first, queries, (across, within))
            return []

        def rows(head: Index, member: Index) -> list[Value]:
            blocks = -(-self._queries // s.queries)
            return e.loop((0, blocks, 1), [], lambda queries, _: step((head, member), queries))

        def parts(head: Index, _: list[Value]) -> list[Value]:
            return e.loop((0, members, within), [], lambda member, _: rows(head, member))

        e.loop((0, heads, across), [], parts)

    def _shared(self, places: Sequence[int]) -> Shared:
        """Emit memory that all threads see: arrays that are summed, and what is prepared once a head."""
        s = self._s

        def memory(rows: int, element: Type, columns: int) -> Value:
            return self._memory(s.together * rows, element, columns, parallel=False)

        arrays = {place: memory(self._keys, self._element, s.queries) for place in places}
        if not s.pairs:
            return Shared(arrays)
        columns = s.out_vectors * s.lanes
        values = {
            number: memory(self._word_rows(number), self._word, columns)
            for number, output in enumerate(self._p.outputs)
            if output.by_row
        }
        return Shared(arrays, values, memory(len(self._m.scores), self._word, 1))

    def _parts(self, own: Scratch, shared: Shared, head: Index) -> Scratch:
        """Emit the memory of a thread for the head of that number: it has its part of what is shared."""

        def part(memory: Value, size: int) -> Value:
            return _rows(memory, self._e.index(self._e.mul(head, size)), size)

        arrays, values = list(own.arrays), list(own.values)
        for place, memory in shared.arrays.items():
            arrays[place] = part(memory, self._keys)
        for number, memory in shared.values.items():
            values[number] = part(memory, self._word_rows(number))
        least = own.least if shared.least is None else part(shared.least, len(self._m.scores))
        return dataclasses.replace(own, arrays=arrays, values=values, least=least)

    def _digits(self, number: Index, dims: Sequence[int]) -> dict[int, Index]:
        """Return the batches ``dims``, the last one of which counts fastest."""
        e = self._e
        found: dict[int, Index] = {}
        outer = math.prod(self._extents[dim] for dim in dims)
        for dim in reversed(dims):
            extent = self._extents[dim]
            outer //= extent
            found[dim] = number if outer == 1 else e.modulo(number, extent)
            number = e.floordiv(number, extent)
        return found

    def _where(self, bounds: Sequence[tuple[Index, int]], body: Callable[[], object]) -> None:
        """Emit ``body``, where numbers are below their bounds."""
        if not bounds:
            body()
            return
        self._e.when(self._e.all([self._e.compare("ult", *each) for each in bounds]), body)

    def _sum(
        self,
        number: int,
        tiles: Value,
        first: tuple[Index, Index],
        block: Index,
        counts: tuple[int, int],
    ) -> None:
        """Emit sums over heads of a block of queries, of the tensor ``number``."""
        e, s = self._e, self._s
        across, within = counts
        heads = math.prod(self._extents[dim] for dim in self._own)
        members = math.prod(self._extents[dim] for dim in self._summed)
        several = e.minimum(e.sub(members, first[1]), within) if members % within else within
        adds = None if members == within else e.compare("ne", first[1], 0)
        squares = -(-self._keys // s.lanes)
        vectors = s.together * squares * s.queries
        cut = split(squares, 2 * vectors * VECTOR_NS)
        rows = e.mul(block, s.queries)

        def chunk(start: Index, end: Index, _: list[Value]) -> list[Value]:
            keys = (e.mul(start, s.lanes), e.mul(end, s.lanes))

            def head(place: Index, _: list[Value]) -> list[Value]:
                batch = e.add(first[0], place)
                env = {**self._digits(batch, self._own), self._row: rows}
                found = Tiles(tiles, e.mul(place, within * self._keys), several, adds)
                there = [(batch, heads)] * bool(heads % across)
                self._where(there, lambda: self._write(number, found, env, keys))
                return []

            return e.loop((0, across, 1), [], head)

        e.chunks(cut, squares, [], chunk)

    def _write_kept(self, env: Env, number: int, array: Value) -> None:
        """Emit the rows of a tensor for a block of queries of one head, given the elements of it."""
        self._write(number, Tiles(array, 0, 1, None), env, (0, self._keys))

    def _write(self, number: int, tiles: Tiles, env: Env, keys: tuple[Index, Index]) -> None:
        """Emit the rows of a tensor for a block of queries, of some keys, which are squares."""
        e, s = self._e, self._s
        out = self._buffers[self._m.kept[number]]
        first = env[self._row]

        def square(key: Index, _: list[Value]) -> list[Value]:
            for c in range(s.vectors):
                rows = transpose(self._sums_of_square(tiles, key, c * s.lanes))
                for lane, value in enumerate(rows):
                    row = e.add(first, c * s.lanes + lane)
                    there = [(row, self._queries)] * bool(self._queries % s.queries)
                    here = {**env, self._row: row, self._column: key}
                    self._where(there, partial(self._put, value, out, here, tiles.adds))
            return []

        e.loop((*keys, s.lanes), [], square)

    def _sums_of_square(self, tiles: Tiles, key: Index, query: int) -> list[Value]:
        """Emit sums over heads: a vector of queries for each of as many keys."""
        e, lanes = self._e, self._s.lanes
        places = [e.add(key, lane) for lane in range(lanes)]
        if self._keys % lanes:  # nothing lies behind the last key
            places = [e.minimum(place, self._keys - 1) for place in places]

        def one(head: Index) -> list[Value]:
            start = e.add(tiles.first, e.mul(head, self._keys))
            return [load(e, lanes, tiles.memory, [e.add(start, place), query]) for place in places]

        def more(head: Index, sums: list[Value]) -> list[Value]:
            terms = zip(sums, one(head), strict=True)
            return [arith.AddFOp(*each).result for each in terms]

        return e.loop((1, tiles.heads, 1), one(0), more)

    def _put(self, value: Value, out: Buffer, env: Env, adds: Value | None) -> None:
        """Emit a store of elements of a row, added to what there is where ``adds``."""
        e, lanes = self._e, self._s.lanes
        element = out.value.type.element_type
        live: Index = lanes
        if self._keys % lanes:
            live = e.minimum(e.sub(self._keys, env[self._column]), lanes)
        indices = [e.index(each) for each in out.indices(e, env)]
        mask = e.mask(lanes, live)
        if adds is not None:
            old = self._old(out, indices, mask)
            value = arith.AddFOp(value, arith.SelectOp(adds, old, self._splat(0.0)).result).result
        value = e.cast(value, element)
        if mask is None:
            store(e, value, out.value, indices)
        else:
            vector.MaskedStoreOp(out.value, indices, mask, value)

    def _old(self, out: Buffer, indices: list[Value], mask: Value | None) -> Value:
        e, lanes = self._e, self._s.lanes
        if mask is None:
            return load(e, lanes, out.value, indices)
        type_ = e.vector_type(lanes, self._element)
        return vector.MaskedLoadOp(type_, out.value, indices, mask, self._splat(0.0)).result


def _rows(buffer: Value, first: Value, size: int) -> Value:
    """Emit ``size`` rows of ``buffer``, from ``first`` on."""
    anywhere = ir.ShapedType.get_dynamic_stride_or_offset()
    columns = buffer.type.shape[1]
    layout = ir.StridedLayoutAttr.get(anywhere, [columns, 1])
    part = ir.MemRefType.get([size, columns], buffer.type.element_type, layout)
    return memref.SubViewOp(part, buffer, [first], [], [], [anywhere, 0], [size, columns], [1, 1]).result


def _in_memory(type_: Type) -> Type:
    """Return the type of elements that are kept: a condition is a byte."""
    return ir.IntegerType.get_signless(8) if str(type_) == "i1" else type_
