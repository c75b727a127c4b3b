"""Outputs of an attention when they are complete, and what keys that a mask hides have to do with them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.attention.block import QueryBlock
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest, OutputBuffers
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env


#: Vectors that are looked at side by side.
SIDE_BY_SIDE = 4


def visible_keys(nest: AttentionNest, first: Index, live: Index) -> Index:
    """Return how many keys the queries of a block see at most: one or more."""
    e, s = nest.e, nest.schedule
    if not s.skips:
        return nest.keys
    seen = e.add(e.add(first, live), s.visible)
    if s.visible < 0:
        seen = arith.MaxSIOp(e.index(seen), e.index(1)).result
    if s.pairs:
        seen = e.mul(e.floordiv(e.add(seen, 1), 2), 2)
    return e.minimum(seen, nest.keys)


def clear(nest: AttentionNest, env: Env) -> None:
    """Emit zeros where outputs have rows for keys, some of which no query may see."""
    nothing = nest.lanes.splat(0.0)

    def key(index: Index) -> None:
        for output in nest.outputs:
            for column in () if output.by_row else range(0, output.width, nest.lanes.count):
                here = {**env, nest.column: index, output.dim: column}
                nest.lanes.write(nothing, output.out, here, output.width - column)

    nest.e.each((0, nest.keys, 1), key)


def all_finite(nest: AttentionNest, env: Env, rows: int, first: Index, count: Index) -> Value:
    """Emit whether all factors with a row for each query or key, as ``rows`` says, are finite there.

    Of these rows, ``count`` from ``first`` on are looked at.
    """
    e, lanes = nest.e, nest.lanes
    found = [
        (score.queries if rows == nest.row else score.keys, score.dim, score.depth) for score in nest.scores
    ]
    found += [(each.values, each.dim, each.width) for each in nest.outputs if each.summed == rows]
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


def finish(block: QueryBlock, output: OutputBuffers, limit: Index) -> None:
    """Emit what is done to a complete output: it is scaled, and has a share of keys from ``limit`` on."""
    nest, lanes, scaling = block.nest, block.nest.lanes, output.program.scaling
    if scaling is not None:
        block.elements.compute([scaling.factor], (), nest.column)
        lanes.store_row(block.elements.vectors(scaling.factor), block.own["row", 0], 0)
    skips = nest.schedule.skips and nest.program.by_row
    if scaling is None and not skips and not output.rounds:
        return

    def scaled(shares: Sequence[Value], place: int, value: Value, factor: Value | None) -> Value:
        if shares:
            value = arith.AddFOp(value, shares[place]).result
        if scaling is None or factor is None:
            return value
        operands = [value if each is scaling.term else factor for each in scaling.node.operands]
        return repeat(scaling.node.op, operands, (lanes.count,))[0]

    columns = range(0, output.width, lanes.count)
    for start in range(0, len(columns), SIDE_BY_SIDE):
        some = columns[start : start + SIDE_BY_SIDE]
        shares = _shares_of_hidden(block, output, some, limit) if skips else []
        _rows(block, output, some, block.live, partial(scaled, shares), is_end=True)


def _shares_of_hidden(
    block: QueryBlock, output: OutputBuffers, columns: Sequence[int], limit: Index
) -> list[Value]:
    """Emit what hidden keys add to some columns: nothing, unless their values are not finite."""
    nest, lanes = block.nest, block.nest.lanes
    nothing = lanes.splat(0.0)

    def key(index: Index, carried: list[Value]) -> list[Value]:
        found = []
        for column, before in zip(columns, carried, strict=True):
            env = {**block.env, nest.column: index, output.dim: column}
            value = lanes.read(output.values, env, output.width - column)
            found.append(arith.AddFOp(before, arith.MulFOp(value, nothing).result).result)
        return found

    return nest.e.loop((limit, nest.keys, 1), [nothing] * len(columns), key)


def shrink(block: QueryBlock, output: OutputBuffers, later: Value) -> None:
    """Emit the scaling of the output so far, if there is any."""
    nest = block.nest
    rows = arith.SelectOp(later, nest.e.index(block.live), nest.e.index(0)).result
    columns = range(0, output.width, nest.lanes.count)
    _rows(block, output, columns, rows, lambda _, value, factor: arith.MulFOp(value, factor).result)


def _rows(
    block: QueryBlock,
    output: OutputBuffers,
    columns: Sequence[int],
    count: Index,
    scaled: Callable[[int, Value, Value | None], Value],
    *,
    is_end: bool = False,
) -> None:
    """Emit a loop over ``count`` rows of an output, which is complete then if ``is_end``.

    Of ``columns``, the first elements of some vectors, ``scaled`` is given the number of one, the vector, and
    what is stored of the row, if anything.
    """
    nest, e, lanes = block.nest, block.nest.e, block.nest.lanes

    def row(local: Index) -> None:
        factor = None
        if output.program.scaling is not None:
            factor = lanes.broadcast(lanes.element_at(block.own["row", 0], [0, local]))
        for place, column in enumerate(columns):
            env = {**block.env, nest.row: e.add(block.env[nest.row], local), output.dim: column}
            left = output.width - column
            if output.rounds:
                sums = lanes.load(block.own["output", output.number], [local, column])
            else:
                sums = lanes.read(output.out, env, left)
            value = scaled(place, sums, factor)
            if output.rounds and not is_end:
                lanes.store(value, block.own["output", output.number], [local, column])
            else:
                lanes.write(value, output.out, env, left)

    e.each((0, count, 1), row)
