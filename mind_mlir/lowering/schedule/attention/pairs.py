"""Emits the products of an attention of bf16 by an instruction that multiplies and adds two terms at a time.

Keys are read where they lie, two features at a time. Queries and values are packed in words of two terms, the
values of a head once for all of its queries that a chunk computes, and the last pass over the scores puts two
keys in a word. The least magnitude in each of the factors is stored, as `contraction.kernels.vnni` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.choice import (
    pair_output_kernel,
    pair_query_pack,
    pair_score_kernel,
    value_pack,
)
from mind_mlir.lowering.schedule.attention.memory import (
    Buffer,
    Place,
    Scratch,
    base_of,
    load,
    start_of,
    store,
)
from mind_mlir.lowering.schedule.attention.passes import TERMS, Passes
from mind_mlir.lowering.schedule.contraction.kernels.vnni import BF16, NO_MAGNITUDE, WIDENED, are_normal
from mind_mlir.mlir.bindings import Value, arith, ir, memref, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.program import Stage
    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env


class Pairs(Passes):
    """Emits one attention, in pairs of terms if its schedule says so."""

    def _prepare(self, env: Env, own: Scratch, needed: Value | None) -> None:
        """Emit what is done once for all queries of a head, where it is ``needed``: always if that is None.

        Values are packed, and the least magnitude among the keys is stored.
        """
        if needed is not None:
            self._e.when(needed, lambda: self._prepare(env, own, None))
            return
        for number, (_, keys) in enumerate(self._m.scores):
            self._reduce_keys(self._buffers[keys], env, number, own)
        for number, output in enumerate(self._p.outputs):
            if output.by_row:
                self._pack_values(number, self._column, self._keys, env, own)

    def _pack_values(self, number: int, rows: int, count: Index, env: Env, own: Scratch) -> None:
        """Emit the packing of the values of an output, of which so many ``rows`` begin at ``env``."""
        buffer = self._buffers[self._m.values[number]]
        bounds = (self._extents[self._widths[number]], count, buffer.strides.get(rows, 0))
        self._pack_words(value_pack(self._s), buffer, env, own.values[number], bounds, self._words_of(number))

    def _reduce_keys(self, keys: Buffer, env: Env, number: int, own: Scratch) -> None:
        """Emit the least magnitude, less one, of the keys of a head."""
        e = self._e
        lanes, depth = 2 * self._s.lanes, self._depths[number]
        halves = e.vector_type(lanes, ir.IntegerType.get_signless(16))
        columns = range(0, self._extents[depth], lanes)

        def key(index: Index, carried: list[Value]) -> list[Value]:
            found = []
            for column, least in zip(columns, carried, strict=True):
                indices = keys.indices(e, {**env, self._column: index, depth: column})
                live = self._extents[depth] - column
                value = (
                    load(e, lanes, keys.value, indices)
                    if live >= lanes
                    else self._load_masked(keys.value, indices, 0, live, lanes)
                )
                found.append(self._least(arith.BitcastOp(halves, value).result, least))
            return found

        results = e.loop((0, self._keys, 1), [e.number(halves, -1)] * len(columns), key)
        for other in results[1:]:
            results[0] = arith.MinUIOp(results[0], other).result
        self._store_info(self._reduced(results[0]), own.least, number)

    def _least(self, halves: Value, least: Value) -> Value:
        """Emit the lesser of magnitudes less one: zero less one is the greatest number of all."""
        e, type_ = self._e, halves.type
        magnitude = arith.AndIOp(halves, e.number(type_, 0x7FFF))
        less = arith.AddIOp(magnitude.result, e.number(type_, -1))
        return arith.MinUIOp(less.result, least).result

    def _reduced(self, least: Value) -> Value:
        kind = ir.Attribute.parse("#vector.kind<minui>")
        lowest = vector.ReductionOp(least.type.element_type, kind, least).result
        return arith.ExtUIOp(self._word, lowest).result

    def _store_info(self, info: Value, memory: Value, row: int) -> None:
        memref.StoreOp(info, memory, [self._e.index(row), self._e.index(0)])

    def _load_info(self, memory: Value, row: int) -> Value:
        return memref.LoadOp(memory, [self._e.index(row), self._e.index(0)]).result

    def _pack_words(
        self,
        kernel: PackKernel,
        source: Buffer,
        env: Env,
        target: Value,
        bounds: tuple[Index, Index, int],
        words: int,
    ) -> None:
        """Emit a packing into panels of so many words; the last row of ``target`` has the packing info."""
        e = self._e
        rows, columns = target.type.shape
        self._store_info(e.number(self._word, NO_MAGNITUDE), target, rows - 1)
        first = start_of(target)
        places: dict[str, Index] = {
            "source_first": source.at(e, env),
            "target_first": first,
            "panel": words * columns,
            "info_first": e.add(first, (rows - 1) * columns),
        }
        self._pack(kernel, source.base, target, bounds, **places)

    def _pack_queries(self, queries: Buffer, env: Env, live: Index, number: int, own: Scratch) -> None:
        if not self._s.pairs:
            super()._pack_queries(queries, env, live, number, own)
            return
        depth = self._depths[number]
        kernel = pair_query_pack(self._s, transposed=queries.access[-1].dim != self._row)
        stride = queries.strides.get(self._row if kernel.transposes else depth, 1)
        target = own.queries[number]
        bounds = (live, self._extents[depth], stride)
        self._pack_words(kernel, queries, env, target, bounds, target.type.shape[0] - 1)

    def _score(self, place: Place, number: int, first: Index, count: Index) -> None:
        if not self._s.pairs:
            super()._score(place, number, first, count)
            return
        e, s = self._e, self._s
        keys, queries = self._buffers[self._m.scores[number][1]], place.own.queries[number]
        target = place.own.arrays[number]
        numbers = self._numbers(
            s.rows,
            (count, s.queries),
            self._blocks(self._extents[self._depths[number]] // 2, s.kc // 2),
            left=(keys.at(e, {**place.env, self._column: first}), *self._steps(keys, self._column), 2),
            right=(0, s.queries, s.queries),
            out=(start_of(target), s.queries),
        )
        buffers = [keys.base, base_of(queries), base_of(target)]
        info = self._load_info(queries, queries.type.shape[0] - 1), self._load_info(place.own.least, number)
        adds = e.flag(False)
        self._either(info, lambda dot: self._call(pair_score_kernel(s, dot), buffers, numbers, adds))

    def _either(self, info: tuple[Value, Value], call: Callable[[str], None]) -> None:
        """Emit a call by the instruction where both factors allow it, else one that widens them."""
        self._e.when(are_normal(*info), lambda: call(BF16), lambda: call(WIDENED))

    def _in_pairs(
        self, place: Place, stage: Stage, stored: Mapping[Node, int], count: Index
    ) -> dict[Node, Value]:
        """Emit the last pass: terms in words; return the packing info of each of them.

        Words of two keys take half of the rows of an array; a key without another one has zero beside it.
        Two queries lie side by side in memory of their own. Elements that are results stay as they are.
        """
        e, s = self._e, self._s
        nodes = [node for _, node in stage.stores]
        terms = [node for node in nodes if node in self._p.terms]
        by_row = {term for term, output in zip(self._p.terms, self._p.outputs, strict=True) if output.by_row}
        arrays = dict(zip(nodes, (array for array, _ in stage.stores), strict=True))
        place.elements.compute(nodes, stored.keys(), self._column)
        halves = e.vector_type(2 * s.lanes, ir.IntegerType.get_signless(16))
        is_even = self._keys % 2 == 0  # then so is `count`

        def several(start: Index, carried: list[Value]) -> list[Value]:
            end = e.minimum(e.add(start, TERMS), count)
            self._emit_tiles(place, nodes, stored, start, e.sub(end, start))

            def one(local: Index) -> dict[Node, list[Value]]:
                env = {**place.env, self._column: local}
                memory, tile = (place.own, place.live), e.sub(local, start)
                elements = place.elements.inside(env, lambda each: self._read(memory, each, env, tile))
                self._recall(place, elements, stored, local)
                return {node: elements.vectors(node) for node in nodes}

            def two(local: Index, inside: list[Value]) -> list[Value]:
                after = e.add(local, 1)
                there = after if is_even else e.minimum(after, e.sub(count, 1))
                both = one(local), one(there)
                self._store_elements(place, arrays, (local, there), both)
                found = []
                for term, before in zip(terms, inside, strict=True):
                    array, least = arrays[term], before
                    low, high = (
                        [arith.BitcastOp(self._words, each).result for each in every[term]] for every in both
                    )
                    for c in range(s.vectors):
                        word = self._word_of(low[c], self._there(high[c], after, count, is_even))
                        least = self._least(vector.BitCastOp(halves, word).result, least)
                        if term in by_row:
                            kept = arith.BitcastOp(e.vector_type(s.lanes, self._element), word).result
                            store(e, kept, place.own.arrays[array], [e.floordiv(local, 2), c * s.lanes])
                        if array in place.own.halves:
                            self._store_half(low[c], place, array, local, c)
                            self._store_half(high[c], place, array, after, c)
                    found.append(least)
                return found

            return e.loop((start, end, 2), carried, two)

        info = e.loop((0, count, TERMS), [e.number(halves, -1)] * len(terms), several)
        return {term: self._reduced(info) for term, info in zip(terms, info, strict=True)}

    def _store_elements(
        self,
        place: Place,
        arrays: Mapping[Node, int],
        keys: tuple[Index, Index],
        both: tuple[Mapping[Node, list[Value]], Mapping[Node, list[Value]]],
    ) -> None:
        """Emit stores of the elements of two keys that are results."""
        for node in self._p.kept:
            if node not in arrays:
                continue  # an earlier pass has stored it
            for key, every in zip(keys, both, strict=True):
                for c, value in enumerate(every[node]):
                    at = [key, c * self._s.lanes]
                    store(self._e, self._e.cast(value, self._element), place.own.arrays[arrays[node]], at)

    def _store_half(self, bits: Value, place: Place, array: int, row: Index, c: int) -> None:
        """Emit a store of the upper halves of f32; what belongs to no query is zero."""
        e, lanes = self._e, self._s.lanes
        if self._queries % self._s.queries:
            mask = e.mask(lanes, e.index(self._live_from(place, c * lanes)))
            assert mask is not None
            bits = arith.SelectOp(mask, bits, e.number(self._words, 0)).result
        upper = arith.ShRUIOp(bits, e.number(self._words, 16)).result
        half = arith.TruncIOp(e.vector_type(lanes, ir.IntegerType.get_signless(16)), upper).result
        store(e, half, place.own.halves[array], [row, c * lanes])

    def _live_from(self, place: Place, first: int) -> Index:
        """Return how many queries there are from number ``first`` of a block on; none if that is behind."""
        e = self._e
        return e.sub(e.maximum(place.live, first), first)

    def _there(self, high: Value, after: Index, count: Index, is_even: bool) -> Value:
        """Emit ``high``, of key ``after``, or zero if there is no such key."""
        if is_even:
            return high
        e = self._e
        is_there = e.compare("ult", after, count)
        return arith.SelectOp(is_there, high, e.number(high.type, 0)).result

    def _word_of(self, low: Value, high: Value) -> Value:
        """Emit words of two numbers of bf16, each the upper half of an f32."""
        e, type_ = self._e, low.type
        upper = arith.AndIOp(high, e.number(type_, -(1 << 16))).result
        lower = arith.ShRUIOp(low, e.number(type_, 16)).result
        return arith.OrIOp(upper, lower).result

    def _pair_product(self, place: Place, number: int, array: int, count: Index, info: Value) -> None:
        """Emit the product of the words of ``array`` with values; ``info`` is their packing info."""
        e, s, own = self._e, self._s, place.own
        out, width = self._buffers[self._m.outputs[number]], self._widths[number]
        sums, values = own.outputs.get(number), own.values[number]
        by_row = self._p.outputs[number].by_row
        columns = s.out_vectors * s.lanes
        if by_row:
            left, env = own.arrays[array], place.env
            terms, rows, row, step = count, place.live, 1, s.queries
        else:
            self._pack_values(number, self._row, place.live, place.env, own)
            left, env = own.halves[array], {**place.env, self._column: 0}
            terms, rows, row, step = place.live, count, s.queries, 2
        blocks = self._blocks(e.floordiv(e.add(terms, 1), 2), s.kc // 2)
        summed = self._row if by_row else self._column
        numbers = self._numbers(
            s.out_rows,
            (rows, self._extents[width]),
            blocks,
            left=(start_of(left), row, step),
            right=(start_of(values), self._words_of(number) * columns, columns),
            out=(0, sums.type.shape[1]) if sums is not None else (out.at(e, env), out.strides.get(summed, 0)),
        )
        target = out.base if sums is None else base_of(sums)
        buffers = [base_of(left), base_of(values), target]
        adds = self._adds(place, number, e.flag(False))
        info = info, self._load_info(values, values.type.shape[0] - 1)
        self._either(
            info,
            lambda dot: self._call(pair_output_kernel(s, dot, by_row=by_row), buffers, numbers, adds),
        )
