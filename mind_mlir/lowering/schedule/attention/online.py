"""Emits what follows the products of an attention: outputs are scaled when they are complete.

Where rows are long, some keys are computed at a time, and outputs are scaled whenever a maximum grows.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.elements import element, load, store
from mind_mlir.lowering.schedule.attention.skipping import SIDE_BY_SIDE, Skipping
from mind_mlir.lowering.schedule.fusion.groups.reductions import combined
from mind_mlir.lowering.schedule.linalg_view.body import repeat
from mind_mlir.mlir.bindings import arith
from mind_mlir.mlir.bindings import math as math_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.memory import Place
    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.program import Scaling
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.mlir.bindings import Value

_INFINITY = float("inf")


class Online(Skipping):
    """Emits the keys of one attention some at a time, and the ends of outputs."""

    def _finish(self, place: Place, number: int, limit: Index) -> None:
        """Emit what is done to a complete output: it is scaled, and takes part in what was skipped."""
        scaling = self._p.scalings[number]
        if scaling is not None:
            place.elements.compute([scaling.factor], (), self._column)
            for c, value in enumerate(place.elements.vectors(scaling.factor)):
                store(self._e, value, place.own.row, [0, c * self._s.lanes])
        skips = self._s.skips and not self._p.needs_finite
        if scaling is not None or skips or self._rounds(number):
            self._rows(place, number, scaling, limit)

    def _rows(self, place: Place, number: int, scaling: Scaling | None, limit: Index) -> None:
        """Emit a loop over the rows of an output that scales them, some vectors at a time."""
        lanes = self._s.lanes
        vectors = -(-self._extents[self._widths[number]] // lanes)
        for start in range(0, vectors, SIDE_BY_SIDE):
            columns = [c * lanes for c in range(start, min(start + SIDE_BY_SIDE, vectors))]
            adds = self._s.skips and not self._p.needs_finite
            skipped = self._skipped(place, number, columns, limit) if adds else []
            self._scale(place, number, scaling, columns, skipped)

    def _scale(
        self,
        place: Place,
        number: int,
        scaling: Scaling | None,
        columns: Sequence[int],
        skipped: Sequence[Value],
    ) -> None:
        e, s = self._e, self._s
        out = self._buffers[self._m.outputs[number]]
        type_ = e.vector_type(s.lanes, self._element)
        first = place.env[self._row]

        def row(local: Index, _: list[Value]) -> list[Value]:
            factor = None
            if scaling is not None:
                factor = e.broadcast(type_, element(e, place.own.row, [0, local]))
            for c, column in enumerate(columns):
                env = {**place.env, self._row: e.add(first, local), self._widths[number]: column}
                value = self._load_sums(place, env, local, column, number)
                if skipped:
                    value = arith.AddFOp(value, skipped[c]).result
                if scaling is not None and factor is not None:
                    operands = [
                        value if operand is scaling.term else factor for operand in scaling.node.operands
                    ]
                    value = repeat(scaling.node.op, operands, (s.lanes,))[0]
                self._store_columns(value, out, env, column, number)
            return []

        e.loop((0, place.live, 1), [], row)

    def _online(self, place: Place, limit: Index) -> None:
        """Emit some keys at a time: sums, and the output, are scaled when a row's maximum grows."""
        e, s = self._e, self._s
        own = place.own
        greatest, total = (stage.rows[0] for stage in self._p.stages[:2])
        for c in range(s.vectors):
            store(e, self._neutral(greatest), own.greatest, [0, c * s.lanes])
            store(e, self._splat(0.0), own.sums, [0, c * s.lanes])

        def keys(first: Index, _: list[Value]) -> list[Value]:
            here = dataclasses.replace(place, elements=place.elements.inside({}))
            count = e.minimum(e.sub(limit, first), s.keys)
            self._score(here, 0, first, count)
            stored = {self._p.scores[0]: 0}
            found = self._stage(here, self._p.stages[0], stored, (first, count))
            self._grow(here, greatest, found)
            stored = {node: array for array, node in self._p.stages[0].stores} or stored
            sums = self._stage(here, self._p.stages[1], stored, (first, count))
            for c, value in enumerate(sums):
                at = [0, c * s.lanes]
                scaled = arith.MulFOp(load(e, s.lanes, own.sums, at), load(e, s.lanes, own.row, at)).result
                store(e, arith.AddFOp(scaled, value).result, own.sums, at)
            later = arith.CmpIOp(arith.CmpIPredicate.ne, e.index(first), e.index(0)).result
            self._shrink(here, later)
            self._product(here, 0, 0, (first, count), later)
            return []

        e.loop((0, limit, s.keys), [], keys)
        for row, memory in ((greatest, own.greatest), (total, own.sums)):
            vectors = [load(e, s.lanes, memory, [0, c * s.lanes]) for c in range(s.vectors)]
            place.elements.know(row, vectors)
        self._finish(place, 0, limit)

    def _grow(self, place: Place, greatest: Node, found: Sequence[Value]) -> None:
        """Emit the maximum so far, and by what all before has to be scaled.

        While all scores are minus infinity, zero is subtracted from them in its place: their exponentials are
        zero, and a later score finds sums of zero.
        """
        e, s, own = self._e, self._s, place.own
        maxima = []
        for c, value in enumerate(found):
            at = [0, c * s.lanes]
            old = load(e, s.lanes, own.greatest, at)
            new = combined(greatest.combiner, old, value, either_zero=greatest in self._p.vanishing)
            store(e, new, own.greatest, at)
            lowest = arith.CmpFOp(arith.CmpFPredicate.OEQ, new, self._splat(-_INFINITY)).result
            finite = arith.SelectOp(lowest, self._splat(0.0), new).result
            store(e, math_.ExpOp(arith.SubFOp(old, finite).result).result, own.row, at)
            maxima.append(finite)
        place.elements.know(greatest, maxima)

    def _shrink(self, place: Place, later: Value) -> None:
        """Emit the scaling of the output so far, if there is any."""
        e, s = self._e, self._s
        type_ = e.vector_type(s.lanes, self._element)
        first = place.env[self._row]
        rows = arith.SelectOp(later, e.index(place.live), e.index(0)).result

        def row(local: Index, _: list[Value]) -> list[Value]:
            factor = e.broadcast(type_, element(e, place.own.row, [0, local]))
            for column in range(0, self._extents[self._widths[0]], s.lanes):
                env = {**place.env, self._row: e.add(first, local), self._widths[0]: column}
                value = self._load_sums(place, env, local, column, 0)
                self._store_sums(arith.MulFOp(value, factor).result, place, env, local, column)
            return []

        e.loop((0, rows, 1), [], row)
