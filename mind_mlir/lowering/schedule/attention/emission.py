"""Emits attention on memory: a loop over blocks of queries, around calls of kernels and passes over scores.

Each block of queries is computed by one chunk, in an order that depends on shapes and the target alone.
Scores, and what becomes of them, are memory of a thread: ``[key][query]``, a block of queries wide.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.heads import HeadsTogether, Squares, Tiles
from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE
from mind_mlir.lowering.schedule.attention.memory import Rooms
from mind_mlir.lowering.schedule.attention.nest import AttentionNest, QueryBlock
from mind_mlir.lowering.schedule.attention.online import KeyBlocks
from mind_mlir.lowering.schedule.attention.outputs import HiddenKeys, OutputRows
from mind_mlir.lowering.schedule.attention.passes import Inputs, Keys, ScorePasses
from mind_mlir.lowering.schedule.attention.products import AttentionProducts
from mind_mlir.lowering.schedule.attention.words import Words
from mind_mlir.lowering.schedule.contraction.kernels.calls import KernelCalls
from mind_mlir.lowering.schedule.contraction.kernels.library import Library
from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.linalg_view.view import Env, Views
from mind_mlir.lowering.schedule.scalars.values import ScalarValues
from mind_mlir.mlir.bindings import Module, Value, arith, func, ir, linalg
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.memory import Scratch
    from mind_mlir.lowering.schedule.scalars.graph import Scalar


def emit_attentions(module: Module) -> None:
    """Replace the marked attentions of a bufferized ``module`` by loops around calls of kernels."""
    library = Library(module)
    views = Views()
    for function in list(module.body.operations):
        if not isinstance(function, func.FuncOp) or not function.regions[0].blocks:
            continue
        marked = [op for op in find_all(function, linalg.GenericOp) if ATTENTION_ATTRIBUTE in op.attributes]
        emitter = Emitter(function) if marked else None
        for op in marked:
            assert emitter is not None
            with ir.InsertionPoint(op), op.location:
                nest = AttentionNest(op.operation, views.accesses(op.operation), emitter, library)
                AttentionEmission(nest).emit()
            op.operation.erase()


class AttentionEmission:
    """Emits one attention at the insertion point, from parts that each emit one thing."""

    def __init__(self, nest: AttentionNest) -> None:
        s = nest.schedule
        calls = KernelCalls(nest.e, nest.library, nest.element, s.kc // 2 if s.pairs else s.kc)
        self._e = nest.e
        self._nest = nest
        self._rooms = Rooms(nest)
        self._inputs = Inputs(nest, calls)
        self._passes = ScorePasses(nest, self._inputs)
        self._words = Words(nest, calls, self._passes) if s.pairs else None
        self._products = AttentionProducts(nest, calls, self._words)
        self._hidden = HiddenKeys(nest)
        self._rows = OutputRows(nest, self._hidden)
        self._squares = Squares(nest)

    def emit(self) -> None:
        """Emit the loop over blocks of queries, or over heads where outputs have rows for keys."""
        e, nest, s = self._e, self._nest, self._nest.schedule
        if s.together:
            HeadsTogether(nest, self._rooms, self._squares).emit(self._prepared_block)
            return
        by_row = all(output.by_row for output in nest.outputs)
        blocks = -(-nest.queries // s.queries)
        counts = [blocks if by_row else 1, *reversed(nest.extents[: nest.row])]
        total = math.prod(counts)
        count = -(-total // s.units)
        whole = self._rooms.own({}, parallel=False) if count == 1 else None

        def one(first: Index, number: Index, own: Scratch) -> list[Value]:
            digits = e.digits(number, counts)
            env = dict(zip(reversed(range(nest.row)), digits[1:], strict=True))
            if self._words is not None:
                self._words.prepare(env, own, self._is_new(number, first, digits[0]))
            if by_row:
                return self._block(env, digits[0], own, None)
            finite = None
            if s.skips:
                self._hidden.clear(env)
                finite = self._hidden.all_finite(env, nest.column, 0, nest.keys)
            return e.loop((0, blocks, 1), [], lambda block, _: self._block(env, block, own, finite))

        def chunk(first: Index, end: Index, _: list[Value]) -> list[Value]:
            own = whole or self._rooms.own({}, parallel=True)
            return e.loop((first, end, 1), [], lambda number, _: one(first, number, own))

        e.chunks(Split(s.units, count, "", s.brief), total, [], chunk)

    def _is_new(self, number: Index, first: Index, block: Index) -> Value | None:
        """Emit whether a chunk that starts with block ``first`` is at another head; None if it always is."""
        if isinstance(block, int):
            return None
        e = self._e
        return arith.OrIOp(e.compare("eq", number, first), e.compare("eq", block, 0)).result

    def _prepared_block(self, env: Env, block: Index, own: Scratch) -> None:
        """Emit a block of queries of one of several heads that are computed side by side."""
        if self._words is not None:
            is_first = None if isinstance(block, int) else self._e.compare("eq", block, 0)
            self._words.prepare(env, own, is_first)
        self._block(env, block, own, None)

    def _block(self, env: Env, number: Index, own: Scratch, finite: Value | None) -> list[Value]:
        """Emit the block of queries of a number; ``finite`` says whether all keys are, if that matters."""
        e, nest, s = self._e, self._nest, self._nest.schedule
        first = e.mul(number, s.queries)
        live = e.minimum(e.sub(nest.queries, first), s.queries) if nest.is_ragged else s.queries
        here = {**env, nest.row: first}
        for score in nest.scores:
            self._products.pack_queries(score, here, live, own)
        limit = self._hidden.limit(first, live)
        if finite is not None:
            finite = arith.AndIOp(finite, self._hidden.all_finite(here, nest.row, first, live)).result
            limit = arith.SelectOp(finite, e.index(limit), e.index(nest.keys)).result
        elements = ScalarValues(nest.lanes, nest.row).inside(
            here, lambda node: self._inputs.read(own, live, node, here, 0)
        )
        block = QueryBlock(here, live, own, elements)
        if s.keys < nest.keys:
            KeyBlocks(nest, self._passes, self._products, self._rows).run(block, limit)
        else:
            self._whole(block, limit)
        return []

    def _whole(self, block: QueryBlock, limit: Index) -> None:
        """Emit all keys before ``limit`` at once."""
        nest, program = self._nest, self._nest.program
        for score in nest.scores:
            self._products.score(block, score, 0, limit)
        stored = {node: array for array, node in enumerate(program.scores)}
        info: dict[Scalar, Value] = {}
        for stage in program.stages:
            if self._words is not None and stage is program.stages[-1]:
                info = self._words.last_pass(block, stage, Keys(0, limit, stored))
            else:
                self._passes.run(block, stage, Keys(0, limit, stored))
            kept = {array for array, _ in stage.stores}
            stored = {node: array for node, array in stored.items() if array not in kept}
            stored |= {node: array for array, node in stage.stores}
        for output in nest.outputs:
            adds = self._e.flag(False)
            self._products.output(block, output, stored[output.term], (0, limit), adds, info.get(output.term))
            self._rows.finish(block, output, limit)
        if not nest.schedule.together:
            for out, node in zip(nest.kept, program.kept, strict=True):
                tiles = Tiles(block.own["array", stored[node]])
                self._squares.write(out, tiles, block.env, (0, nest.keys))
