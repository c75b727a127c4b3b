"""Emits what it takes to leave out keys that no query sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.pairs import Pairs
from mind_mlir.lowering.schedule.emission.emitter import Index, zero
from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.memory import Place
    from mind_mlir.lowering.schedule.linalg_view.view import Env

#: Vectors that are looked at side by side.
SIDE_BY_SIDE = 4


class Skipping(Pairs):
    """Emits bounds of the keys of one attention, and what of the others counts after all."""

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
            return e.constant(self._bit, ir.BoolAttr.get(False))  # to look would take as long as to compute
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
        nothing = e.splat(type_, zero(self._element))

        def key(index: Index, carried: list[Value]) -> list[Value]:
            found = []
            for c, column in enumerate(columns):
                env = {**place.env, self._column: index, self._widths[number]: column}
                value = self._load_columns(values, env, column, number)
                found.append(arith.AddFOp(carried[c], arith.MulFOp(value, nothing).result).result)
            return found

        return e.loop((limit, self._keys, 1), [nothing] * len(columns), key)
