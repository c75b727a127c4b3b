"""Packs the right factor of a contraction into panels that the innermost loop reads in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import tensor
from mind_mlir.lowering.schedule.emission.emitter import zero
from mind_mlir.lowering.schedule.emission.shuffle import transpose
from mind_mlir.lowering.schedule.reading.body import cast

if TYPE_CHECKING:
    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.contraction.match import Contraction
    from mind_mlir.lowering.schedule.contraction.matmul_schedule import MatmulSchedule
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.reading.view import Env


class Panels:
    """A buffer ``[nc / columns][kc][columns]`` of accumulator elements and the loops that fill it.

    A right factor that is contiguous along N is copied row by row; one that is contiguous along K is
    transposed on the way, in squares that fit the vector registers. Columns past the last one hold
    anything: what is computed from them is never stored.
    """

    def __init__(self, emitter: Emitter, contraction: Contraction, schedule: MatmulSchedule) -> None:
        self._e = emitter
        self._c = contraction
        self._s = schedule
        self._right = contraction.right
        self._n = contraction.extent(contraction.n)
        self._vector = emitter.vector_type(schedule.lanes, self._right.element)
        self._padding = emitter.splat(self._right.element, zero(self._right.element))

    def empty(self) -> Value:
        """Emit the buffer; its contents are undefined."""
        shape = [self._s.nc // self._s.columns, self._s.kc, self._s.columns]
        return tensor.EmptyOp(shape, self._c.element).result

    def fill(
        self, buffer: Value, env: Env, columns: tuple[Index, Index], depth: tuple[Index, Index]
    ) -> Value:
        """Emit the copy of one block of the right factor and return the buffer that holds it.

        Args:
            buffer: the buffer to write.
            env: values of the outer dimensions.
            columns: first column of the block and its width.
            depth: first step of K of the block and their number.
        """
        if self._right.contiguous(self._c.n):
            return self._copy(buffer, env, columns, depth)
        return self._transpose(buffer, env, columns, depth)

    def _copy(
        self, buffer: Value, env: Env, columns: tuple[Index, Index], depth: tuple[Index, Index]
    ) -> Value:
        e = self._e

        def row(j: Index, k: Index, inside: Value) -> list[Value]:
            panel = e.floordiv(j, self._s.columns)
            here = env | {self._c.k: e.add(depth[0], k)}
            for offset in range(0, self._s.columns, self._s.lanes):
                column = e.add(e.add(columns[0], j), offset)
                live = e.sub(self._n, column) if self._n % self._s.columns else self._s.lanes
                value = self._read(here | {self._c.n: column}, e.mask(self._s.lanes, live))
                inside = e.write(value, inside, [panel, k, offset])
            return [inside]

        return e.loop(
            (0, columns[1], self._s.columns),
            [buffer],
            lambda j, outer: e.loop((0, depth[1], 1), outer, lambda k, inner: row(j, k, inner[0])),
        )[0]

    def _transpose(
        self, buffer: Value, env: Env, columns: tuple[Index, Index], depth: tuple[Index, Index]
    ) -> Value:
        """Squares of ``lanes x lanes``, then element by element what is left of K, then what is left of N."""
        e, lanes, size = self._e, self._s.lanes, self._s.columns
        ragged_k = self._c.extent(self._c.k) % lanes or self._s.kc % lanes
        ragged_n = self._n % size
        square_end = e.sub(depth[1], e.modulo(depth[1], lanes)) if ragged_k else depth[1]
        panels_end = e.sub(columns[1], e.modulo(columns[1], size)) if ragged_n else columns[1]

        def panel(j: Index, inside: list[Value]) -> list[Value]:
            inside = e.loop(
                (0, square_end, lanes),
                inside,
                lambda k, inner: [self._squares(inner[0], env, (columns[0], j), (depth[0], k))],
            )
            if not ragged_k:
                return inside
            return elements(j, size, square_end, inside)

        def elements(j: Index, live: Index, first: Index, inside: list[Value]) -> list[Value]:
            return e.loop(
                (0, live, 1),
                inside,
                lambda c, outer: e.loop(
                    (first, depth[1], 1),
                    outer,
                    lambda k, inner: [self._element(inner[0], env, (columns[0], j, c), (depth[0], k))],
                ),
            )

        carried = e.loop((0, panels_end, size), [buffer], panel)
        if ragged_n:
            carried = elements(panels_end, e.sub(columns[1], panels_end), 0, carried)
        return carried[0]

    def _squares(
        self, buffer: Value, env: Env, columns: tuple[Index, Index], depth: tuple[Index, Index]
    ) -> Value:
        e, lanes = self._e, self._s.lanes
        panel = e.floordiv(columns[1], self._s.columns)
        first = e.add(*columns)
        here = env | {self._c.k: e.add(*depth)}

        def square(offset: Index, inside: list[Value]) -> list[Value]:
            corner = e.add(first, offset)
            stored = [self._read(here | {self._c.n: e.add(corner, lane)}, None) for lane in range(lanes)]
            result = inside[0]
            for step, value in enumerate(transpose(stored)):
                result = e.write(value, result, [panel, e.add(depth[1], step), offset])
            return [result]

        return e.loop((0, self._s.columns, lanes), [buffer], square)[0]

    def _element(
        self, buffer: Value, env: Env, columns: tuple[Index, Index, Index], depth: tuple[Index, Index]
    ) -> Value:
        e = self._e
        jc, j, column = columns
        here = env | {self._c.k: e.add(*depth), self._c.n: e.add(e.add(jc, j), column)}
        value = e.extract(self._right.value, [index.emit(e, here) for index in self._right.access])
        value = cast(self._right.casts, value, ())
        return e.insert(value, buffer, [e.floordiv(j, self._s.columns), depth[1], column])

    def _read(self, env: Env, mask: Value | None) -> Value:
        """Read ``lanes`` elements along the contiguous dimension and convert them to accumulators."""
        indices = [index.emit(self._e, env) for index in self._right.access]
        value = self._e.read(self._vector, self._right.value, indices, self._padding, mask)
        return cast(self._right.casts, value, (self._s.lanes,))
