"""Emits a contraction as a loop nest around a register tile, in the vector dialect on tensors.

The nest is the usual one: blocks of N, blocks of K, the right factor packed into panels, blocks of M,
panels, and a tile of accumulators that lives in vector registers while the innermost loop runs over K.
Only the order in which K is blocked affects results, and it depends on the shape alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.pack import Panels
from mind_mlir.lowering.schedule.tile import Block, TileEmitter

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.contraction import Contraction
    from mind_mlir.lowering.schedule.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.matmul_schedule import MatmulSchedule
    from mind_mlir.lowering.schedule.view import Env


class MatmulEmitter:
    """Emits one contraction.

    Args:
        emitter: where to emit.
        contraction: what to compute; all extents positive.
        schedule: how.
        start: the number that results start from, or None to start from the init operand.
    """

    def __init__(
        self, emitter: Emitter, contraction: Contraction, schedule: MatmulSchedule, start: Value | None
    ) -> None:
        self._e = emitter
        self._c = contraction
        self._s = schedule
        self._tiles = TileEmitter(emitter, contraction, schedule, start)
        self._panels = Panels(emitter, contraction, schedule) if schedule.pack else None

    def emit(self, init: Value) -> Value:
        """Emit the nest at the insertion point and return the result tensor, which starts as ``init``."""
        carried = [init]
        if self._panels is not None:
            carried.append(self._panels.empty())
        return self._outer(self._c.outer, {}, carried)[0]

    def _outer(self, dims: tuple[int, ...], env: Env, carried: list[Value]) -> list[Value]:
        if not dims:
            return self._blocks(env, carried)
        return self._e.loop(
            (0, self._c.extent(dims[0]), 1),
            carried,
            lambda i, inside: self._outer(dims[1:], env | {dims[0]: i}, inside),
        )

    def _blocks(self, env: Env, carried: list[Value]) -> list[Value]:
        """Loop over blocks of N, then of K, and pack the right factor of each if the schedule says so."""
        e, c, s = self._e, self._c, self._s
        n, k = c.extent(c.n), c.extent(c.k)

        def block(jc: Index, pc: Index, inside: list[Value]) -> list[Value]:
            width = e.minimum(e.sub(n, jc), s.nc) if n % s.nc else s.nc
            depth = e.minimum(e.sub(k, pc), s.kc) if k % s.kc else s.kc
            out, *packed = inside
            if self._panels is not None:
                packed = [self._panels.fill(packed[0], env, (jc, width), (pc, depth))]
            here = Block(env, jc, width, pc, depth, packed[0] if packed else None)
            return [self._rows(here, out), *packed]

        return e.loop(
            (0, n, s.nc),
            carried,
            lambda jc, outer: e.loop((0, k, s.kc), outer, lambda pc, inner: block(jc, pc, inner)),
        )

    def _rows(self, block: Block, out: Value) -> Value:
        """Emit all tiles of ``block``: full tiles, then one row of tiles for the rows that remain."""
        e, rows, mc = self._e, self._s.rows, self._s.mc
        m = self._c.extent(self._c.m)
        full = m - m % rows

        def row_block(ic: Index, inside: list[Value]) -> list[Value]:
            end = e.minimum(e.add(ic, mc), full) if full % mc else e.add(ic, mc)
            return self._columns(
                block,
                inside,
                lambda j, outer: e.loop(
                    (ic, end, rows), outer, lambda i, inner: [self._tiles.emit(block, rows, i, j, inner[0])]
                ),
            )

        carried = e.loop((0, full, mc), [out], row_block)
        if m % rows:
            carried = self._columns(
                block, carried, lambda j, inner: [self._tiles.emit(block, m % rows, full, j, inner[0])]
            )
        return carried[0]

    def _columns(
        self, block: Block, carried: list[Value], body: Callable[[Index, list[Value]], list[Value]]
    ) -> list[Value]:
        return self._e.loop((0, block.width, self._s.columns), carried, body)
