"""Emits what an attention does with its tensors: vectors, packing, scores, and products with values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.choice import output_kernel, query_pack, score_kernel
from mind_mlir.lowering.schedule.attention.marked import Marked, is_constant, read
from mind_mlir.lowering.schedule.attention.memory import (
    Buffer,
    Place,
    Scratch,
    base_of,
    extents_of,
    load,
    start_of,
    store,
)
from mind_mlir.lowering.schedule.attention.nodes import Node, batches_of
from mind_mlir.lowering.schedule.contraction.kernels.packing import PACK_ARGUMENTS, PackKernel
from mind_mlir.lowering.schedule.contraction.kernels.product import PRODUCT_ARGUMENTS, ProductKernel
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.mlir.bindings import Operation, Type, Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.library import Library
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env


class Products:
    """Reads and writes the operands of one attention, and emits its calls of kernels."""

    def __init__(self, op: Operation, accesses: Sequence[Access], emitter: Emitter, library: Library) -> None:
        self._e = emitter
        self._library = library
        self._m: Marked = read(op, accesses)
        self._p = self._m.program
        self._s = self._m.schedule
        self._buffers = [
            Buffer.of(value, access) for value, access in zip(op.operands, accesses, strict=True)
        ]
        self._extents = extents_of(op, accesses)
        self._row, self._column = self._p.row, self._p.column
        self._element: Type = self._p.scores[0].type
        self._stored: Type = op.operands[self._m.values[0]].type.element_type
        self._bit = ir.IntegerType.get_signless(1)
        self._word = ir.IntegerType.get_signless(32)
        self._words = emitter.vector_type(self._s.lanes, self._word)
        #: Words of two keys of a value, which fill a column of its panel.
        self._value_words = -(-self._extents[self._column] // 2)
        self._queries = self._extents[self._row]
        self._keys = self._extents[self._column]
        self._depths = [self._row + 2 + number for number in range(len(self._m.scores))]
        self._widths = [self._buffers[number].access[-1].dim or 0 for number in self._m.outputs]

        #: The batches of tensors of elements, and those that these are summed over.
        kept = [self._buffers[number].access for number in self._m.kept]
        self._own = batches_of(kept[0], self._row) if kept else ()
        self._summed = tuple(
            dim for dim in range(self._row) if kept and dim not in self._own and self._extents[dim] > 1
        )

    def _places_of(self, nodes: Sequence[Node]) -> list[int]:
        """Return the arrays where nodes that passes compute are in the end."""
        places = {node: place for place, node in enumerate(self._p.scores)}
        places |= {node: place for stage in self._p.stages for place, node in stage.stores}
        return [places[node] for node in nodes]

    def _words_of(self, number: int) -> int:
        """Return the words of a column of the values of an output: of two keys, or of two queries."""
        return self._value_words if self._p.outputs[number].by_row else self._s.queries // 2

    def _word_rows(self, number: int) -> int:
        """Return the rows of these words: panel after panel, and one for packing info."""
        panels = -(-self._extents[self._widths[number]] // (self._s.out_vectors * self._s.lanes))
        return panels * self._words_of(number) + 1

    def _input(self, node: Node) -> int:
        """Return the number of the operand that ``node`` is an element of."""
        return self._m.inputs[node.number]

    def _splat(self, number: float) -> Value:
        return self._e.number(self._e.vector_type(self._s.lanes, self._element), number)

    def _load_masked(
        self, source: Value, indices: Sequence[Index], offset: int, live: Index, lanes: int = 0
    ) -> Value:
        e = self._e
        lanes = lanes or self._s.lanes
        type_ = e.vector_type(lanes, source.type.element_type)
        mask = vector.CreateMaskOp(ir.VectorType.get([lanes], self._bit), [e.index(live)]).result
        places = [e.index(each) for each in (*indices[:-1], e.add(indices[-1], offset))]
        off = e.number(type_, 0)
        return vector.MaskedLoadOp(type_, source, places, mask, off).result

    def _load_row(self, buffer: Buffer, env: Env, live: int) -> Value:
        """Emit a vector along the last dimension, which ends after ``live`` elements."""
        e, lanes = self._e, self._s.lanes
        indices = buffer.indices(e, env)
        if live >= lanes:
            value = load(e, lanes, buffer.value, indices)
        else:
            value = self._load_masked(buffer.value, indices, 0, live)
        return e.cast(value, self._element)

    def _rounds(self, number: int) -> bool:
        """Return whether sums of an output are rounded when they are complete."""
        return bool(self._buffers[self._m.outputs[number]].value.type.element_type != self._element)

    def _load_sums(self, place: Place, env: Env, local: Index, column: int, number: int) -> Value:
        """Emit what the row ``local`` of an output is so far."""
        if self._rounds(number):
            return load(self._e, self._s.lanes, place.own.outputs[number], [local, column])
        return self._load_columns(self._buffers[self._m.outputs[number]], env, column, number)

    def _store_sums(self, value: Value, place: Place, env: Env, local: Index, column: int) -> None:
        """Emit a store of the row ``local`` of the only output."""
        if self._rounds(0):
            store(self._e, value, place.own.outputs[0], [local, column])
        else:
            self._store_columns(value, self._buffers[self._m.outputs[0]], env, column, 0)

    def _load_columns(self, buffer: Buffer, env: Env, column: int, number: int) -> Value:
        return self._load_row(buffer, env, self._extents[self._widths[number]] - column)

    def _store_columns(self, value: Value, buffer: Buffer, env: Env, column: int, number: int) -> None:
        e, lanes = self._e, self._s.lanes
        live = self._extents[self._widths[number]] - column
        indices = buffer.indices(e, env)
        value = e.cast(value, buffer.value.type.element_type)
        if live >= lanes:
            store(e, value, buffer.value, indices)
            return
        mask = vector.CreateMaskOp(ir.VectorType.get([lanes], self._bit), [e.index(live)]).result
        vector.MaskedStoreOp(buffer.value, [e.index(each) for each in indices], mask, value)

    def _pack_queries(self, queries: Buffer, env: Env, live: Index, number: int, own: Scratch) -> None:
        depth = self._depths[number]
        kernel = query_pack(
            self._s, str(self._element), self._stored, transposed=queries.access[-1].dim != self._row
        )
        stride = queries.strides.get(self._row if kernel.transposes else depth, 1)
        target, bounds = own.queries[number], (live, self._extents[depth], stride)
        self._pack(kernel, queries.base, target, bounds, source_first=queries.at(self._e, env))
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
        self,
        kernel: PackKernel,
        source: Value,
        target: Value,
        bounds: tuple[Index, Index, int],
        **others: Index,
    ) -> None:
        """Emit a packing of so many columns and steps into ``target``, whose columns move so far."""
        numbers: dict[str, Index] = dict(zip(("columns", "depth", "stride"), bounds, strict=True))
        numbers = {"panel": math.prod(target.type.shape), **numbers, **others}
        values = [self._e.index(numbers.get(name, 0)) for name in PACK_ARGUMENTS]
        self._library.call(kernel, [source, base_of(target), *values])

    def _score(self, place: Place, number: int, first: Index, count: Index) -> None:
        """Emit the scores of ``count`` keys, from key ``first`` on."""
        e, s = self._e, self._s
        keys = self._buffers[self._m.scores[number][1]]
        depth, target = self._depths[number], place.own.arrays[number]
        numbers = self._numbers(
            s.rows,
            (count, s.queries),
            self._blocks(self._extents[depth], s.kc),
            left=(keys.at(e, {**place.env, self._column: first}), *self._steps(keys, self._column, depth)),
            right=(0, s.queries, s.queries),
            out=(start_of(target), s.queries),
        )
        buffers = [keys.base, base_of(place.own.queries[number]), base_of(target)]
        kernel = score_kernel(s, str(self._element), self._stored)
        self._call(kernel, buffers, numbers, e.flag(False))

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
        numbers = self._numbers(
            s.out_rows,
            (extent, self._extents[width]),
            self._blocks(steps, s.kc),
            left=(start_of(place.own.arrays[array]), row, step),
            right=(values.at(e, env), s.out_vectors * s.lanes, values.strides.get(summed, 0)),
            out=(0, own.type.shape[1]) if own is not None else (out.at(e, env), out.strides.get(rows, 0)),
        )
        kernel = output_kernel(s, str(self._element), self._stored, self._extents[width])
        sums = out.base if own is None else base_of(own)
        self._call(kernel, [base_of(place.own.arrays[array]), values.base, sums], numbers, adds)

    def _adds(self, place: Place, number: int, adds: Value) -> Value:
        """Emit whether a product is added to what there is of an output: where ``adds``, or for keys."""
        e = self._e
        if self._p.outputs[number].by_row:
            return adds
        if self._s.skips:  # all are zero at first
            return e.flag(True)
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

    def _steps(self, buffer: Buffer, *dims: int) -> tuple[int, ...]:
        return tuple(buffer.strides.get(dim, 0) for dim in dims)

    def _numbers(
        self,
        tile: int,
        bounds: tuple[Index, Index],
        blocks: tuple[Index, int, Index],
        *,
        left: tuple[Index, ...],
        right: tuple[Index, int, int],
        out: tuple[Index, int],
    ) -> dict[str, Index]:
        """Return what a kernel is told of a product.

        Args:
            tile: Rows of a tile.
            bounds: Rows and columns of the result.
            blocks: Blocks of steps, steps of each, and of the last one.
            left: Where the left factor begins, and how far it moves from row to row and from step to step.
            right: Where the right one begins, and how far it moves from panel to panel and from step to step.
            out: Where the result begins, and how far it moves from row to row.
        """
        count, size, last = blocks
        return {
            "left_first": left[0],
            "right_first": right[0],
            "out_first": out[0],
            "rows": bounds[0],
            "columns": bounds[1],
            "depth": size,
            "last_depth": last,
            "blocks": count,
            "left_row": left[1],
            "left_step": left[2],
            "right_panel": right[1],
            "right_step": right[2],
            "left_tile": self._e.mul(left[1], tile),
            "left_block": self._e.mul(left[2], size),
            "right_block": right[2] * size,
            "out_row": out[1],
        }

    def _call(
        self, kernel: ProductKernel, buffers: list[Value], numbers: Mapping[str, Index], adds: Value
    ) -> None:
        numbers = {"planes": 1, "taps": 1, "last_taps": 1, **numbers}
        values = [self._e.index(numbers.get(name, 0)) for name in PRODUCT_ARGUMENTS]
        self._library.call(kernel, [*buffers, *values, self._e.number(self._element, 0), adds])
