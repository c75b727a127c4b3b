"""Results that have an element of an attention for each of its scores, or sums of these over batches.

Elements lie in memory ``[key][query]`` and are transposed in squares of a vector.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.movement.transposition import transpose
from mind_mlir.mlir.bindings import Value, arith, vector

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.nest import AttentionNest
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Env


@dataclasses.dataclass(frozen=True)
class Tiles:
    """Elements of some heads for a block of queries.

    Attributes:
        room: Their memory, ``[head, key][query]``.
        first: The first row of the first head.
        heads: How many heads there are to be summed.
        adds: Whether they are added to what there is; None if they never are.
    """

    room: Value
    first: Index = 0
    heads: Index = 1
    adds: Value | None = None


class Squares:
    """Emits what is written of elements."""

    def __init__(self, nest: AttentionNest) -> None:
        self._e = nest.e
        self._nest = nest
        #: Whether the last vector of keys is not whole.
        self._is_ragged = nest.keys % nest.lanes.count > 0

    def write(self, out: Buffer, tiles: Tiles, env: Env, keys: tuple[Index, Index]) -> None:
        """Emit the rows of a tensor for a block of queries, of some keys, which are squares."""
        e, nest, lanes = self._e, self._nest, self._nest.lanes
        first = env[nest.row]

        def square(key: Index, _: list[Value]) -> list[Value]:
            for c in range(0, lanes.vectors * lanes.count, lanes.count):
                for lane, value in enumerate(transpose(self._sums(tiles, key, c))):
                    row = e.add(first, c + lane)
                    there = [(row, nest.queries)] * nest.is_ragged
                    here = {**env, nest.row: row, nest.column: key}
                    nest.where(there, partial(self._put, value, out, here, tiles.adds))
            return []

        e.loop((*keys, lanes.count), [], square)

    def _sums(self, tiles: Tiles, key: Index, query: int) -> list[Value]:
        """Emit sums over heads: a vector of queries for each of as many keys."""
        e, lanes, keys = self._e, self._nest.lanes, self._nest.keys
        places = [e.add(key, lane) for lane in range(lanes.count)]
        if self._is_ragged:  # nothing lies behind the last key
            places = [e.minimum(place, keys - 1) for place in places]

        def one(head: Index) -> list[Value]:
            start = e.add(tiles.first, e.mul(head, keys))
            return [lanes.load(tiles.room, [e.add(start, place), query]) for place in places]

        def more(head: Index, sums: list[Value]) -> list[Value]:
            return [arith.AddFOp(*each).result for each in zip(sums, one(head), strict=True)]

        return e.loop((1, tiles.heads, 1), one(0), more)

    def _put(self, value: Value, out: Buffer, env: Env, adds: Value | None) -> None:
        """Emit a store of elements of a row, added to what there is where ``adds``."""
        e, lanes = self._e, self._nest.lanes
        live: Index = lanes.count
        if self._is_ragged:
            live = e.minimum(e.sub(self._nest.keys, env[self._nest.column]), lanes.count)
        indices = [e.index(each) for each in out.indices(e, env)]
        mask = e.mask(lanes.count, live)
        if adds is not None:
            old = self._old(out, indices, mask)
            value = arith.AddFOp(value, arith.SelectOp(adds, old, lanes.splat(0.0)).result).result
        value = e.cast(value, out.element)
        if mask is None:
            lanes.store(value, out.value, indices)
        else:
            vector.MaskedStoreOp(out.value, indices, mask, value)

    def _old(self, out: Buffer, indices: list[Value], mask: Value | None) -> Value:
        lanes = self._nest.lanes
        if mask is None:
            return lanes.load(out.value, indices)
        nothing = lanes.splat(0.0)
        return vector.MaskedLoadOp(nothing.type, out.value, indices, mask, nothing).result
