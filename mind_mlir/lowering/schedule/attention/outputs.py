"""Outputs of an attention when they are complete, and what keys that a mask hides have to do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


class OutputRows:
    """Emits the scaling of outputs."""

    def __init__(self, nest: AttentionNest, hidden: HiddenKeys) -> None:
        self._e = nest.e
        self._nest = nest
        self._hidden = hidden

    def finish(self, block: QueryBlock, output: OutputOperands, limit: Index) -> None:
        """Emit what is done to a complete output: it is scaled, and has a share of keys from ``limit`` on."""
        nest, lanes, scaling = self._nest, self._nest.lanes, output.scaling
        if scaling is not None:
            block.elements.compute([scaling.factor], (), nest.column)
            lanes.store_row(block.elements.vectors(scaling.factor), block.own["row", 0], 0)
        skips = nest.schedule.skips and not nest.program.needs_finite
        if scaling is None and not skips and not output.rounds:
            return
        columns = range(0, output.width, lanes.count)
        for start in range(0, len(columns), SIDE_BY_SIDE):
            some = columns[start : start + SIDE_BY_SIDE]
            shares = self._hidden.share(block, output, some, limit) if skips else []
            self._finish(block, output, some, shares)

    def _finish(
        self, block: QueryBlock, output: OutputOperands, columns: Sequence[int], shares: Sequence[Value]
    ) -> None:
        """Emit the same of some vectors, given the shares of keys that were left out, if any were."""
        scaling = output.scaling

        def scaled(place: int, value: Value, factor: Value | None) -> Value:
            if shares:
                value = arith.AddFOp(value, shares[place]).result
            if scaling is None or factor is None:
                return value
            operands = [value if each is scaling.term else factor for each in scaling.node.operands]
            return repeat(scaling.node.op, operands, (self._nest.lanes.count,))[0]

        self._rows(block, output, columns, block.live, scaled, is_end=True)

    def shrink(self, block: QueryBlock, output: OutputOperands, later: Value) -> None:
        """Emit the scaling of the output so far, if there is any."""
        rows = arith.SelectOp(later, self._e.index(block.live), self._e.index(0)).result
        columns = range(0, output.width, self._nest.lanes.count)
        self._rows(block, output, columns, rows, lambda _, value, factor: arith.MulFOp(value, factor).result)

    def _rows(
        self,
        block: QueryBlock,
        output: OutputOperands,
        columns: Sequence[int],
        count: Index,
        scaled: Callable[[int, Value, Value | None], Value],
        *,
        is_end: bool = False,
    ) -> None:
        """Emit a loop over rows of an output.

        Args:
            block: The queries.
            output: The output.
            columns: The first elements of some vectors.
            count: How many rows there are.
            scaled: Is given the number of a vector, it itself, and what is stored of the row, if anything.
            is_end: Whether the output is complete then.
        """
        e, nest, lanes = self._e, self._nest, self._nest.lanes
        first = block.env[nest.row]

        def row(local: Index, _: list[Value]) -> list[Value]:
            factor = None
            if output.scaling is not None:
                factor = lanes.broadcast(lanes.element_at(block.own["row", 0], [0, local]))
            for place, column in enumerate(columns):
                env = {**block.env, nest.row: e.add(first, local), output.dim: column}
                value = scaled(place, self._sums(block, output, env, local, column), factor)
                if output.rounds and not is_end:
                    lanes.store(value, block.own["output", output.number], [local, column])
                else:
                    lanes.write(value, output.out, env, output.width - column)
            return []

        e.loop((0, count, 1), [], row)

    def _sums(self, block: QueryBlock, output: OutputOperands, env: Env, local: Index, column: int) -> Value:
        """Emit what a row of an output is so far."""
        if output.rounds:
            return self._nest.lanes.load(block.own["output", output.number], [local, column])
        return self._nest.lanes.read(output.out, env, output.width - column)
