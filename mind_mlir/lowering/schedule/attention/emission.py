"""Emits attention on memory: a loop over blocks of queries, around calls of kernels and passes over scores.

Each block of queries is computed by one chunk, in an order that depends on shapes and the target alone.
Scores, and what becomes of them, are memory of a thread: ``[key][query]``, a block of queries wide.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE
from mind_mlir.lowering.schedule.attention.memory import Elements, Place, Scratch, Shared
from mind_mlir.lowering.schedule.attention.written import Written
from mind_mlir.lowering.schedule.contraction.kernels.library import Library
from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.linalg_view.view import Env, Views
from mind_mlir.mlir.bindings import Module, Value, arith, func, ir, linalg
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.nodes import Node


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
                _Emission(op.operation, views.accesses(op.operation), emitter, library).emit()
            op.operation.erase()


class _Emission(Written):
    """Emits one attention at the insertion point."""

    def emit(self) -> None:
        """Emit the loop over blocks of queries, or over heads where outputs have rows for keys."""
        e, s = self._e, self._s
        if s.together:
            self._side_by_side(lambda env, block, own: self._block(env, block, own, None))
            return
        blocks = -(-self._queries // s.queries)
        by_row = all(output.by_row for output in self._p.outputs)
        counts = [blocks if by_row else 1, *reversed(self._extents[: self._row])]
        total = math.prod(counts)
        count = -(-total // s.units)
        scratch = self._scratch(Shared(), parallel=False) if count == 1 else None

        def one(first: Index, number: Index, own: Scratch) -> list[Value]:
            digits = e.digits(number, counts)
            env = dict(zip(reversed(range(self._row)), digits[1:], strict=True))
            if s.pairs:
                self._prepare(env, own, self._is_new(number, first, digits[0]))
            if by_row:
                self._block(env, digits[0], own, None)
                return []
            finite = None
            if s.skips:
                self._clear(env)
                finite = self._finite(env, self._column, (0, self._keys))
            return e.loop((0, blocks, 1), [], lambda block, _: self._block(env, block, own, finite))

        def chunk(first: Index, end: Index, _: list[Value]) -> list[Value]:
            own = scratch or self._scratch(Shared(), parallel=True)
            return e.loop((first, end, 1), [], lambda number, _: one(first, number, own))

        e.chunks(Split(s.units, count, "", s.brief), total, [], chunk)

    def _is_new(self, number: Index, first: Index, block: Index) -> Value | None:
        """Emit whether a chunk that starts with block ``first`` is at another head; None if it always is."""
        if isinstance(block, int):
            return None
        e = self._e
        return arith.OrIOp(e.compare("eq", number, first), e.compare("eq", block, 0)).result

    def _block(self, env: Env, block: Index, own: Scratch, finite: Value | None) -> list[Value]:
        e, s = self._e, self._s
        first = e.mul(block, s.queries)
        ragged = self._queries % s.queries
        live = e.minimum(e.sub(self._queries, first), s.queries) if ragged else s.queries
        here = {**env, self._row: first}
        for number, (queries, _) in enumerate(self._m.scores):
            self._pack_queries(self._buffers[queries], here, live, number, own)
        limit = self._limit(first, live)
        if finite is not None:
            finite = arith.AndIOp(finite, self._finite(here, self._row, (first, live))).result
            limit = arith.SelectOp(finite, e.index(limit), e.index(self._keys)).result
        elements = Elements(e, s.lanes, s.vectors, self._row).inside(
            here, lambda node: self._read((own, live), node, here, 0)
        )
        place = Place(here, live, elements, own)
        if s.keys < self._keys:
            self._online(place, limit)
        else:
            self._whole(place, limit)
        return []

    def _whole(self, place: Place, limit: Index) -> None:
        """Emit all keys at once."""
        e, s = self._e, self._s
        for number in range(len(self._m.scores)):
            self._score(place, number, 0, limit)
        stored = dict(zip(self._p.scores, range(len(self._p.scores)), strict=True))
        info: dict[Node, Value] | None = None
        for stage in self._p.stages:
            if s.pairs and stage is self._p.stages[-1]:
                info = self._in_pairs(place, stage, stored, limit)
            else:
                self._stage(place, stage, stored, (0, limit))
            kept = {array for array, _ in stage.stores}
            stored = {node: array for node, array in stored.items() if array not in kept}
            stored |= {node: array for array, node in stage.stores}
        for number, term in enumerate(self._p.terms):
            if info is not None:
                self._pair_product(place, number, stored[term], limit, info[term])
            else:
                self._product(place, number, stored[term], (0, limit), e.flag(False))
            self._finish(place, number, limit)
        if not s.together:
            for number, node in enumerate(self._p.kept):
                self._write_kept(place.env, number, place.own.arrays[stored[node]])
