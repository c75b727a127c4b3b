"""The products of an attention: scores, and outputs of what these became."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.marked import is_constant
from mind_mlir.lowering.schedule.contraction.kernels.calls import Matrix
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Operation, Value, arith

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.memory import Scratch
    from mind_mlir.lowering.schedule.attention.nest import (
        AttentionNest,
        OutputOperands,
        QueryBlock,
        ScoreOperands,
    )
    from mind_mlir.lowering.schedule.attention.words import Words
    from mind_mlir.lowering.schedule.contraction.kernels.calls import KernelCalls
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env


class AttentionProducts:
    """Emits the products of a block of queries.

    Args:
        words: What packs factors in words of two terms, if they are such.
    """

    def __init__(self, nest: AttentionNest, calls: KernelCalls, words: Words | None) -> None:
        self._e = nest.e
        self._nest = nest
        self._calls = calls
        self._words = words

    def pack_queries(self, score: ScoreOperands, env: Env, live: Index, own: Scratch) -> None:
        """Emit what brings queries into columns, scaled if they are."""
        queries, row = score.queries, self._nest.row
        kernel = self._nest.kernels.queries(transposed=queries.access[-1].dim != row)
        target = own["queries", score.number]
        bounds = live, score.depth, queries.strides.get(row if kernel.transposes else score.dim, 1)
        if self._words is None:
            self._calls.pack(kernel, (queries.base, queries.at(self._e, env)), target, bounds)
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
        nest, keys, queries = self._nest, score.keys, block.own["queries", score.number]
        column, size = nest.column, nest.schedule.queries
        steps = score.depth // 2 if self._words else score.depth
        pair = 2 if self._words else 1
        start = keys.at(self._e, {**block.env, column: first})
        left = Matrix(keys.base, start, keys.strides.get(column, 0), pair * keys.strides.get(score.dim, 0))
        out = Matrix.of(block.own["array", score.number], size)
        self._calls.product(
            [nest.kernels.score(dot) for dot in nest.kernels.dots],
            (count, size),
            self._calls.blocks(steps),
            (left, Matrix.of(queries, size, size), out),
            info=None if self._words is None else self._words.info_of_score(score, block.own),
            adds=self._e.flag(False),
        )

    def output(
        self,
        block: QueryBlock,
        output: OutputOperands,
        array: int,
        keys: tuple[Index, Index],
        adds: Value,
        info: Value | None,
    ) -> None:
        """Emit the product of what scores became and values.

        Args:
            block: The queries.
            output: The operands.
            array: The array of the thread that has the left factor.
            keys: The first key, and how many there are.
            adds: Whether an output with rows for queries is added to what there is.
            info: The packing info of the array, if it has words.
        """
        e, nest, own = self._e, self._nest, block.own
        queries = nest.schedule.queries
        first, count = keys
        rows, steps = (block.live, count) if output.by_row else (count, block.live)
        outer, inner = (1, queries) if output.by_row else (queries, 1)
        env = {**block.env, nest.column: first}
        if self._words is not None:
            if not output.by_row:
                self._words.pack_values(output, block.live, block.env, own)
            steps = e.floordiv(e.add(steps, 1), 2)
        adds = self._adds(block, output, adds)
        blocks = self._calls.blocks(steps)
        if self._words is not None:
            left, right = self._words.factors(block, output, array)
        else:
            left = Matrix.of(own["array", array], outer, inner)
            values, panel = output.values, nest.schedule.out_vectors * nest.lanes.count
            right = Matrix(values.base, values.at(e, env), panel, values.strides.get(output.summed, 0))
        if output.rounds:
            room = own["output", output.number]
            out = Matrix.of(room, room.type.shape[1])
        else:
            out = Matrix(output.out.base, output.out.at(e, env), output.out.strides.get(output.rows, 0))
        both = None
        if self._words is not None and info is not None:
            both = info, self._words.info_of(own["values", output.number])
        self._calls.product(
            [nest.kernels.output(output.width, dot, by_row=output.by_row) for dot in nest.kernels.dots],
            (rows, output.width),
            blocks,
            (left, right, out),
            adds,
            both,
        )

    def _adds(self, block: QueryBlock, output: OutputOperands, adds: Value) -> Value:
        """Emit whether a product is added to what there is of an output: where ``adds``, or for keys."""
        e = self._e
        if output.by_row:
            return adds
        if self._nest.schedule.skips:  # all are zero at first
            return e.flag(True)
        return arith.OrIOp(adds, e.compare("ne", block.env[self._nest.row], 0)).result
