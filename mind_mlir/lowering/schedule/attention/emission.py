"""Emits attention on memory: a loop over blocks of queries, around calls of kernels and passes over scores.

Each block of queries is computed by one chunk, in an order that depends on shapes and the target alone.
Scores, and what becomes of them, are memory of a thread: ``[key][query]``, a block of queries wide.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import ATTENTION_ATTRIBUTE
from mind_mlir.lowering.kernels.library import Library, marked_operations
from mind_mlir.lowering.schedule.attention.block import QueryBlock
from mind_mlir.lowering.schedule.attention.heads import HeadsTogether, Tiles, write_elements
from mind_mlir.lowering.schedule.attention.nest import AttentionNest
from mind_mlir.lowering.schedule.attention.outputs import all_finite, clear, finish, shrink, visible_keys
from mind_mlir.lowering.schedule.attention.words import WordBlock
from mind_mlir.lowering.schedule.folds.exponentials import OnlineExponentials
from mind_mlir.lowering.schedule.linalg_view.view import Env, Views
from mind_mlir.mlir.bindings import Module, Value, arith, ir

if TYPE_CHECKING:
    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.attention.nest import Scratch


def emit_attentions(module: Module) -> None:
    """Replace the marked attentions of a bufferized ``module`` by loops around calls of kernels."""
    library = Library(module)
    views = Views()
    for emitter, marked in marked_operations(module, ATTENTION_ATTRIBUTE):
        for op in marked:
            with ir.InsertionPoint(op), op.location:
                AttentionEmission(AttentionNest(op, views.accesses(op), emitter, library)).emit()
            op.erase()


class AttentionEmission:
    """Emits one attention at the insertion point, from parts that each emit one thing."""

    def __init__(self, nest: AttentionNest) -> None:
        self._e = nest.e
        self._nest = nest
        self._block_type = WordBlock if nest.schedule.pairs else QueryBlock

    def emit(self) -> None:
        """Emit the loop over blocks of queries, or over heads where outputs have rows for keys."""
        e, nest = self._e, self._nest
        if nest.schedule.together:
            HeadsTogether(nest).emit(self._next_block)
            return
        by_row = nest.program.by_row
        counts = [nest.blocks if by_row else 1, *reversed(nest.extents[: nest.row])]

        def one(first: Index, number: Index, own: Scratch) -> None:
            digits = e.digits(number, counts)
            env = dict(zip(reversed(range(nest.row)), digits[1:], strict=True))
            if by_row:
                self._next_block(env, digits[0], own, (number, first))
                return
            self._block_type(nest, env, nest.queries, own).prepare()
            finite = None
            if nest.schedule.skips:
                clear(nest, env)
                finite = all_finite(nest, env, nest.column, 0, nest.keys)
            e.each((0, nest.blocks, 1), lambda block: self._block(env, block, own, finite))

        nest.chunks(math.prod(counts), {})(one)

    def _next_block(self, env: Env, block: Index, own: Scratch, *same: tuple[Index, Index]) -> None:
        """Emit a block of queries, and before the first one, or where ``same`` are, what its head needs."""
        prepare = self._block_type(self._nest, env, self._nest.queries, own).prepare
        if isinstance(block, int) or not self._nest.schedule.pairs:  # it is the only one, or needs nothing
            prepare()
        else:
            equal = [self._e.compare("eq", *each) for each in (*same, (block, 0))]
            self._e.when(reduce(lambda left, right: arith.OrIOp(left, right).result, equal), prepare)
        self._block(env, block, own)

    def _block(self, env: Env, number: Index, own: Scratch, finite: Value | None = None) -> None:
        """Emit the block of queries of a number; ``finite`` says whether all keys are, if that matters."""
        e, nest, s = self._e, self._nest, self._nest.schedule
        first = e.mul(number, s.queries)
        live = e.minimum(e.sub(nest.queries, first), s.queries) if nest.is_ragged else s.queries
        block = self._block_type(nest, {**env, nest.row: first}, live, own)
        for score in nest.scores:
            block.pack_queries(score)
        limit = visible_keys(nest, first, live)
        if finite is not None:
            finite = arith.AndIOp(finite, all_finite(nest, block.env, nest.row, first, live)).result
            limit = arith.SelectOp(finite, e.index(limit), e.index(nest.keys)).result
        if s.keys < nest.keys:
            self._by_blocks(block, limit)
        else:
            self._whole(block, limit)

    def _whole(self, block: QueryBlock, limit: Index) -> None:
        """Emit all keys before ``limit`` at once."""
        nest, places = self._nest, self._nest.program.places
        for score in nest.scores:
            block.score(score, 0, limit)
        *stages, last = nest.program.stages
        for stage in stages:
            block.run(stage, (0, limit))
        block.last_pass(last, limit)
        for output in nest.outputs:
            array = places[output.program.term]
            block.output(output, array, (0, limit), self._e.flag(False))
            finish(block, output, limit)
        if not nest.schedule.together:
            for out, node in zip(nest.kept, nest.program.kept, strict=True):
                write_elements(nest, out, Tiles(block.own["array", places[node]]), block.env, (0, nest.keys))

    def _by_blocks(self, block: QueryBlock, limit: Index) -> None:
        """Emit all keys before ``limit``, some at a time, as a stable softmax allows.

        Sums, and the output, are scaled when a row's maximum grows.
        """
        nest, lanes, own = self._nest, self._nest.lanes, block.own
        begin, following, *_ = nest.program.stages
        fold = OnlineExponentials(nest.e, lanes.type(begin.folds[0].type))
        for at in self._vectors():
            lanes.store(fold.begin()[0], own["greatest", 0], at)
            lanes.store(lanes.splat(0.0), own["sums", 0], at)
        bounds = (0, limit, nest.schedule.keys)
        nest.e.each(bounds, lambda first: self._some_keys(block, fold, first, limit))
        for stage, name in ((begin, "greatest"), (following, "sums")):
            block.elements.know(stage.folds[0], lanes.row(own[name, 0], 0))
        finish(block, nest.outputs[0], limit)

    def _some_keys(self, block: QueryBlock, fold: OnlineExponentials, first: Index, limit: Index) -> None:
        """Emit a block of keys, from key ``first`` on."""
        nest, lanes, own = self._nest, self._nest.lanes, block.own
        (score,), (output,), (begin, following, *_) = nest.scores, nest.outputs, nest.program.stages
        here = block.within()
        keys = first, nest.e.minimum(nest.e.sub(limit, first), nest.schedule.keys)
        here.score(score, *keys)
        maxima = []
        (row,) = begin.folds
        for at, value in zip(self._vectors(), here.run(begin, keys), strict=True):
            before = lanes.load(own["greatest", 0], at)
            greatest = nest.program.fold(row).combine(before, value)
            lanes.store(greatest, own["greatest", 0], at)
            maxima.append(fold.subtracted(greatest))
            lanes.store(fold.factor(before, maxima[-1]), own["row", 0], at)
        here.elements.know(row, maxima)
        for at, value in zip(self._vectors(), here.run(following, keys), strict=True):
            so_far, factor = (lanes.load(own[name, 0], at) for name in ("sums", "row"))
            total = arith.AddFOp(fold.scaled(so_far, factor), value).result
            lanes.store(total, own["sums", 0], at)
        later = nest.e.compare("ne", first, 0)
        shrink(here, output, later)
        here.output(output, 0, keys, later)

    def _vectors(self) -> list[list[Index]]:
        """Return where vectors of queries are in a room of one row."""
        return [[0, c * self._nest.lanes.count] for c in range(self._nest.lanes.vectors)]
