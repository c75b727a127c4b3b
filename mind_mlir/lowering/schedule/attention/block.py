"""A block of queries: passes over its scores, elements that they read, some in tiles, and its products."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.emission.emitter import EXACT_ATTRIBUTE, PLAIN_ATTRIBUTE
from mind_mlir.lowering.kernels.library import KernelBuffer
from mind_mlir.lowering.schedule.attention.marked import unscaled
from mind_mlir.lowering.schedule.attention.nest import TERMS
from mind_mlir.lowering.schedule.folds.reductions import Accumulators
from mind_mlir.lowering.schedule.linalg_view.buffers import Lanes
from mind_mlir.lowering.schedule.scalars.graph import ordered
from mind_mlir.lowering.schedule.scalars.values import ScalarValues
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.emission.emitter import Bounds, Index
    from mind_mlir.lowering.kernels.library import PackBounds
    from mind_mlir.lowering.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, OutputBuffers, ScoreBuffers, Scratch
    from mind_mlir.lowering.schedule.attention.program import ScorePass
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.lowering.schedule.scalars.graph import Scalar

    #: Returns the elements of a key, given its number.
    At: TypeAlias = Callable[[Index], ScalarValues]
    #: Emits something of what is carried for one of these keys.
    KeyBody: TypeAlias = Callable[[At, Index, list[Value]], list[Value]]


class QueryBlock:
    """A block of queries of one head.

    Args:
        known: What is known of their elements, if anything.

    Attributes:
        terms: How many terms of a product are one step.
        nest: The attention.
        env: The dimensions that are known; of the queries, the first one.
        live: How many queries there are.
        own: Memory.
        elements: What is known of them.
    """

    terms = 1

    def __init__(
        self, nest: AttentionNest, env: Env, live: Index, own: Scratch, known: ScalarValues | None = None
    ) -> None:
        self._e, self.nest = nest.e, nest
        self.env, self.live, self.own = env, live, own
        self.elements = known or ScalarValues(nest.lanes, nest.row)
        self.elements = self._inside(env, 0)

    def within(self) -> QueryBlock:
        """Return the same block, of which more may become known."""
        return type(self)(self.nest, self.env, self.live, self.own, self.elements)

    def run(self, stage: ScorePass, keys: tuple[Index, Index]) -> list[Value]:
        """Emit a pass over some keys, given the first one and how many there are.

        What it reduces is then known of the block, and returned.
        """
        e, lanes, count = self._e, self.nest.lanes, keys[1]
        if not stage.roots:
            return []
        self.elements.compute(stage.roots, stage.before, self.nest.column)
        folds = [row for row in stage.folds for _ in range(lanes.vectors)]
        combiners = [self.nest.program.fold(row) for row in folds]
        neutral = [fold.nothing(e, lanes.type(row.type)) for fold, row in zip(combiners, folds, strict=True)]
        folded = Accumulators(e, combiners, neutral)

        def one(at: At, local: Index, carried: list[Value]) -> list[Value]:
            elements = at(local)
            terms = [value for row in stage.folds for value in elements.vectors(row.operands[0])]
            kept = [(array, elements.vectors(node)) for node, array in stage.stores.items()]
            for array, values in kept:
                lanes.store_row(values, self.own["array", array], local)
            return folded.join(carried, terms)

        def some(start: Index, carried: list[Value]) -> list[Value]:
            end = e.minimum(e.add(start, TERMS), count)
            return folded.join(carried, self.each(stage, keys[0], (start, end, 1), neutral, one))

        sums = any(row.combiner == "arith.addf" for row in stage.folds)
        if sums or self._tiled(stage):
            results = e.loop((0, count, TERMS), neutral, some)
        else:
            results = self.each(stage, keys[0], (0, count, 1), neutral, one)
        for number, row in enumerate(stage.folds):
            self.elements.know(row, results[number * lanes.vectors : (number + 1) * lanes.vectors])
        return results

    def each(
        self, stage: ScorePass, first: Index, bounds: Bounds, carried: list[Value], body: KeyBody
    ) -> list[Value]:
        """Emit a loop over some keys behind ``first``, not more than a tile has where ``stage`` needs any.

        The body is given what returns the elements of a key, and the number of one.
        """
        e, start, end = self._e, *bounds[:2]
        env = {**self.env, self.nest.column: e.add(first, start)}
        for node in self._tiled(stage):
            self._emit_tile(node, env, e.sub(end, start))

        def at(local: Index) -> ScalarValues:
            env = {**self.env, self.nest.column: e.add(first, local)}
            elements = self._inside(env, e.sub(local, start))
            for node, array in stage.before.items():
                elements.know(node, self._stored(node, array, local))
            return elements

        return e.loop(bounds, carried, lambda local, inside: body(at, local, inside))

    def _stored(self, node: Scalar, array: int, local: Index) -> list[Value]:
        """Emit what an array has of a key."""
        found = self.nest.lanes.row(self.own["array", array], local)
        mark = self._marks(node)
        for each in found if mark else ():
            each.owner.attributes[mark] = ir.UnitAttr.get()
        return [self._e.cast(each, node.type) for each in found]

    def _marks(self, node: Scalar) -> str:
        """Return what is known of the numbers of bf16 that ``node`` is, or is a sum of products of."""
        if str(self.nest.stored) == "bf16" and node.kind == "product":
            return PLAIN_ATTRIBUTE
        is_short = node.name == "arith.extf" and str(node.operands[0].type) == "bf16"
        return EXACT_ATTRIBUTE if is_short else ""

    # Elements of inputs.

    def _inside(self, env: Env, tile: Index) -> ScalarValues:
        """Return what is known at a key, the one number ``tile`` of those that were transposed."""
        return self.elements.inside(env, lambda node: self._read(node, env, tile))

    def _read(self, node: Scalar, env: Env, tile: Index) -> Value | list[Value]:
        e, nest, lanes, buffer = self._e, self.nest, self.nest.lanes, self.nest.inputs[node]
        if nest.row not in node.axes:
            return lanes.element_at(buffer.value, buffer.indices(e, env))
        if node in nest.tiled:
            if nest.column not in node.axes:  # the same for all keys, and read before the first of them
                tile = 0
                self._emit_tile(node, env, 1)
            found = lanes.row(self.own["tiles", node.number], tile)
            if str(node.type) != "i1":
                return found
            nothing = e.number(found[0].type, 0)  # conditions are bytes in memory
            return [arith.CmpIOp(arith.CmpIPredicate.ne, each, nothing).result for each in found]
        *outer, last = buffer.indices(e, env)
        found = []
        for first in range(0, lanes.vectors * lanes.count, lanes.count):
            place, live = e.add(last, first), e.sub(self.live, first) if nest.is_ragged else None
            found.append(lanes.load(buffer.value, [*outer, place], live))
        return found

    def _tiled(self, stage: ScorePass) -> list[Scalar]:
        """Return the inputs that are transposed some keys at a time, and that a pass needs."""
        needed = ordered(stage.roots, stop=stage.before, folds=False)
        return [each for each in self.nest.tiled if self.nest.column in each.axes and each in needed]

    def _emit_tile(self, node: Scalar, env: Env, count: Index) -> None:
        """Emit the tile of an input, for ``count`` keys from the one of ``env`` on."""
        nest, buffer = self.nest, self.nest.inputs[node]
        kernel = nest.kernels.tile(node)
        step = buffer.strides.get(nest.row if kernel.transposes else nest.column, 0)
        source = KernelBuffer(buffer.base, buffer.at(self._e, env))
        nest.calls.pack(kernel, source, self.own["tiles", node.number], (self.live, count, step))

    # Products.

    def pack_queries(self, score: ScoreBuffers) -> None:
        """Emit what brings queries into columns, scaled if they are."""
        nest, queries = self.nest, score.queries
        kernel = nest.kernels.queries(score)
        target = self.own["queries", score.number]
        stride = queries.strides.get(nest.row if kernel.transposes else score.dim, 1)
        self._pack(kernel, queries, target, (self.live, score.depth, stride))
        if score.scale is not None:
            self._scale(score.scale, target, score.depth)

    def _scale(self, scale: Scalar, queries: Value, depth: int) -> None:
        """Emit what scales so many rows of packed queries."""
        nest, count = self.nest, self.nest.lanes.count
        single = Lanes(self._e, count, 1, nest.element)

        def row(index: Index) -> None:
            for c in range(nest.lanes.vectors):
                at, elements = [index, c * count], ScalarValues(single, nest.row)
                elements.know(unscaled(scale), [single.load(queries, at)])
                single.store(elements.vectors(scale)[0], queries, at)

        self._e.each((0, depth, 1), row)

    def score(self, score: ScoreBuffers, first: Index, count: Index) -> None:
        """Emit the scores of ``count`` keys, from key ``first`` on."""
        nest, keys, size = self.nest, score.keys, self.nest.schedule.queries
        start = keys.at(self._e, {**self.env, nest.column: first})
        step = self.terms * keys.strides.get(score.dim, 0)
        left = KernelBuffer(keys.base, start, row=keys.strides.get(nest.column, 0), step=step)
        out = KernelBuffer.of(self.own["array", score.number], row=size)
        right = KernelBuffer.of(self.own["queries", score.number], panel=size, step=size)
        kernels, steps = [nest.kernels.score(dot) for dot in nest.kernels.dots], score.depth // self.terms
        blocks, info = nest.calls.blocks(steps), self._score_info(score)
        nest.calls.product(kernels, (count, size), blocks, (left, right, out), self._e.flag(False), info)

    def output(self, output: OutputBuffers, array: int, keys: tuple[Index, Index], adds: Value) -> None:
        """Emit the product of what scores became, an array, and values: of the first key and so many.

        An output with rows for queries is added to what there is where ``adds``.
        """
        e, nest, (first, count) = self._e, self.nest, keys
        rows, steps = (self.live, count) if output.by_row else (count, self.live)
        steps = self._steps(output, steps)
        if not output.by_row:  # keys have what earlier blocks of queries added; where keys are skipped, zeros
            is_later = e.flag(True) if nest.schedule.skips else e.compare("ne", self.env[nest.row], 0)
            adds = is_later if nest.schedule.skips else arith.OrIOp(adds, is_later).result
        blocks = nest.calls.blocks(steps)
        left, right = self._factors(output, array, first)
        if output.rounds:
            room = self.own["output", output.number]
            out = KernelBuffer.of(room, row=room.type.shape[1])
        else:
            start = output.out.at(e, {**self.env, nest.column: first})
            out = KernelBuffer(output.out.base, start, row=output.out.strides.get(output.rows, 0))
        kernels = [nest.kernels.output(output, dot) for dot in nest.kernels.dots]
        info = self._output_info(output)
        nest.calls.product(kernels, (rows, output.width), blocks, (left, right, out), adds, info)

    # What is otherwise where factors are words.

    def prepare(self) -> None:
        """Emit what is done once for all queries of a head."""

    def last_pass(self, stage: ScorePass, count: Index) -> None:
        """Emit the last pass over so many keys, and what outputs need to know of it."""
        self.run(stage, (0, count))

    def _pack(self, kernel: PackKernel, source: Buffer, target: Value, bounds: PackBounds) -> None:
        """Emit a packing of what begins at the block."""
        self.nest.calls.pack(kernel, KernelBuffer(source.base, source.at(self._e, self.env)), target, bounds)

    def _steps(self, output: OutputBuffers, terms: Index) -> Index:
        """Return in how many steps so many terms of an output are summed; emits what these take."""
        return terms

    def _factors(self, output: OutputBuffers, array: int, key: Index) -> tuple[KernelBuffer, KernelBuffer]:
        """Emit where the factors of an output lie: those of an array, and values, from ``key`` on."""
        nest, size, values = self.nest, self.nest.schedule.queries, output.values
        row, step = (1, size) if output.by_row else (size, 1)
        left = KernelBuffer.of(self.own["array", array], row=row, step=step)
        start = values.at(self._e, {**self.env, nest.column: key})
        panel = nest.schedule.out_vectors * nest.lanes.count
        steps = values.strides.get(output.summed, 0)
        return left, KernelBuffer(values.base, start, panel=panel, step=steps)

    def _score_info(self, score: ScoreBuffers) -> tuple[Value, Value] | None:
        """Emit the packing info of both factors of scores, if they have any."""
        return None

    def _output_info(self, output: OutputBuffers) -> tuple[Value, Value] | None:
        """Emit the same of an output."""
        return None
