"""Emits attention on memory: a loop over blocks of queries, around calls of kernels and passes over scores.

Each block of queries is computed by one chunk, in an order that depends on shapes and the target alone.
Scores, and what becomes of them, are memory of a thread: ``[key][query]``, a block of queries wide.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.bindings import arith, func, ir, linalg, memref, vector
from mind_mlir.bindings import math as math_
from mind_mlir.lowering.schedule.attention.choice import is_turned, output_kernel, query_pack, score_kernel
from mind_mlir.lowering.schedule.attention.elements import Elements, element, load, store
from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE, read
from mind_mlir.lowering.schedule.contraction.kernels import PRODUCT_ARGUMENTS
from mind_mlir.lowering.schedule.contraction.library import Library
from mind_mlir.lowering.schedule.contraction.packing import PACK_ARGUMENTS
from mind_mlir.lowering.schedule.emission.emitter import PRIVATE_ATTRIBUTE, Emitter, zero
from mind_mlir.lowering.schedule.emission.split import Split
from mind_mlir.lowering.schedule.reading.body import repeat
from mind_mlir.lowering.schedule.reading.view import Views
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.bindings import Module, Operation, Type, Value
    from mind_mlir.lowering.schedule.attention.marked import Marked
    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.program import Scaling, Stage
    from mind_mlir.lowering.schedule.contraction.kernels import ProductKernel
    from mind_mlir.lowering.schedule.contraction.packing import PackKernel
    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.reading.view import Access, Env

#: Keys whose terms are summed one after the other.
_TERMS = 32
#: Vectors of an output that are looked at side by side.
_SIDE_BY_SIDE = 4
_INFINITY = float("inf")


def emit_attentions(module: Module) -> None:
    """Replace the marked attentions of a bufferized ``module`` by loops around calls of kernels."""
    library = Library(module)
    views = Views()
    for function in list(module.body.operations):
        if not isinstance(function, func.FuncOp) or not function.regions[0].blocks:
            continue
        marked = [op for op in find_all(function, linalg.GenericOp) if ATTENTION_ATTRIBUTE in op.attributes]
        emitter = Emitter(function) if marked else None
        for op in marked:
            assert emitter is not None
            with ir.InsertionPoint(op), op.location:
                _Emission(op.operation, views.accesses(op.operation), emitter, library).emit()
            op.operation.erase()


@dataclasses.dataclass(frozen=True)
class _Buffer:
    """An operand in memory.

    Attributes:
        value: The whole of it.
        base: The pointer to its elements, a memref of rank 0.
        first: Where it starts there, in elements.
        strides: By how many elements each dimension moves in it.
        constant: Where the element at 0 in each dimension is, from ``first`` on.
        access: How it is indexed.
    """

    value: Value
    base: Value
    first: Index
    strides: Mapping[int, int]
    constant: int
    access: Access

    @staticmethod
    def of(value: Value, access: Access) -> _Buffer:
        """Emit what says where ``value`` lies."""
        type_ = ir.MemRefType(value.type)
        steps, offset = type_.get_strides_and_offset()
        numbers = [ir.IndexType.get()] * (1 + 2 * len(steps))
        base = ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
        parts = ir.Operation.create("memref.extract_strided_metadata", [base, *numbers], [value]).results
        dynamic = offset == ir.ShapedType.get_dynamic_stride_or_offset()
        strides: dict[int, int] = {}
        constant = 0
        for index, step in zip(access, steps, strict=True):
            constant += index.constant * step
            for dim, factor in index.terms:
                strides[dim] = strides.get(dim, 0) + factor * step
        return _Buffer(value, parts[0], parts[1] if dynamic else offset, strides, constant, access)

    def at(self, emitter: Emitter, env: Env) -> Index:
        """Return where the element is, other dimensions than those of ``env`` being 0."""
        place = emitter.add(self.first, self.constant)
        for dim, step in self.strides.items():
            if dim in env:
                place = emitter.add(place, emitter.mul(env[dim], step))
        return place

    def indices(self, emitter: Emitter, env: Env) -> list[Index]:
        """Return the indices of the element at ``env``."""
        return [index.emit(emitter, env) for index in self.access]


@dataclasses.dataclass(frozen=True)
class _Scratch:
    """Memory of a thread.

    Attributes:
        queries: The rows of each kind of scores, ``[depth][query]``.
        arrays: Scores and what becomes of them, ``[key][query]``.
        tiles: Elements of inputs that were turned, ``[key][query]``, by number.
        row: A number for each query.
        greatest: The greatest score of each query so far.
        sums: The sum of each query so far.
    """

    queries: list[Value]
    arrays: list[Value]
    tiles: dict[int, Value]
    row: Value
    greatest: Value
    sums: Value


class _Emission:
    """Emits one attention at the insertion point."""

    def __init__(self, op: Operation, accesses: Sequence[Access], emitter: Emitter, library: Library) -> None:
        self._e = emitter
        self._library = library
        self._m: Marked = read(op, accesses)
        self._p = self._m.program
        self._s = self._m.schedule
        self._buffers = [
            _Buffer.of(value, access) for value, access in zip(op.operands, accesses, strict=True)
        ]
        self._extents = _extents(op, accesses)
        self._row, self._column = self._p.row, self._p.column
        self._element: Type = self._p.scores[0].type
        self._bit = ir.IntegerType.get_signless(1)
        self._queries = self._extents[self._row]
        self._keys = self._extents[self._column]
        self._depths = [self._row + 2 + number for number in range(len(self._m.scores))]
        self._widths = [self._buffers[number].access[-1].dim or 0 for number in self._m.outputs]

    def emit(self) -> None:
        """Emit the loop over blocks of queries, or over heads where outputs have rows for keys."""
        e, s = self._e, self._s
        blocks = -(-self._queries // s.queries)
        by_row = all(output.by_row for output in self._p.outputs)
        counts = [blocks if by_row else 1, *reversed(self._extents[: self._row])]
        total = math.prod(counts)
        count = -(-total // s.units)
        scratch = self._scratch(parallel=False) if count == 1 else None

        def one(number: Index, own: _Scratch) -> list[Value]:
            digits: list[Index] = []
            for place, extent in enumerate(counts):
                is_last = math.prod(counts[place:]) == extent
                digits.append(0 if extent == 1 else number if is_last else e.modulo(number, extent))
                number = 0 if is_last else e.floordiv(number, extent)
            env = dict(zip(reversed(range(self._row)), digits[1:], strict=True))
            if by_row:
                self._block(env, digits[0], own, None)
                return []
            finite = None
            if s.skips:
                self._clear(env)
                finite = self._finite(env, self._column, (0, self._keys))
            return e.loop((0, blocks, 1), [], lambda block, _: self._block(env, block, own, finite))

        def chunk(first: Index, end: Index, _: list[Value]) -> list[Value]:
            own = scratch or self._scratch(parallel=True)
            return e.loop((first, end, 1), [], lambda number, _: one(number, own))

        e.chunks(Split(s.units, count, "", s.brief), total, [], chunk)

    def _scratch(self, *, parallel: bool) -> _Scratch:
        """Emit the memory of a chunk."""
        s = self._s
        square = query_pack(s, str(self._element), turned=True).square
        rounded = [-(-self._extents[dim] // square) * square for dim in self._depths]
        turned = [
            node for node in self._p.inputs if is_turned(self._p, self._buffers[self._input(node)].access)
        ]

        def memory(rows: int, type_: Type) -> Value:
            shape = ir.MemRefType.get([rows, s.queries], type_)
            if not parallel:
                return memref.AllocOp(shape, [], []).result
            attributes = {
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                PRIVATE_ATTRIBUTE: ir.UnitAttr.get(),
            }
            return ir.Operation.create("memref.alloca", [shape], [], attributes).result

        return _Scratch(
            [memory(depth, self._element) for depth in rounded],
            [memory(s.keys, self._element) for _ in range(self._p.arrays)],
            {node.number: memory(-(-_TERMS // square) * square, node.type) for node in turned},
            *(memory(1, self._element) for _ in range(3)),
        )

    def _input(self, node: Node) -> int:
        """Return the number of the operand that ``node`` is an element of."""
        return self._m.inputs[node.number]

    # One block of queries.

    def _block(self, env: Env, block: Index, own: _Scratch, finite: Value | None) -> list[Value]:
        e, s = self._e, self._s
        first = e.mul(block, s.queries)
        ragged = self._queries % s.queries
        live = e.minimum(e.sub(self._queries, first), s.queries) if ragged else s.queries
        here = {**env, self._row: first}
        for number, (queries, _) in enumerate(self._m.scores):
            self._pack_queries(self._buffers[queries], here, live, number, own)
        limit = self._limit(first, live)
        if finite is not None:
            finite = arith.AndIOp(finite, self._finite(here, self._row, (first, live))).result
            limit = arith.SelectOp(finite, e.index(limit), e.index(self._keys)).result
        elements = Elements(e, s.lanes, s.vectors, self._row).inside(
            here, lambda node: self._read((own, live), node, here, 0)
        )
        place = _Place(here, live, elements, own)
        if s.keys < self._keys:
            self._online(place, limit)
        else:
            self._whole(place, limit)
        return []

    def _limit(self, first: Index, live: Index) -> Index:
        """Return how many keys the queries of a block see at most: one or more."""
        e, s = self._e, self._s
        if not s.skips:
            return self._keys
        seen = e.add(e.add(first, live), s.visible)
        if s.visible < 0:
            seen = arith.MaxSIOp(e.index(seen), e.index(1)).result
        return e.minimum(seen, self._keys)

    def _clear(self, env: Env) -> None:
        """Emit zeros where outputs have rows for keys, some of which no query may see."""
        e, lanes = self._e, self._s.lanes
        nothing = self._splat(0.0)

        def key(index: Index, _: list[Value]) -> list[Value]:
            for number, output in enumerate(self._p.outputs):
                if not output.by_row:
                    width = self._widths[number]
                    for column in range(0, self._extents[width], lanes):
                        here = {**env, self._column: index, width: column}
                        self._store_columns(
                            nothing, self._buffers[self._m.outputs[number]], here, column, number
                        )
            return []

        e.loop((0, self._keys, 1), [], key)

    def _finite(self, env: Env, rows: int, bounds: tuple[Index, Index]) -> Value:
        """Emit whether all factors with a row for each key, or query, are finite there.

        Bounds are the first row and how many there are.
        """
        e, lanes = self._e, self._s.lanes
        queries = rows == self._row
        found = {
            pair[0 if queries else 1]: depth for pair, depth in zip(self._m.scores, self._depths, strict=True)
        }
        for number, output in enumerate(self._p.outputs):
            if output.by_row != queries:
                found[self._m.values[number]] = self._widths[number]
        known: dict[tuple[object, ...], int] = {}
        for operand, width in found.items():  # a tensor may be several factors
            buffer = self._buffers[operand]
            steps = (each for each in buffer.strides.items() if each[0] != width)
            known.setdefault((buffer.value, *steps), operand)
        if any(self._buffers[operand].access[-1].dim != width for operand, width in found.items()):
            return e.constant(self._bit, ir.BoolAttr.get(False))  # to look would take as long as to compute
        first, count = bounds
        nothing = self._splat(0.0)

        def row(index: Index, carried: list[Value]) -> list[Value]:
            sums = list(carried)
            here = {**env, rows: e.add(first, index)}
            for operand in known.values():
                buffer, width = self._buffers[operand], found[operand]
                for place, column in enumerate(range(0, self._extents[width], lanes)):
                    value = self._load_row(buffer, {**here, width: column}, self._extents[width] - column)
                    product = arith.MulFOp(value, nothing).result
                    sums[place % len(sums)] = arith.AddFOp(sums[place % len(sums)], product).result
            return sums

        zeros = e.loop((0, count, 1), [nothing] * _SIDE_BY_SIDE, row)
        flags = [arith.CmpFOp(arith.CmpFPredicate.OEQ, each, nothing).result for each in zeros]
        for flag in flags[1:]:
            flags[0] = arith.AndIOp(flags[0], flag).result
        kind = ir.Attribute.parse("#vector.kind<and>")
        return vector.ReductionOp(self._bit, kind, flags[0]).result

    def _pack_queries(self, queries: _Buffer, env: Env, live: Index, number: int, own: _Scratch) -> None:
        depth = self._depths[number]
        kernel = query_pack(self._s, str(self._element), turned=queries.access[-1].dim != self._row)
        stride = queries.strides[self._row if kernel.transposes else depth] if self._queries > 1 else 1
        self._pack(
            kernel,
            queries.base,
            own.queries[number],
            queries.at(self._e, env),
            (live, self._extents[depth], stride),
        )

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
        self._library.call(kernel, [source, _base(target), *values])

    def _whole(self, place: _Place, limit: Index) -> None:
        """Emit all keys at once."""
        e = self._e
        for number in range(len(self._m.scores)):
            self._score(place, number, 0, limit)
        stored = dict(zip(self._p.scores, range(len(self._p.scores)), strict=True))
        for stage in self._p.stages:
            self._stage(place, stage, stored, (0, limit))
            kept = {array for array, _ in stage.stores}
            stored = {node: array for node, array in stored.items() if array not in kept}
            stored |= {node: array for array, node in stage.stores}
        for number, term in enumerate(self._p.terms):
            is_first = e.constant(self._bit, ir.BoolAttr.get(False))
            self._product(place, number, stored[term], (0, limit), is_first)
            self._finish(place, number, limit)

    def _online(self, place: _Place, limit: Index) -> None:
        """Emit some keys at a time: sums, and the output, are scaled when a row's maximum grows."""
        e, s = self._e, self._s
        own = place.own
        greatest, total = (stage.rows[0] for stage in self._p.stages[:2])
        for c in range(s.vectors):
            store(e, self._neutral(greatest), own.greatest, [0, c * s.lanes])
            store(e, self._splat(0.0), own.sums, [0, c * s.lanes])

        def keys(first: Index, _: list[Value]) -> list[Value]:
            here = dataclasses.replace(place, elements=place.elements.inside({}))
            count = e.minimum(e.sub(limit, first), s.keys)
            self._score(here, 0, first, count)
            stored = {self._p.scores[0]: 0}
            found = self._stage(here, self._p.stages[0], stored, (first, count))
            self._grow(here, greatest, found)
            stored = {node: array for array, node in self._p.stages[0].stores} or stored
            sums = self._stage(here, self._p.stages[1], stored, (first, count))
            for c, value in enumerate(sums):
                at = [0, c * s.lanes]
                scaled = arith.MulFOp(load(e, s.lanes, own.sums, at), load(e, s.lanes, own.row, at)).result
                store(e, arith.AddFOp(scaled, value).result, own.sums, at)
            later = arith.CmpIOp(arith.CmpIPredicate.ne, e.index(first), e.index(0)).result
            self._shrink(here, later)
            self._product(here, 0, 0, (first, count), later)
            return []

        e.loop((0, limit, s.keys), [], keys)
        for row, memory in ((greatest, own.greatest), (total, own.sums)):
            vectors = [load(e, s.lanes, memory, [0, c * s.lanes]) for c in range(s.vectors)]
            place.elements.know(row, vectors)
        self._finish(place, 0, limit)

    def _grow(self, place: _Place, greatest: Node, found: Sequence[Value]) -> None:
        """Emit the maximum so far, and by what all before has to be scaled.

        While all scores are minus infinity, zero is subtracted from them in its place: their exponentials are
        zero, and a later score finds sums of zero.
        """
        e, s, own = self._e, self._s, place.own
        maxima = []
        for c, value in enumerate(found):
            at = [0, c * s.lanes]
            old = load(e, s.lanes, own.greatest, at)
            new = arith.MaximumFOp(old, value).result
            store(e, new, own.greatest, at)
            lowest = arith.CmpFOp(arith.CmpFPredicate.OEQ, new, self._splat(-_INFINITY)).result
            finite = arith.SelectOp(lowest, self._splat(0.0), new).result
            store(e, math_.ExpOp(arith.SubFOp(old, finite).result).result, own.row, at)
            maxima.append(finite)
        place.elements.know(greatest, maxima)

    def _shrink(self, place: _Place, later: Value) -> None:
        """Emit the scaling of the output so far, if there is any."""
        e, s = self._e, self._s
        out = self._buffers[self._m.outputs[0]]
        type_ = e.vector_type(s.lanes, self._element)
        first = place.env[self._row]
        rows = arith.SelectOp(later, e.index(place.live), e.index(0)).result

        def row(local: Index, _: list[Value]) -> list[Value]:
            factor = e.broadcast(type_, element(e, place.own.row, [0, local]))
            for column in range(0, self._extents[self._widths[0]], s.lanes):
                env = {**place.env, self._row: e.add(first, local), self._widths[0]: column}
                value = self._load_columns(out, env, column, 0)
                self._store_columns(arith.MulFOp(value, factor).result, out, env, column, 0)
            return []

        e.loop((0, rows, 1), [], row)

    def _splat(self, number: float) -> Value:
        type_ = self._e.vector_type(self._s.lanes, self._element)
        return self._e.splat(type_, ir.FloatAttr.get(self._element, number))

    # Products.

    def _score(self, place: _Place, number: int, first: Index, count: Index) -> None:
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
            "out_first": 0,
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
        buffers = [keys.base, _base(place.own.queries[number]), _base(target)]
        is_first = e.constant(self._bit, ir.BoolAttr.get(False))
        self._call(score_kernel(s, str(self._element)), buffers, numbers, is_first)

    def _product(
        self, place: _Place, number: int, array: int, keys: tuple[Index, Index], adds: Value
    ) -> None:
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
        if not by_row:
            later = arith.CmpIOp(arith.CmpIPredicate.ne, e.index(place.env[self._row]), e.index(0)).result
            adds = arith.OrIOp(adds, later).result
            if s.skips:  # all are zero at first
                adds = e.constant(self._bit, ir.BoolAttr.get(True))
        blocks, size, last = self._blocks(steps)
        stride = values.strides.get(summed, 0)
        numbers = {
            "left_first": 0,
            "right_first": values.at(e, env),
            "out_first": out.at(e, env),
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
            "out_row": out.strides.get(rows, 0),
        }
        kernel = output_kernel(s, str(self._element), self._extents[width])
        self._call(kernel, [_base(place.own.arrays[array]), values.base, out.base], numbers, adds)

    def _blocks(self, steps: Index) -> tuple[Index, int, Index]:
        """Return blocks of ``steps``, steps of each, and of the last one."""
        e, most = self._e, self._s.kc
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

    # Passes over scores.

    def _stage(
        self, place: _Place, stage: Stage, stored: Mapping[Node, int], keys: tuple[Index, Index]
    ) -> list[Value]:
        """Emit a pass over scores of keys, of which ``keys`` says the first one and how many there are.

        What it reduces is then known at ``place``.
        """
        e, s = self._e, self._s
        roots = [*(row.operands[0] for row in stage.rows), *(node for _, node in stage.stores)]
        if not roots:
            return []
        place.elements.compute(roots, stored.keys(), self._column)
        neutral = [value for row in stage.rows for value in [self._neutral(row)] * s.vectors]

        def one(local: Index, carried: list[Value], elements: Elements) -> list[Value]:
            for node, array in stored.items():
                elements.know(
                    node,
                    [
                        load(e, s.lanes, place.own.arrays[array], [local, c * s.lanes])
                        for c in range(s.vectors)
                    ],
                )
            terms = [value for row in stage.rows for value in elements.vectors(row.operands[0])]
            kept = [(array, elements.vectors(node)) for array, node in stage.stores]
            for array, several in kept:
                for c, value in enumerate(several):
                    store(e, value, place.own.arrays[array], [local, c * s.lanes])
            return self._combined(stage, carried, terms)

        first, count = keys
        memory = place.own, place.live

        def several(start: Index, carried: list[Value]) -> list[Value]:
            end = e.minimum(e.add(start, _TERMS), count)
            self._turn(place, roots, stored, e.add(first, start), e.sub(end, start))

            def inner(local: Index, inside: list[Value]) -> list[Value]:
                env = {**place.env, self._column: e.add(first, local)}
                tile = e.sub(local, start)
                elements = place.elements.inside(env, lambda node: self._read(memory, node, env, tile))
                return one(local, inside, elements)

            sums = e.loop((start, end, 1), neutral, inner)
            return self._combined(stage, carried, sums)

        results = e.loop((0, count, _TERMS), neutral, several)
        for number, row in enumerate(stage.rows):
            place.elements.know(row, results[number * s.vectors : (number + 1) * s.vectors])
        return results

    def _neutral(self, row: Node) -> Value:
        type_ = self._e.vector_type(self._s.lanes, row.type)
        value = -0.0 if row.combiner == "arith.addf" else -_INFINITY
        return self._e.splat(type_, ir.FloatAttr.get(row.type, value))

    def _combined(self, stage: Stage, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        names = [row.combiner for row in stage.rows for _ in range(self._s.vectors)]
        return [
            ir.Operation.create(name, [one.type], [one, other]).result
            for name, one, other in zip(names, left, right, strict=True)
        ]

    # Inputs.

    def _read(self, memory: tuple[_Scratch, Index], node: Node, env: Env, tile: Index) -> Value | list[Value]:
        """Emit the elements of an input for a key, the one number ``tile`` of those that were turned."""
        e, s = self._e, self._s
        own, live = memory
        buffer = self._buffers[self._input(node)]
        if self._row not in node.dims:
            return element(e, buffer.value, buffer.indices(e, env))
        if node.number in own.tiles:
            source = own.tiles[node.number]
            return [load(e, s.lanes, source, [tile, c * s.lanes]) for c in range(s.vectors)]
        indices = buffer.indices(e, env)
        if self._queries % s.queries == 0:
            return [
                load(e, s.lanes, buffer.value, [*indices[:-1], e.add(indices[-1], c * s.lanes)])
                for c in range(s.vectors)
            ]
        return [
            self._load_masked(buffer.value, indices, c * s.lanes, e.sub(live, c * s.lanes))
            for c in range(s.vectors)
        ]

    def _load_masked(self, source: Value, indices: Sequence[Index], offset: int, live: Index) -> Value:
        e = self._e
        type_ = e.vector_type(self._s.lanes, source.type.element_type)
        mask = vector.CreateMaskOp(ir.VectorType.get([self._s.lanes], self._bit), [e.index(live)]).result
        places = [e.index(each) for each in (*indices[:-1], e.add(indices[-1], offset))]
        off = e.splat(type_, zero(source.type.element_type))
        return vector.MaskedLoadOp(type_, source, places, mask, off).result

    def _turn(
        self, place: _Place, roots: Sequence[Node], stored: Mapping[Node, int], first: Index, count: Index
    ) -> None:
        """Emit tiles of the inputs that ``roots`` need and that are contiguous along the keys."""
        needed = _elements_below(roots, stored)
        for node in self._p.inputs:
            if node in needed and node.number in place.own.tiles:
                buffer = self._buffers[self._input(node)]
                start = buffer.at(self._e, {**place.env, self._column: first})
                kernel = query_pack(self._s, str(node.type), turned=True)
                target = place.own.tiles[node.number]
                bounds = (place.live, count, buffer.strides[self._row])
                self._pack(kernel, buffer.base, target, start, bounds)

    # What follows the products.

    def _finish(self, place: _Place, number: int, limit: Index) -> None:
        """Emit what is done to a complete output: it is scaled, and takes part in what was skipped."""
        scaling = self._p.scalings[number]
        if scaling is not None:
            place.elements.compute([scaling.factor], (), self._column)
            for c, value in enumerate(place.elements.vectors(scaling.factor)):
                store(self._e, value, place.own.row, [0, c * self._s.lanes])
        skips = self._s.skips and not self._p.needs_finite
        if scaling is not None or skips:
            self._rows(place, number, scaling, limit)

    def _rows(self, place: _Place, number: int, scaling: Scaling | None, limit: Index) -> None:
        """Emit a loop over the rows of an output that scales them, some vectors at a time."""
        lanes = self._s.lanes
        vectors = -(-self._extents[self._widths[number]] // lanes)
        for start in range(0, vectors, _SIDE_BY_SIDE):
            columns = [c * lanes for c in range(start, min(start + _SIDE_BY_SIDE, vectors))]
            adds = self._s.skips and not self._p.needs_finite
            skipped = self._skipped(place, number, columns, limit) if adds else []
            self._scale(place, number, scaling, columns, skipped)

    def _scale(
        self,
        place: _Place,
        number: int,
        scaling: Scaling | None,
        columns: Sequence[int],
        skipped: Sequence[Value],
    ) -> None:
        e, s = self._e, self._s
        out = self._buffers[self._m.outputs[number]]
        type_ = e.vector_type(s.lanes, self._element)
        first = place.env[self._row]

        def row(local: Index, _: list[Value]) -> list[Value]:
            factor = None
            if scaling is not None:
                factor = e.broadcast(type_, element(e, place.own.row, [0, local]))
            for c, column in enumerate(columns):
                env = {**place.env, self._row: e.add(first, local), self._widths[number]: column}
                value = self._load_columns(out, env, column, number)
                if skipped:
                    value = arith.AddFOp(value, skipped[c]).result
                if scaling is not None and factor is not None:
                    operands = [
                        value if operand is scaling.term else factor for operand in scaling.node.operands
                    ]
                    value = repeat(scaling.node.op, operands, (s.lanes,))[0]
                self._store_columns(value, out, env, column, number)
            return []

        e.loop((0, place.live, 1), [], row)

    def _skipped(self, place: _Place, number: int, columns: Sequence[int], limit: Index) -> list[Value]:
        """Emit what keys that no query sees have a share of: nothing, unless their values are not finite."""
        e = self._e
        values = self._buffers[self._m.values[number]]
        type_ = e.vector_type(self._s.lanes, self._element)
        nothing = e.splat(type_, zero(self._element))

        def key(index: Index, carried: list[Value]) -> list[Value]:
            found = []
            for c, column in enumerate(columns):
                env = {**place.env, self._column: index, self._widths[number]: column}
                value = self._load_columns(values, env, column, number)
                found.append(arith.AddFOp(carried[c], arith.MulFOp(value, nothing).result).result)
            return found

        return e.loop((limit, self._keys, 1), [nothing] * len(columns), key)

    def _load_columns(self, buffer: _Buffer, env: Env, column: int, number: int) -> Value:
        return self._load_row(buffer, env, self._extents[self._widths[number]] - column)

    def _load_row(self, buffer: _Buffer, env: Env, live: int) -> Value:
        """Emit a vector along the last dimension, which ends after ``live`` elements."""
        e, lanes = self._e, self._s.lanes
        indices = buffer.indices(e, env)
        if live >= lanes:
            return load(e, lanes, buffer.value, indices)
        return self._load_masked(buffer.value, indices, 0, live)

    def _store_columns(self, value: Value, buffer: _Buffer, env: Env, column: int, number: int) -> None:
        e, lanes = self._e, self._s.lanes
        live = self._extents[self._widths[number]] - column
        indices = buffer.indices(e, env)
        if live >= lanes:
            store(e, value, buffer.value, indices)
            return
        mask = vector.CreateMaskOp(ir.VectorType.get([lanes], self._bit), [e.index(live)]).result
        vector.MaskedStoreOp(buffer.value, [e.index(each) for each in indices], mask, value)


@dataclasses.dataclass(frozen=True)
class _Place:
    """A block of queries.

    Attributes:
        env: The dimensions that are known; of the queries, the first one.
        live: How many queries there are.
        elements: What is known of them.
        own: Memory.
    """

    env: Env
    live: Index
    elements: Elements
    own: _Scratch


def _elements_below(roots: Sequence[Node], stored: Mapping[Node, int]) -> set[Node]:
    found: set[Node] = set()
    work = list(roots)
    while work:
        node = work.pop()
        if node not in found:
            found.add(node)
            if node not in stored and node.kind != "row":
                work += node.operands
    return found


def _base(scratch: Value) -> Value:
    """Emit the pointer to the elements of memory of a thread."""
    base = ir.MemRefType.get([], scratch.type.element_type)
    numbers = [ir.IndexType.get()] * 5
    return ir.Operation.create("memref.extract_strided_metadata", [base, *numbers], [scratch]).results[0]


def _extents(op: Operation, accesses: Sequence[Access]) -> list[int]:
    """Return the extent of each dimension of a marked operation."""
    found: dict[int, int] = {}
    for operand, access in zip(op.operands, accesses, strict=True):
        for extent, index in zip(operand.type.shape, access, strict=True):
            if index.dim is not None:
                found[index.dim] = extent
    return [found[dim] for dim in range(len(found))]
