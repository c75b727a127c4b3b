"""Emits calls of the kernels of an attention: packing, scores, and products with what they became."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.access import Accesses
from mind_mlir.lowering.schedule.attention.choice import output_kernel, query_pack, score_kernel
from mind_mlir.lowering.schedule.attention.elements import load, store
from mind_mlir.lowering.schedule.attention.marked import is_constant
from mind_mlir.lowering.schedule.attention.memory import Buffer, Place, Scratch, base_of, start_of
from mind_mlir.lowering.schedule.contraction.kernels.packing import PACK_ARGUMENTS, PackKernel
from mind_mlir.lowering.schedule.contraction.kernels.product import PRODUCT_ARGUMENTS, ProductKernel
from mind_mlir.lowering.schedule.emission.emitter import Index, zero
from mind_mlir.lowering.schedule.linalg_view.body import repeat
from mind_mlir.mlir.bindings import Operation, Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.lowering.schedule.linalg_view.view import Env


class Products(Accesses):
    """Emits the calls of one attention."""

    def _pack_queries(self, queries: Buffer, env: Env, live: Index, number: int, own: Scratch) -> None:
        depth = self._depths[number]
        kernel = query_pack(
            self._s, str(self._element), self._stored, transposed=queries.access[-1].dim != self._row
        )
        stride = queries.strides.get(self._row if kernel.transposes else depth, 1)
        self._pack(
            kernel,
            queries.base,
            own.queries[number],
            queries.at(self._e, env),
            (live, self._extents[depth], stride),
        )
        scale = self._m.scales[number]
        if scale is not None:
            self._scale_queries(scale, own.queries[number], self._extents[depth])

    def _scale_queries(self, scale: Operation, queries: Value, depth: int) -> None:
        """Emit what scales so many rows of packed queries."""
        e, s = self._e, self._s
        type_ = e.vector_type(s.lanes, self._element)

        def row(index: Index, _: list[Value]) -> list[Value]:
            for c in range(s.vectors):
                at = [index, c * s.lanes]
                value = load(e, s.lanes, queries, at)
                operands = [
                    e.splat(type_, each.owner.operation.attributes["value"]) if is_constant(each) else value
                    for each in scale.operands
                ]
                store(e, repeat(scale, operands, (s.lanes,))[0], queries, at)
            return []

        e.loop((0, depth, 1), [], row)

    def _pack(
        self, kernel: PackKernel, source: Value, target: Value, first: Index, bounds: tuple[Index, Index, int]
    ) -> None:
        """Emit a packing of so many columns and steps into ``target``, whose columns move so far."""
        e = self._e
        columns, depth, stride = bounds
        given = {
            "source_first": first,
            "columns": columns,
            "depth": depth,
            "stride": stride,
            "panel": math.prod(target.type.shape),
        }
        values = [e.index(given.get(name, 0)) for name in PACK_ARGUMENTS]
        self._library.call(kernel, [source, base_of(target), *values])

    def _score(self, place: Place, number: int, first: Index, count: Index) -> None:
        """Emit the scores of ``count`` keys, from key ``first`` on."""
        e, s = self._e, self._s
        keys = self._buffers[self._m.scores[number][1]]
        depth = self._depths[number]
        steps = self._extents[depth]
        blocks = -(-steps // s.kc)
        size = -(-steps // blocks)
        step = keys.strides.get(depth, 0)
        row = keys.strides.get(self._column, 0)
        target = place.own.arrays[number]
        numbers = {
            "left_first": keys.at(e, {**place.env, self._column: first}),
            "right_first": 0,
            "out_first": start_of(target),
            "rows": count,
            "columns": s.queries,
            "depth": size,
            "last_depth": steps - (blocks - 1) * size,
            "blocks": blocks,
            "left_row": row,
            "left_tile": row * s.rows,
            "left_step": step,
            "left_block": step * size,
            "right_panel": s.queries,
            "right_step": s.queries,
            "right_block": s.queries * size,
            "out_row": s.queries,
        }
        buffers = [keys.base, base_of(place.own.queries[number]), base_of(target)]
        is_first = e.constant(self._bit, ir.BoolAttr.get(False))
        self._call(score_kernel(s, str(self._element), self._stored), buffers, numbers, is_first)

    def _product(self, place: Place, number: int, array: int, keys: tuple[Index, Index], adds: Value) -> None:
        """Emit the product of ``array`` with values of keys from the first of ``keys`` on, so many."""
        e, s = self._e, self._s
        values, out = (self._buffers[each[number]] for each in (self._m.values, self._m.outputs))
        width = self._widths[number]
        by_row = self._p.outputs[number].by_row
        first, count = keys
        summed, rows = (self._column, self._row) if by_row else (self._row, self._column)
        extent, steps = (place.live, count) if by_row else (count, place.live)
        row, step = (1, s.queries) if by_row else (s.queries, 1)
        env = {**place.env, self._column: first}
        adds = self._adds(place, number, adds)
        own = place.own.outputs.get(number)
        blocks, size, last = self._blocks(steps, s.kc)
        stride = values.strides.get(summed, 0)
        numbers = {
            "left_first": start_of(place.own.arrays[array]),
            "right_first": values.at(e, env),
            "out_first": out.at(e, env) if own is None else 0,
            "rows": extent,
            "columns": self._extents[width],
            "depth": size,
            "last_depth": last,
            "blocks": blocks,
            "left_row": row,
            "left_tile": row * s.out_rows,
            "left_step": step,
            "left_block": step * size,
            "right_panel": s.out_vectors * s.lanes,
            "right_step": stride,
            "right_block": stride * size,
            "out_row": own.type.shape[1] if own is not None else out.strides.get(rows, 0),
        }
        kernel = output_kernel(s, str(self._element), self._stored, self._extents[width])
        sums = out.base if own is None else base_of(own)
        self._call(kernel, [base_of(place.own.arrays[array]), values.base, sums], numbers, adds)

    def _adds(self, place: Place, number: int, adds: Value) -> Value:
        """Emit whether a product is added to what there is of an output: where ``adds``, or for keys."""
        e = self._e
        if self._p.outputs[number].by_row:
            return adds
        if self._s.skips:  # all are zero at first
            return e.constant(self._bit, ir.BoolAttr.get(True))
        return arith.OrIOp(adds, e.compare("ne", place.env[self._row], 0)).result

    def _blocks(self, steps: Index, most: int) -> tuple[Index, int, Index]:
        """Return blocks of ``steps``, steps of each, ``most`` or fewer, and of the last one."""
        e = self._e
        if isinstance(steps, int):
            blocks = -(-steps // most)
            size = -(-steps // blocks)
            return blocks, size, steps - (blocks - 1) * size
        before = e.floordiv(e.sub(steps, 1), most)
        return e.add(before, 1), most, e.sub(steps, e.mul(before, most))

    def _call(
        self, kernel: ProductKernel, buffers: list[Value], numbers: Mapping[str, Index], adds: Value
    ) -> None:
        given = {"planes": 1, "taps": 1, "last_taps": 1, **numbers}
        values = [self._e.index(given.get(name, 0)) for name in PRODUCT_ARGUMENTS]
        start = self._e.constant(self._element, zero(self._element))
        self._library.call(kernel, [*buffers, *values, start, adds])
