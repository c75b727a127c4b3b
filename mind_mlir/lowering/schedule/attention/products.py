"""The products of an attention: scores, and outputs of what these became."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.marked import unscaled
from mind_mlir.lowering.schedule.contraction.kernels.calls import Matrix
from mind_mlir.lowering.schedule.linalg_view.buffers import Lanes
from mind_mlir.lowering.schedule.scalars.values import ScalarValues
from mind_mlir.mlir.bindings import Value, arith

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.block import QueryBlock
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, OutputBuffers, ScoreBuffers, Scratch
    from mind_mlir.lowering.schedule.attention.program import ScorePass
    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.lowering.schedule.scalars.graph import Scalar


class AttentionProducts:
    """Emits the products of blocks of queries, and the last pass over scores, before outputs.

    Attributes:
        terms: How many terms of a product are one step.
    """

    terms = 1

    def __init__(self, nest: AttentionNest) -> None:
        self._e = nest.e
        self._nest = nest

    def pack_queries(self, block: QueryBlock, score: ScoreBuffers) -> None:
        """Emit what brings queries into columns, scaled if they are."""
        nest, queries = self._nest, score.queries
        kernel = nest.kernels.queries(score)
        target = block.own["queries", score.number]
        stride = queries.strides.get(nest.row if kernel.transposes else score.dim, 1)
        self._pack(kernel, queries, block.env, target, (block.live, score.depth, stride))
        if score.scale is not None:
            self._scale(score.scale, target, score.depth)

    def _pack(
        self, kernel: PackKernel, source: Buffer, env: Env, target: Value, bounds: tuple[Index, Index, int]
    ) -> None:
        """Emit a packing of what begins at ``env``."""
        self._nest.calls.pack(kernel, (source.base, source.at(self._e, env)), target, bounds)

    def _scale(self, scale: Scalar, queries: Value, depth: int) -> None:
        """Emit what scales so many rows of packed queries."""
        nest, count = self._nest, self._nest.lanes.count
        single = Lanes(self._e, count, 1, nest.element)

        def row(index: Index, _: list[Value]) -> list[Value]:
            for c in range(nest.lanes.vectors):
                at, elements = [index, c * count], ScalarValues(single, nest.row)
                elements.know(unscaled(scale), [single.load(queries, at)])
                single.store(elements.vectors(scale)[0], queries, at)
            return []

        self._e.loop((0, depth, 1), [], row)

    def score(self, block: QueryBlock, score: ScoreBuffers, first: Index, count: Index) -> None:
        """Emit the scores of ``count`` keys, from key ``first`` on."""
        nest, keys, size = self._nest, score.keys, self._nest.schedule.queries
        start = keys.at(self._e, {**block.env, nest.column: first})
        left = Matrix(
            keys.base, start, keys.strides.get(nest.column, 0), self.terms * keys.strides.get(score.dim, 0)
        )
        out = Matrix.of(block.own["array", score.number], size)
        nest.calls.product(
            [nest.kernels.score(dot) for dot in nest.kernels.dots],
            (count, size),
            nest.calls.blocks(score.depth // self.terms),
            (left, Matrix.of(block.own["queries", score.number], size, size), out),
            info=self._score_info(block.own, score),
            adds=self._e.flag(False),
        )

    def last_pass(self, block: QueryBlock, stage: ScorePass, count: Index) -> None:
        """Emit the last pass over so many keys, and what outputs need to know of it."""
        block.run(stage, (0, count))

    def output(
        self, block: QueryBlock, output: OutputBuffers, array: int, keys: tuple[Index, Index], adds: Value
    ) -> None:
        """Emit the product of what scores became, an array, and values: of the first key and so many.

        An output with rows for queries is added to what there is where ``adds``.
        """
        e, nest, (first, count) = self._e, self._nest, keys
        rows, steps = (block.live, count) if output.by_row else (count, block.live)
        steps = self._steps(block, output, steps)
        if not output.by_row:  # keys have what earlier blocks of queries added; where keys are skipped, zeros
            is_later = e.flag(True) if nest.schedule.skips else e.compare("ne", block.env[nest.row], 0)
            adds = is_later if nest.schedule.skips else arith.OrIOp(adds, is_later).result
        blocks = nest.calls.blocks(steps)
        env = {**block.env, nest.column: first}
        left, right = self._factors(block, output, array, env)
        if output.rounds:
            room = block.own["output", output.number]
            out = Matrix.of(room, room.type.shape[1])
        else:
            out = Matrix(output.out.base, output.out.at(e, env), output.out.strides.get(output.rows, 0))
        nest.calls.product(
            [nest.kernels.output(output, dot) for dot in nest.kernels.dots],
            (rows, output.width),
            blocks,
            (left, right, out),
            adds,
            self._output_info(block.own, output),
        )

    # What is otherwise where factors are words.

    def prepare(self, env: Env, own: Scratch) -> None:
        """Emit what is done once for all queries of a head."""

    def _steps(self, block: QueryBlock, output: OutputBuffers, terms: Index) -> Index:
        """Return in how many steps so many terms of an output are summed; emits what these take."""
        return terms

    def _factors(
        self, block: QueryBlock, output: OutputBuffers, array: int, env: Env
    ) -> tuple[Matrix, Matrix]:
        """Emit where the factors of an output lie: those of an array, and values."""
        nest, size, values = self._nest, self._nest.schedule.queries, output.values
        left = Matrix.of(block.own["array", array], *((1, size) if output.by_row else (size, 1)))
        panel = nest.schedule.out_vectors * nest.lanes.count
        return left, Matrix(values.base, values.at(self._e, env), panel, values.strides.get(output.summed, 0))

    def _score_info(self, own: Scratch, score: ScoreBuffers) -> tuple[Value, Value] | None:
        """Emit the packing info of both factors of scores, if they have any."""
        return None

    def _output_info(self, own: Scratch, output: OutputBuffers) -> tuple[Value, Value] | None:
        """Emit the same of an output."""
        return None
