"""Keys that a mask hides from queries: which are left out, and what of them counts after all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, OutputOperands, QueryBlock
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env

#: Vectors that are looked at side by side.
SIDE_BY_SIDE = 4


class HiddenKeys:
    """Emits what there is to do about keys that no query of a block sees."""

    def __init__(self, nest: AttentionNest) -> None:
        self._e = nest.e
        self._nest = nest

    def limit(self, first: Index, live: Index) -> Index:
        """Return how many keys the queries of a block see at most: one or more."""
        e, s = self._e, self._nest.schedule
        if not s.skips:
            return self._nest.keys
        seen = e.add(e.add(first, live), s.visible)
        if s.visible < 0:
            seen = arith.MaxSIOp(e.index(seen), e.index(1)).result
        if s.pairs:
            seen = e.mul(e.floordiv(e.add(seen, 1), 2), 2)
        return e.minimum(seen, self._nest.keys)

    def clear(self, env: Env) -> None:
        """Emit zeros where outputs have rows for keys, some of which no query may see."""
        lanes = self._nest.lanes
        nothing = lanes.splat(0.0)

        def key(index: Index, _: list[Value]) -> list[Value]:
            for output in self._nest.outputs:
                if not output.by_row:
                    for column in range(0, output.width, lanes.count):
                        here = {**env, self._nest.column: index, output.dim: column}
                        lanes.write(nothing, output.out, here, output.width - column)
            return []

        self._e.loop((0, self._nest.keys, 1), [], key)

    def all_finite(self, env: Env, rows: int, first: Index, count: Index) -> Value:
        """Emit whether all factors with a row for each query or key, as ``rows`` says, are finite there.

        Args:
            env: The dimensions that are known.
            rows: The dimension of these rows.
            first: The first row.
            count: How many there are.
        """
        e, lanes = self._e, self._nest.lanes
        found = self._factors_of(rows)
        if any(buffer.access[-1].dim != dim for buffer, dim, _ in found):
            return e.flag(False)  # to look would take as long as to compute
        known: dict[tuple[object, ...], tuple[Buffer, int, int]] = {}
        for buffer, dim, width in found:  # a tensor may be several factors
            steps = (each for each in buffer.strides.items() if each[0] != dim)
            known.setdefault((buffer.value, *steps), (buffer, dim, width))
        nothing = lanes.splat(0.0)

        def row(index: Index, carried: list[Value]) -> list[Value]:
            sums = list(carried)
            here = {**env, rows: e.add(first, index)}
            for buffer, dim, width in known.values():
                for place, column in enumerate(range(0, width, lanes.count)):
                    value = lanes.read(buffer, {**here, dim: column}, width - column)
                    product = arith.MulFOp(value, nothing).result
                    sums[place % len(sums)] = arith.AddFOp(sums[place % len(sums)], product).result
            return sums

        zeros = e.loop((0, count, 1), [nothing] * SIDE_BY_SIDE, row)
        flags = [arith.CmpFOp(arith.CmpFPredicate.OEQ, each, nothing).result for each in zeros]
        kind = ir.Attribute.parse("#vector.kind<and>")
        return vector.ReductionOp(ir.IntegerType.get_signless(1), kind, e.all(flags)).result

    def _factors_of(self, rows: int) -> list[tuple[Buffer, int, int]]:
        """Return the factors with such rows, each with the dimension of its columns and their number."""
        nest = self._nest
        found = [
            (score.queries if rows == nest.row else score.keys, score.dim, score.depth)
            for score in nest.scores
        ]
        return found + [(each.values, each.dim, each.width) for each in nest.outputs if each.summed == rows]

    def share(
        self, block: QueryBlock, output: OutputOperands, columns: Sequence[int], limit: Index
    ) -> list[Value]:
        """Emit what hidden keys add to some columns: nothing, unless their values are not finite."""
        lanes = self._nest.lanes
        nothing = lanes.splat(0.0)

        def key(index: Index, carried: list[Value]) -> list[Value]:
            found = []
            for column, before in zip(columns, carried, strict=True):
                env = {**block.env, self._nest.column: index, output.dim: column}
                value = lanes.read(output.values, env, output.width - column)
                found.append(arith.AddFOp(before, arith.MulFOp(value, nothing).result).result)
            return found

        return self._e.loop((limit, self._nest.keys, 1), [nothing] * len(columns), key)
