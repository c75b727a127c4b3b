"""Emits the register tile of a contraction: accumulators in vector registers, and the loop over K."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from mind_mlir.bindings import arith, vector
from mind_mlir.lowering.schedule.emission.emitter import zero
from mind_mlir.lowering.schedule.reading.body import cast

if TYPE_CHECKING:
    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.contraction.match import Contraction
    from mind_mlir.lowering.schedule.contraction.matmul_schedule import MatmulSchedule
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.reading.view import Access, Env


@dataclasses.dataclass(frozen=True)
class Block:
    """One block of N and K.

    Attributes:
        env: values of the outer dimensions.
        jc: first column.
        width: number of columns.
        pc: first step of K.
        depth: number of steps of K.
        packed: the packed right factor, or None to read it in place.
        first: where this block starts in what is packed: its panel, and its step of K.
    """

    env: Env
    jc: Index
    width: Index
    pc: Index
    depth: Index
    packed: Value | None
    first: tuple[Index, Index] = (0, 0)


@dataclasses.dataclass(frozen=True)
class _Columns:
    """The columns of one tile: their panel, and for each vector its first column and its mask."""

    panel: Index
    starts: tuple[Index, ...]
    masks: tuple[Value | None, ...]


class TileEmitter:
    """Emits tiles of one contraction; arguments as for the nest around them."""

    def __init__(
        self, emitter: Emitter, contraction: Contraction, schedule: MatmulSchedule, start: Value | None
    ) -> None:
        self._e = emitter
        self._c = contraction
        self._s = schedule
        self._start = start
        self._vector = emitter.vector_type(schedule.lanes, contraction.element)
        self._padding = emitter.splat(contraction.element, zero(contraction.element))
        self._n = contraction.extent(contraction.n)
        self._k = contraction.extent(contraction.k)

    def emit(self, block: Block, rows: int, i: Index, j: Index, out: Value) -> Value:
        """Emit the tile of ``rows`` rows from row ``i`` on, at column ``j`` of ``block``."""
        e, c = self._e, self._c
        columns = self._columns(block, j)
        envs = [block.env if c.m is None else block.env | {c.m: e.add(i, r)} for r in range(rows)]
        places = [
            (self._indices(c.out, row | {c.n: start}), mask)
            for row in envs
            for start, mask in zip(columns.starts, columns.masks, strict=True)
        ]
        accumulators = [self._initial(block, out, indices, mask) for indices, mask in places]
        accumulators = self._reduce(c.inner, block, envs, columns, accumulators)
        for value, (indices, mask) in zip(accumulators, places, strict=True):
            out = e.write(value, out, indices, mask)
        return out

    def _columns(self, block: Block, j: Index) -> _Columns:
        first = self._e.add(block.jc, j)
        offsets = [v * self._s.lanes for v in range(self._s.vectors)]
        return _Columns(
            self._e.floordiv(j, self._s.columns),
            tuple(self._e.add(first, offset) for offset in offsets),
            tuple(self._mask(first, offset) for offset in offsets),
        )

    def _mask(self, first: Index, offset: int) -> Value | None:
        if self._n % self._s.columns == 0:
            return None
        live = self._e.sub(self._n, self._e.add(first, offset))
        return self._e.mask(self._s.lanes, live)

    def _initial(self, block: Block, out: Value, indices: list[Index], mask: Value | None) -> Value:
        """Return what a vector of accumulators starts from: the start value in the first block of K."""
        splat = None if self._start is None else self._e.broadcast(self._vector, self._start)
        if splat is not None and isinstance(block.pc, int) and block.pc == 0:
            return splat
        current = self._e.read(self._vector, out, indices, self._padding, mask)
        if splat is None:
            return current
        first = arith.CmpIOp(arith.CmpIPredicate.eq, block.pc, self._e.index(0)).result
        return arith.SelectOp(first, splat, current).result

    def _reduce(
        self, inner: tuple[int, ...], block: Block, rows: list[Env], columns: _Columns, values: list[Value]
    ) -> list[Value]:
        """Loop over the reduction dimensions, the blocked one innermost and unrolled."""
        e = self._e
        if inner:
            return e.loop(
                (0, self._c.extent(inner[0]), 1),
                values,
                lambda x, inside: self._reduce(
                    inner[1:], block, [row | {inner[0]: x} for row in rows], columns, inside
                ),
            )
        unroll = self._s.unroll
        rest = 0 if self._k % unroll == 0 else e.modulo(block.depth, unroll)
        main = e.sub(block.depth, rest)
        steps = functools.partial(self._steps, block, rows, columns)
        values = e.loop((0, main, unroll), values, lambda k, inside: steps(unroll, k, inside))
        if self._k % unroll:
            values = e.loop((main, block.depth, 1), values, lambda k, inside: steps(1, k, inside))
        return values

    def _steps(
        self, block: Block, rows: list[Env], columns: _Columns, count: int, k: Index, values: list[Value]
    ) -> list[Value]:
        """Emit ``count`` steps of K: a row of the right factor times one element of each row of the left."""
        for u in range(count):
            local = self._e.add(k, u)
            step = {self._c.k: self._e.add(block.pc, local)}
            right = self._right(block, columns, local, rows[0] | step)
            following: list[Value] = []
            for row in rows:
                left = self._left(row | step)
                held = values[len(following) : len(following) + len(right)]
                following += [self._multiply_add(left, *pair) for pair in zip(right, held, strict=True)]
            values = following
        return values

    def _left(self, env: Env) -> Value:
        left = self._c.left
        value = cast(left.casts, self._e.extract(left.value, self._indices(left.access, env)), ())
        return self._e.broadcast(self._vector, value)

    def _right(self, block: Block, columns: _Columns, local: Index, env: Env) -> list[Value]:
        e, lanes = self._e, self._s.lanes
        if block.packed is not None:
            panel, step = e.add(block.first[0], columns.panel), e.add(block.first[1], local)
            places = [[panel, step, v * lanes] for v in range(self._s.vectors)]
            return [e.read(self._vector, block.packed, place, self._padding) for place in places]
        right = self._c.right
        type_ = e.vector_type(lanes, right.element)
        padding = e.splat(right.element, zero(right.element))
        values: list[Value] = []
        for start, mask in zip(columns.starts, columns.masks, strict=True):
            indices = self._indices(right.access, env | {self._c.n: start})
            values.append(cast(right.casts, e.read(type_, right.value, indices, padding, mask), (lanes,)))
        return values

    def _multiply_add(self, left: Value, right: Value, accumulator: Value) -> Value:
        if not self._c.floating:
            return arith.AddIOp(accumulator, arith.MulIOp(left, right).result).result
        if not self._s.fma:
            return arith.AddFOp(accumulator, arith.MulFOp(left, right).result).result
        return vector.FMAOp(left, right, accumulator).result

    def _indices(self, access: Access, env: Env) -> list[Index]:
        return [index.emit(self._e, env) for index in access]
