"""The products of an attention: scores, and outputs of what these became."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.marked import is_constant
from mind_mlir.lowering.schedule.contraction.kernels.library import Matrix
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Operation, Value, arith

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.nest import (
        AttentionNest,
        OutputOperands,
        QueryBlock,
        ScoreOperands,
    )
    from mind_mlir.lowering.schedule.attention.words import Words
    from mind_mlir.lowering.schedule.emission.emitter import Index


class AttentionProducts:
    """Emits the products of a block of queries.

    Args:
        words: What packs factors in words of two terms, if they are such.
    """

    def __init__(self, nest: AttentionNest, words: Words | None) -> None:
        self._e = nest.e
        self._nest = nest
        self._words = words

    def pack_queries(self, block: QueryBlock, score: ScoreOperands) -> None:
        """Emit what brings queries into columns, scaled if they are."""
        nest, queries, env = self._nest, score.queries, block.env
        kernel = nest.kernels.queries(transposed=queries.access[-1].dim != nest.row)
        target = block.own["queries", score.number]
        stride = queries.strides.get(nest.row if kernel.transposes else score.dim, 1)
        bounds = block.live, score.depth, stride
        if self._words is None:
            nest.calls.pack(kernel, (queries.base, queries.at(self._e, env)), target, bounds)
        else:
            self._words.pack(kernel, queries, env, target, bounds, target.type.shape[0] - 1)
        if score.scale is not None:
            self._scale(score.scale, target, score.depth)

    def _scale(self, scale: Operation, queries: Value, depth: int) -> None:
        """Emit what scales so many rows of packed queries."""
        lanes = self._nest.lanes
        type_ = lanes.type(lanes.element)

        def row(index: Index, _: list[Value]) -> list[Value]:
            for c in range(lanes.vectors):
                at = [index, c * lanes.count]
                value = lanes.load(queries, at)
                operands = [
                    self._e.splat(type_, each.owner.attributes["value"]) if is_constant(each) else value
                    for each in scale.operands
                ]
                lanes.store(repeat(scale, operands, (lanes.count,))[0], queries, at)
            return []

        self._e.loop((0, depth, 1), [], row)

    def score(self, block: QueryBlock, score: ScoreOperands, first: Index, count: Index) -> None:
        """Emit the scores of ``count`` keys, from key ``first`` on."""
        nest, words, keys, size = self._nest, self._words, score.keys, self._nest.schedule.queries
        pair = 1 if words is None else 2
        start = keys.at(self._e, {**block.env, nest.column: first})
        left = Matrix(
            keys.base, start, keys.strides.get(nest.column, 0), pair * keys.strides.get(score.dim, 0)
        )
        out = Matrix.of(block.own["array", score.number], size)
        nest.calls.product(
            [nest.kernels.score(dot) for dot in nest.kernels.dots],
            (count, size),
            nest.calls.blocks(score.depth // pair),
            (left, Matrix.of(block.own["queries", score.number], size, size), out),
            info=None if words is None else words.info_of_score(score, block.own),
            adds=self._e.flag(False),
        )

    def output(
        self,
        block: QueryBlock,
        output: OutputOperands,
        array: int,
        keys: tuple[Index, Index],
        adds: Value,
        info: Value | None = None,
    ) -> None:
        """Emit the product of what scores became, an array, and values: of the first key and so many.

        An output with rows for queries is added to what there is where ``adds``. ``info`` is the packing info
        of the array, if it has words.
        """
        e, nest, own, words = self._e, self._nest, block.own, self._words
        first, count = keys
        rows, steps = (block.live, count) if output.by_row else (count, block.live)
        env = {**block.env, nest.column: first}
        if words is not None:
            if not output.by_row:
                words.pack_values(output, block.live, block.env, own)
            steps = e.floordiv(e.add(steps, 1), 2)
        if not output.by_row:  # keys have what earlier blocks of queries added; where keys are skipped, zeros
            is_later = e.flag(True) if nest.schedule.skips else e.compare("ne", block.env[nest.row], 0)
            adds = is_later if nest.schedule.skips else arith.OrIOp(adds, is_later).result
        blocks = nest.calls.blocks(steps)
        if words is not None:
            left, right = words.factors(block, output, array)
        else:
            size, values = nest.schedule.queries, output.values
            left = Matrix.of(own["array", array], *((1, size) if output.by_row else (size, 1)))
            panel = nest.schedule.out_vectors * nest.lanes.count
            right = Matrix(values.base, values.at(e, env), panel, values.strides.get(output.summed, 0))
        if output.rounds:
            room = own["output", output.number]
            out = Matrix.of(room, room.type.shape[1])
        else:
            out = Matrix(output.out.base, output.out.at(e, env), output.out.strides.get(output.rows, 0))
        nest.calls.product(
            [nest.kernels.output(output.width, dot, by_row=output.by_row) for dot in nest.kernels.dots],
            (rows, output.width),
            blocks,
            (left, right, out),
            adds,
            None if words is None or info is None else (info, words.info_of(own["values", output.number])),
        )
