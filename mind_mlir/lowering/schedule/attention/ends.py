"""Rows of the outputs of an attention: what is done to them when they are complete, or before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.hidden import SIDE_BY_SIDE
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Value, arith

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.attention.hidden import HiddenKeys
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, OutputOperands, QueryBlock
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.view import Env


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
