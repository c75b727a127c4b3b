"""Factors of bf16 in words of two terms, for an instruction that multiplies and adds both.

Keys are read where they lie, two features at a time. Queries and values are packed in words, the values of a
head once for all of its queries that a chunk computes, and the last pass over the scores puts two keys in a
word. The least magnitude in each of the factors is stored, as `kernels.vnni` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.library import KernelBuffer
from mind_mlir.lowering.kernels.tile_operations import SIDE
from mind_mlir.lowering.kernels.vnni import NO_MAGNITUDE
from mind_mlir.lowering.schedule.attention.block import QueryBlock
from mind_mlir.lowering.schedule.attention.nest import TERMS
from mind_mlir.mlir.bindings import Value, arith, ir, memref, vector
from mind_mlir.mlir.memory import metadata_of

if TYPE_CHECKING:
    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.kernels.library import PackBounds
    from mind_mlir.lowering.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.attention.block import At
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, OutputBuffers, ScoreBuffers, Scratch
    from mind_mlir.lowering.schedule.attention.program import ScorePass
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.lowering.schedule.scalars.graph import Scalar
    from mind_mlir.lowering.schedule.scalars.values import ScalarValues


class WordBlock(QueryBlock):
    """A block of queries whose products are of words."""

    terms = 2

    def __init__(
        self, nest: AttentionNest, env: Env, live: Index, own: Scratch, known: ScalarValues | None = None
    ) -> None:
        super().__init__(nest, env, live, own, known)
        self._half = ir.IntegerType.get_signless(16)
        self._word = ir.IntegerType.get_signless(32)
        self._halves = nest.e.vector_type(2 * nest.lanes.count, self._half)
        self._words = nest.lanes.type(self._word)
        self._is_even = nest.keys % 2 == 0  # then so is the number of keys in each block of them
        #: The packing info of terms of the outputs of a self.
        self._info: dict[Scalar, Value] = {}

    def prepare(self) -> None:
        """Emit what is done once for all queries of a head.

        Values are packed, and the least magnitude among the keys is stored.
        """
        for score in self.nest.scores:
            self._reduce_keys(score)
        for output in self.nest.outputs:
            if output.by_row:
                self._pack_values(output, self.nest.keys)

    def _pack_values(self, output: OutputBuffers, count: Index) -> None:
        """Emit the packing of the values of an output, of which so many rows begin at the self."""
        bounds = output.width, count, output.values.strides.get(output.summed, 0)
        room, words = self.own["values", output.number], self.nest.words(output)
        self._pack(self.nest.kernels.values(), output.values, room, bounds, words)

    def _pack(
        self, kernel: PackKernel, source: Buffer, target: Value, bounds: PackBounds, words: int | None = None
    ) -> None:
        """Emit a packing into panels of so many words, or one; the last row has the packing info."""
        e = self._e
        rows, columns = target.type.shape
        self._store_info(e.number(self._word, NO_MAGNITUDE), target, rows - 1)
        start, first = source.at(e, self.env), metadata_of(target)[1]
        places: dict[str, Index] = {
            "target_first": first,
            "panel": (words or rows - 1) * columns,
            "info_first": e.add(first, (rows - 1) * columns),
        }
        self.nest.calls.pack(kernel, KernelBuffer(source.base, start), target, bounds, **places)

    def _reduce_keys(self, score: ScoreBuffers) -> None:
        """Emit the least magnitude, less one, of the keys of a head."""
        e, lanes, keys = self._e, self.nest.lanes, score.keys
        size = 2 * lanes.count
        columns = range(0, score.depth, size)

        def key(index: Index, carried: list[Value]) -> list[Value]:
            found = []
            for column, least in zip(columns, carried, strict=True):
                indices = keys.indices(e, {**self.env, self.nest.column: index, score.dim: column})
                value = lanes.load(keys.value, indices, score.depth - column, size)
                found.append(self._least(arith.BitcastOp(self._halves, value).result, least))
            return found

        results = e.loop((0, self.nest.keys, 1), [e.number(self._halves, -1)] * len(columns), key)
        for other in results[1:]:
            results[0] = arith.MinUIOp(results[0], other).result
        self._store_info(self._reduced(results[0]), self.own["least", 0], score.number)

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

    def _store_info(self, info: Value, room: Value, row: int) -> None:
        memref.StoreOp(info, room, [self._e.index(row), self._e.index(0)])

    def _info_of(self, room: Value) -> Value:
        """Emit the packing info of a factor."""
        return self.nest.lanes.element_at(room, [room.type.shape[0] - 1, 0])

    def _score_info(self, score: ScoreBuffers) -> tuple[Value, Value]:
        queries = self._info_of(self.own["queries", score.number])
        return queries, self.nest.lanes.element_at(self.own["least", 0], [score.number, 0])

    def _output_info(self, output: OutputBuffers) -> tuple[Value, Value]:
        return self._info[output.program.term], self._info_of(self.own["values", output.number])

    def _steps(self, output: OutputBuffers, terms: Index) -> Index:
        if not output.by_row:
            self._pack_values(output, self.live)
        words = self._e.floordiv(self._e.add(terms, 1), 2)
        if not self.nest.schedule.tiles:
            return words
        return self._e.mul(self._e.floordiv(self._e.add(words, SIDE - 1), SIDE), SIDE)

    def _factors(self, output: OutputBuffers, array: int, key: Index) -> tuple[KernelBuffer, KernelBuffer]:
        own, queries, values = self.own, self.nest.schedule.queries, self.own["values", output.number]
        if self.nest.schedule.tiles:
            left = KernelBuffer.of(own["squares", array], row=SIDE, step=queries)
        elif output.by_row:
            left = KernelBuffer.of(own["array", array], row=1, step=queries)
        else:
            left = KernelBuffer.of(own["halves", array], row=queries, step=2)
        columns = values.type.shape[1]
        return left, KernelBuffer.of(values, panel=self.nest.words(output) * columns, step=columns)

    def last_pass(self, stage: ScorePass, count: Index) -> None:
        """Emit the last pass over so many keys: terms in words, and the packing info of each of them.

        Words of two keys take half of the rows of an array; a key without another one has zero beside it.
        Two queries lie side by side in memory of their own. Elements that are results stay as they are.
        """
        e, nest = self._e, self.nest
        arrays = stage.stores
        terms = [node for node in arrays if node in nest.program.terms]
        self.elements.compute(arrays, stage.before, nest.column)

        def two(at: At, local: Index, inside: list[Value]) -> list[Value]:
            after = e.add(local, 1)
            there = after if self._is_even else e.minimum(after, e.sub(count, 1))
            both = []
            for key in (local, there):
                elements = at(key)
                both.append({node: elements.vectors(node) for node in arrays})
            for node in nest.program.kept:
                if node in arrays:  # else an earlier pass has stored it
                    for key, every in zip((local, there), both, strict=True):
                        nest.lanes.store_row(every[node], self.own["array", arrays[node]], key)
            following = []
            for term, least in zip(terms, inside, strict=True):
                low, high = (
                    [arith.BitcastOp(self._words, each).result for each in every[term]] for every in both
                )
                bits = list(zip(low, high, strict=True))
                following.append(self._paired(term, (local, after, count), bits, least))
            return following

        def some(start: Index, carried: list[Value]) -> list[Value]:
            end = e.minimum(e.add(start, TERMS), count)
            return self.each(stage, 0, (start, end, 2), carried, two)

        info = e.loop((0, count, TERMS), [e.number(self._halves, -1)] * len(terms), some)
        self._info = {term: self._reduced(least) for term, least in zip(terms, info, strict=True)}
        for place in dict.fromkeys(arrays[term] for term in terms) if nest.schedule.tiles else ():
            self._pack_squares(place, e.floordiv(e.add(count, 1), 2))

    def _pack_squares(self, array: int, words: Index) -> None:
        """Emit what brings so many words of each query side by side."""
        nest, own, queries = self.nest, self.own, self.nest.schedule.queries
        bounds = self.live, words, queries
        nest.calls.pack(
            nest.kernels.squares(), KernelBuffer.of(own["array", array]), own["squares", array], bounds
        )

    def _paired(
        self, term: Scalar, keys: tuple[Index, Index, Index], both: list[tuple[Value, Value]], least: Value
    ) -> Value:
        """Emit words of a term, ``both`` of two keys; return the lesser of ``least`` and their magnitudes.

        Of ``keys``, the last one is how many there are.
        """
        e, lanes = self._e, self.nest.lanes
        first, second, count = keys
        array = self.nest.program.places[term]
        by_row = any(output.by_row and output.program.term is term for output in self.nest.outputs)
        for c, (low, high) in enumerate(both):
            at, there = c * lanes.count, high
            if not self._is_even:  # else there is a second key always
                is_there = e.compare("ult", second, count)
                there = arith.SelectOp(is_there, high, e.number(self._words, 0)).result
            word = self._word_of(low, there)
            least = self._least(vector.BitCastOp(self._halves, word).result, least)
            if by_row:
                kept = arith.BitcastOp(lanes.type(lanes.element), word).result
                lanes.store(kept, self.own["array", array], [e.floordiv(first, 2), at])
            if ("halves", array) in self.own:
                for bits, key in ((low, first), (high, second)):
                    self._store_half(bits, array, key, at)
        return least

    def _store_half(self, bits: Value, array: int, key: Index, first: int) -> None:
        """Emit a store of the upper halves of f32; what belongs to no query is zero."""
        e, lanes = self._e, self.nest.lanes
        if self.nest.is_ragged:
            mask = e.mask(lanes.count, e.index(e.sub(e.maximum(self.live, first), first)))
            assert mask is not None
            bits = arith.SelectOp(mask, bits, e.number(self._words, 0)).result
        upper = arith.ShRUIOp(bits, e.number(self._words, 16)).result
        half = arith.TruncIOp(lanes.type(self._half), upper).result
        lanes.store(half, self.own["halves", array], [key, first])

    def _word_of(self, low: Value, high: Value) -> Value:
        """Emit words of two numbers of bf16, each the upper half of an f32."""
        upper = arith.AndIOp(high, self._e.number(self._words, -(1 << 16))).result
        lower = arith.ShRUIOp(low, self._e.number(self._words, 16)).result
        return arith.OrIOp(upper, lower).result
