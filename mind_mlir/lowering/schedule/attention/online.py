"""Emits what follows the products of an attention: outputs are scaled when they are complete.

Where rows are long, some keys are computed at a time, and outputs are scaled whenever a maximum grows. Keys
that no query sees are left out, but for what of them counts after all.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.memory import Place, element, load, store
from mind_mlir.lowering.schedule.attention.pairs import Pairs
from mind_mlir.lowering.schedule.fusion.groups.reductions import combined
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Value, arith, ir, vector
from mind_mlir.mlir.bindings import math as math_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.program import Scaling
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env
    from mind_mlir.mlir.bindings import Value


#: Vectors that are looked at side by side.
SIDE_BY_SIDE = 4


class Online(Pairs):
    """Emits the keys of one attention, some at a time or those that are seen, and the ends of outputs."""

    def _limit(self, first: Index, live: Index) -> Index:
        """Return how many keys the queries of a block see at most: one or more."""
        e, s = self._e, self._s
        if not s.skips:
            return self._keys
        seen = e.add(e.add(first, live), s.visible)
        if s.visible < 0:
            seen = arith.MaxSIOp(e.index(seen), e.index(1)).result
        if s.pairs:
            seen = e.mul(e.floordiv(e.add(seen, 1), 2), 2)
        return e.minimum(seen, self._keys)

    def _clear(self, env: Env) -> None:
        """Emit zeros where outputs have rows for keys, some of which no query may see."""
        e, lanes = self._e, self._s.lanes
        nothing = self._splat(0.0)

        def key(index: Index, _: list[Value]) -> list[Value]:
            for number, output in enumerate(self._p.outputs):
                if not output.by_row:
                    width = self._widths[number]
                    for column in range(0, self._extents[width], lanes):
                        here = {**env, self._column: index, width: column}
                        self._store_columns(
                            nothing, self._buffers[self._m.outputs[number]], here, column, number
                        )
            return []

        e.loop((0, self._keys, 1), [], key)

    def _finite(self, env: Env, rows: int, bounds: tuple[Index, Index]) -> Value:
        """Emit whether all factors with a row for each key, or query, are finite there.

        Bounds are the first row and how many there are.
        """
        e, lanes = self._e, self._s.lanes
        queries = rows == self._row
        found = {
            pair[0 if queries else 1]: depth for pair, depth in zip(self._m.scores, self._depths, strict=True)
        }
        for number, output in enumerate(self._p.outputs):
            if output.by_row != queries:
                found[self._m.values[number]] = self._widths[number]
        known: dict[tuple[object, ...], int] = {}
        for operand, width in found.items():  # a tensor may be several factors
            buffer = self._buffers[operand]
            steps = (each for each in buffer.strides.items() if each[0] != width)
            known.setdefault((buffer.value, *steps), operand)
        if any(self._buffers[operand].access[-1].dim != width for operand, width in found.items()):
            return e.flag(False)  # to look would take as long as to compute
        first, count = bounds
        nothing = self._splat(0.0)

        def row(index: Index, carried: list[Value]) -> list[Value]:
            sums = list(carried)
            here = {**env, rows: e.add(first, index)}
            for operand in known.values():
                buffer, width = self._buffers[operand], found[operand]
                for place, column in enumerate(range(0, self._extents[width], lanes)):
                    value = self._load_row(buffer, {**here, width: column}, self._extents[width] - column)
                    product = arith.MulFOp(value, nothing).result
                    sums[place % len(sums)] = arith.AddFOp(sums[place % len(sums)], product).result
            return sums

        zeros = e.loop((0, count, 1), [nothing] * SIDE_BY_SIDE, row)
        flags = [arith.CmpFOp(arith.CmpFPredicate.OEQ, each, nothing).result for each in zeros]
        for flag in flags[1:]:
            flags[0] = arith.AndIOp(flags[0], flag).result
        kind = ir.Attribute.parse("#vector.kind<and>")
        return vector.ReductionOp(self._bit, kind, flags[0]).result

    def _skipped(self, place: Place, number: int, columns: Sequence[int], limit: Index) -> list[Value]:
        """Emit what keys that no query sees have a share of: nothing, unless their values are not finite."""
        e = self._e
        values = self._buffers[self._m.values[number]]
        type_ = e.vector_type(self._s.lanes, self._element)
        nothing = e.number(type_, 0)

        def key(index: Index, carried: list[Value]) -> list[Value]:
            found = []
            for c, column in enumerate(columns):
                env = {**place.env, self._column: index, self._widths[number]: column}
                value = self._load_columns(values, env, column, number)
                found.append(arith.AddFOp(carried[c], arith.MulFOp(value, nothing).result).result)
            return found

        return e.loop((limit, self._keys, 1), [nothing] * len(columns), key)

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
            later = e.compare("ne", first, 0)
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
            lowest = arith.CmpFOp(arith.CmpFPredicate.OEQ, new, self._splat(-math.inf)).result
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
