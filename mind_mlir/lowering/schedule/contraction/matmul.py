"""Emits a contraction as a loop nest around a register tile, in the vector dialect on tensors.

The nest is the usual one: blocks of N, blocks of K, the right factor packed into panels, blocks of M,
panels, and a tile of accumulators that lives in vector registers while the innermost loop runs over K.
Only the order in which K is blocked affects results, and it depends on the shape alone.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.contraction.pack import Panels
from mind_mlir.lowering.schedule.contraction.tile import Block, TileEmitter
from mind_mlir.lowering.schedule.reading.values import loop_without

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.contraction.match import Contraction
    from mind_mlir.lowering.schedule.contraction.matmul_schedule import MatmulSchedule
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.reading.view import Env


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
        self._whole: Value | None = None  # all of the right factor in panels, where a loop does not change it

    def emit(self, init: Value) -> Value:
        """Emit the nest at the insertion point and return the result tensor, which starts as ``init``."""
        carried = [init]
        if self._panels is not None and self._whole is None:
            self._whole = self._packed_before_the_loop()
        if self._panels is not None and self._whole is None:
            carried.append(self._panels.empty())
        return self._over(self._c.batch, {}, carried, self._blocks)[0]

    def _packed_before_the_loop(self) -> Value | None:
        """Emit all of the right factor in panels before the loop that does not change it, if there is one."""
        loop = loop_without(self._c.view.op, self._c.right.value)
        if loop is None or self._c.batch or self._c.inner:
            return None
        n, k = self._c.extent(self._c.n), self._c.extent(self._c.k)
        columns = self._s.columns
        whole = dataclasses.replace(self._s, nc=-(-n // columns) * columns, kc=k)
        panels = Panels(self._e, self._c, whole)
        with ir.InsertionPoint(loop):
            return panels.fill(panels.empty(), {}, (0, n), (0, k))

    def _over(
        self,
        dims: tuple[int, ...],
        env: Env,
        carried: list[Value],
        body: Callable[[Env, list[Value]], list[Value]],
    ) -> list[Value]:
        """Emit loops over ``dims`` around ``body``."""
        if not dims:
            return body(env, carried)
        return self._e.loop(
            (0, self._c.extent(dims[0]), 1),
            carried,
            lambda i, inside: self._over(dims[1:], env | {dims[0]: i}, inside, body),
        )

    def _blocks(self, env: Env, carried: list[Value]) -> list[Value]:
        """Loop over blocks of N, then of K, and pack the right factor of each if the schedule says so."""
        e, c, s = self._e, self._c, self._s
        n, k = c.extent(c.n), c.extent(c.k)

        def block(jc: Index, pc: Index, inside: list[Value]) -> list[Value]:
            width = e.minimum(e.sub(n, jc), s.nc) if n % s.nc else s.nc
            depth = e.minimum(e.sub(k, pc), s.kc) if k % s.kc else s.kc
            out, *packed = inside
            if self._whole is not None:
                first = e.floordiv(jc, s.columns), pc
                return self._all_rows(Block(env, jc, width, pc, depth, self._whole, first), [out])
            if self._panels is not None:
                packed = [self._panels.fill(packed[0], env, (jc, width), (pc, depth))]
            here = Block(env, jc, width, pc, depth, packed[0] if packed else None)
            return [*self._all_rows(here, [out]), *packed]

        return e.loop(
            (0, n, s.nc),
            carried,
            lambda jc, outer: e.loop((0, k, s.kc), outer, lambda pc, inner: block(jc, pc, inner)),
        )

    def _all_rows(self, block: Block, carried: list[Value]) -> list[Value]:
        """Emit the tiles of ``block`` for all values of the dimensions that repeat rows."""
        if self._s.panels_first:
            return self._rows(block, self._c.rows, carried)
        return self._over(
            self._c.rows,
            block.env,
            carried,
            lambda env, inside: self._rows(dataclasses.replace(block, env=env), (), inside),
        )

    def _rows(self, block: Block, repeated: tuple[int, ...], carried: list[Value]) -> list[Value]:
        """Emit all tiles of ``block``: full tiles, then one row of tiles for the rows that remain."""
        e, rows, mc = self._e, self._s.rows, self._s.mc
        m = self._c.extent(self._c.m)
        full = m - m % rows

        def row_block(ic: Index, inside: list[Value]) -> list[Value]:
            end = e.minimum(e.add(ic, mc), full) if full % mc else e.add(ic, mc)
            return self._columns(block, repeated, inside, (ic, end, rows))

        carried = e.loop((0, full, mc), carried, row_block)
        return self._columns(block, repeated, carried, (full, m, m % rows)) if m % rows else carried

    def _columns(
        self,
        block: Block,
        repeated: tuple[int, ...],
        carried: list[Value],
        rows: tuple[Index, Index, int],
    ) -> list[Value]:
        """Emit the tiles of the row range ``rows``, whose step is the height of a tile, for all columns."""

        def tiles(env: Env, j: Index, inside: list[Value]) -> list[Value]:
            here = dataclasses.replace(block, env=env)
            return self._e.loop(
                rows, inside, lambda i, inner: [self._tiles.emit(here, rows[2], i, j, inner[0])]
            )

        return self._e.loop(
            (0, block.width, self._s.columns),
            carried,
            lambda j, outer: self._over(
                repeated, block.env, outer, lambda env, inside: tiles(env, j, inside)
            ),
        )
