"""Emits contractions on memory: factors are packed if need be, then pieces of the result are computed.

Both are loops over chunks that threads may share, around calls of kernels. Each element of a result is
computed by one call of one chunk, in an order that depends on the shape and the target alone.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.abi import ALIGNMENT
from mind_mlir.bindings import arith, func, ir, linalg, memref, scf
from mind_mlir.lowering.schedule.contraction.choice import dots_of, left_pack, product_kernel, right_pack
from mind_mlir.lowering.schedule.contraction.constant_factors import Layout, PackedConstants
from mind_mlir.lowering.schedule.contraction.dots import LEAST, NO_MAGNITUDE, SUMS, are_normal
from mind_mlir.lowering.schedule.contraction.few_rows_emission import FewRows
from mind_mlir.lowering.schedule.contraction.geometry import ONCE, Loop, geometry
from mind_mlir.lowering.schedule.contraction.kernels import PRODUCT_ARGUMENTS
from mind_mlir.lowering.schedule.contraction.library import Library
from mind_mlir.lowering.schedule.contraction.marked import SCHEDULE_ATTRIBUTE, START_ATTRIBUTE, schedule_of
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.contraction.matmul_schedule import packs_steps, reduction
from mind_mlir.lowering.schedule.contraction.pieces import parts_of
from mind_mlir.lowering.schedule.contraction.runs import LoopNumbers, runs_together, same_memory
from mind_mlir.lowering.schedule.contraction.text import byte_width
from mind_mlir.lowering.schedule.emission.constants import BYTE_NS
from mind_mlir.lowering.schedule.emission.emitter import PRIVATE_ATTRIBUTE, Emitter, zero
from mind_mlir.lowering.schedule.emission.split import Split, split
from mind_mlir.lowering.schedule.reading.view import Views
from mind_mlir.mlir.memory import is_row_major
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.bindings import Attribute, Module, Operation, Value
    from mind_mlir.lowering.schedule.contraction.epilogue import Epilogue
    from mind_mlir.lowering.schedule.contraction.match import Contraction, Operand
    from mind_mlir.lowering.schedule.contraction.matmul_schedule import MatmulSchedule
    from mind_mlir.lowering.schedule.contraction.packing import PackKernel
    from mind_mlir.lowering.schedule.contraction.pieces import Part
    from mind_mlir.lowering.schedule.emission.emitter import Index

    #: Marked products in the order of a block, each with the loops over its result.
    Products: TypeAlias = Sequence[tuple[Operation, tuple[Part, ...]]]
    #: The same, each with what ends its pieces, in runs that are computed together.
    Ended: TypeAlias = list[list[tuple[Operation, Epilogue | None]]]

#: What has been packed for products that are computed together, by what it is.
_Rooms: TypeAlias = "dict[object, _Buffer]"
_LOOPS = ("scf.for", "scf.while")


def emit_contractions(module: Module, end: Callable[[Products], Ended]) -> None:
    """Replace the marked contractions of a bufferized ``module`` by loops around calls of kernels.

    Args:
        module: Functions on memory.
        end: Says of products that may be computed together which ones are, and what ends their pieces.
    """
    library = Library(module)
    views = Views()
    numbers = LoopNumbers()
    constants = PackedConstants(module)
    for function in list(module.body.operations):
        if not isinstance(function, func.FuncOp) or not function.regions[0].blocks:
            continue
        marked = [op for op in find_all(function, linalg.GenericOp) if SCHEDULE_ATTRIBUTE in op.attributes]
        emitter = Emitter(function) if marked else None
        for together in runs_together(marked):
            assert emitter is not None
            for run in end([(op, _parts(op, views)) for op in together]):
                _emit(run, emitter, library, constants, views, numbers)
    constants.drop_replaced()


def _emit(
    run: Sequence[tuple[Operation, Epilogue | None]],
    emitter: Emitter,
    library: Library,
    constants: PackedConstants,
    views: Views,
    numbers: LoopNumbers,
) -> None:
    """Emit the products of ``run`` in the place of the last of them, or of what ends the last pieces."""
    place = run[-1][0]
    for _, epilogue in run:
        if epilogue is not None and place.is_before_in_block(epilogue.loop):
            place.move_before(epilogue.loop)
    packed: _Rooms | None = {} if len(run) > 1 else None
    with ir.InsertionPoint(place), place.location:
        emissions = [_emission(op, place, emitter, library, constants, views, packed, end) for op, end in run]
        for phase in (_Emission.prepare, _Emission.check, _Emission.compute, _Emission.finish):
            with numbers.next_of(emitter, len(run)):
                for emission in emissions:
                    phase(emission)
    for op, _ in run:
        op.erase()
    for _, epilogue in run:
        if epilogue is not None:
            epilogue.erase()


def _contraction(op: Operation, views: Views) -> Contraction:
    view = views.of(op)
    contraction = None if view is None else match_contraction(view)
    assert contraction is not None, "what has been marked is a contraction"
    return contraction


def _parts(op: Operation, views: Views) -> tuple[Part, ...]:
    """Return the loops over the result of ``op``, a marked product."""
    contraction = _contraction(op, views)
    operands = contraction.left.value, contraction.right.value, contraction.view.operands[2]
    strides = [ir.MemRefType(operand.type).get_strides_and_offset()[0] for operand in operands]
    return parts_of(geometry(contraction, strides), schedule_of(op))


def _emission(
    op: Operation,
    place: Operation,
    emitter: Emitter,
    library: Library,
    constants: PackedConstants,
    views: Views,
    packed: _Rooms | None,
    epilogue: Epilogue | None,
) -> _Emission:
    contraction = _contraction(op, views)
    out = contraction.view.operands[2]
    schedule = schedule_of(op)
    streams = schedule.streams and _only_written(out, op)
    buffers = _Buffer.of(contraction.left.value), _Buffer.of(contraction.right.value), _Buffer.of(out)
    return _Emission(
        contraction, schedule, buffers, emitter, library, constants, place, packed, epilogue, streams=streams
    )


def _only_written(buffer: Value, op: Operation) -> bool:
    """Return whether ``buffer`` is all of a result of the function, of which ``op`` is the only use."""
    is_argument = isinstance(buffer, ir.BlockArgument) and buffer.owner.owner.operation.name == "func.func"
    return is_argument and is_row_major(buffer.type) and all(use.owner.operation == op for use in buffer.uses)


@dataclasses.dataclass(frozen=True)
class _Buffer:
    """A buffer as kernels take it.

    Attributes:
        value: The whole of it.
        base: The pointer to its elements, a memref of rank 0.
        first: Where it starts there, in elements.
        strides: Its strides in elements.
    """

    value: Value
    base: Value
    first: Index
    strides: tuple[int, ...]

    @staticmethod
    def of(value: Value) -> _Buffer:
        """Emit what says where ``value`` lies."""
        type_ = ir.MemRefType(value.type)
        strides, offset = type_.get_strides_and_offset()
        index = ir.IndexType.get()
        numbers = [index] * (1 + 2 * len(strides))
        base_type = ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
        parts = ir.Operation.create("memref.extract_strided_metadata", [base_type, *numbers], [value]).results
        dynamic = offset == ir.ShapedType.get_dynamic_stride_or_offset()
        return _Buffer(value, parts[0], parts[1] if dynamic else offset, tuple(strides))


class _Emission:
    """Emits one contraction at the insertion point."""

    def __init__(
        self,
        contraction: Contraction,
        schedule: MatmulSchedule,
        buffers: tuple[_Buffer, _Buffer, _Buffer],
        emitter: Emitter,
        library: Library,
        constants: PackedConstants,
        place: Operation,
        packed: _Rooms | None,
        epilogue: Epilogue | None,
        *,
        streams: bool,
    ) -> None:
        self._streams = streams
        self._epilogue = epilogue
        #: The operation that all is emitted before.
        self._place = place
        #: What the products that are computed together have packed so far; None for a product by itself.
        self._packed = packed
        self._c = contraction
        self._s = schedule
        self._left, self._right, self._out = buffers
        self._g = geometry(contraction, [buffer.strides for buffer in buffers])
        self._e = emitter
        self._library = library
        self._constants = constants
        self._depth = self._g.depth
        #: By how many elements the right factor moves: from one panel to the next, and in each batch loop.
        self._panel = schedule.columns
        self._batch = [loop.right for loop in self._g.batch]
        self._left_batch = [loop.left for loop in self._g.batch]
        #: Where the packed right factor has notes, if any, and by how many elements they move in each batch.
        self._notes = 0
        self._notes_batch = [0 for _ in self._g.batch]
        #: Whether the first of two kinds of dot products is to be computed.
        self._is_first: Value | None = None
        #: By how many elements the left factor moves: from one row to the next, and from one tile.
        self._row = self._g.rows[0].left
        self._tile = schedule.rows * self._row
        #: By how many elements the result moves: from one row to the next, and from one plane.
        self._row_out = self._g.rows[0].out
        self._plane_out = self._g.rows[1].out if len(self._g.rows) > 1 else 0

        self._few: FewRows | None = None
        if schedule.sweeps or schedule.dots:
            bases, firsts = [each.base for each in buffers], [each.first for each in buffers]
            self._few = FewRows(
                contraction, self._g, schedule, emitter, library, bases, firsts, self._starts()
            )

    def prepare(self) -> None:
        """Emit the packing."""
        if self._few is not None:
            return
        if self._s.pack_left:
            self._pack_left()
        if self._s.pack and not self._s.pack_pieces:
            self._pack()

    def check(self) -> None:
        """Emit what tells which kernel to call."""
        if self._few is None and len(dots_of(self._c, self._s)) > 1:
            self._is_first = self._factors_are_normal()

    def finish(self) -> None:
        """Emit what is done with the results of parts."""
        if self._few is not None:
            self._few.finish()

    def compute(self) -> None:
        """Emit the pieces."""
        g, s = self._g, self._s
        if self._few is not None:
            self._few.compute()
            return
        planes = g.rows[1] if len(g.rows) > 1 else ONCE
        extents = (g.rows[0].extent, planes.extent, g.columns.extent)
        sizes = (s.mc, s.planes, s.nc)
        right = s.nc // s.columns * self._panel
        if s.pack_pieces:
            right = 0  # each piece begins in its own panels
        #: A loop over pieces: how many there are, and how far each operand moves.
        loops = [
            Loop(-(-extents[0] // s.mc), -(-s.mc // s.rows) * self._tile, 0, s.mc * g.rows[0].out),
            Loop(-(-extents[1] // s.planes), s.planes * planes.left, 0, s.planes * planes.out),
            Loop(-(-extents[2] // s.nc), 0, right, s.nc * g.columns.out),
            *g.rows[2:],
            *(
                dataclasses.replace(loop, left=left, right=right)
                for loop, left, right in zip(g.batch, self._left_batch, self._batch, strict=True)
            ),
        ]
        noted = [0, 0, s.nc, *(0 for _ in g.rows[2:]), *self._notes_batch]

        def piece(digits: Sequence[Index]) -> None:
            bounds = [
                self._least(extent, digit, size)
                for extent, digit, size in zip(extents, digits, sizes, strict=False)
            ]
            if s.pack_pieces:
                self._pack_piece(digits[2], bounds[2], is_shared=math.prod(counts) > s.pieces)
            sums = self._notes
            for digit, width in zip(digits, noted, strict=True):
                sums = self._e.add(sums, self._e.mul(digit, width))
            own = self._own_result(is_shared=math.prod(counts) > s.pieces)
            self._product(list(zip(digits, loops, strict=True)), bounds, planes, sums)
            if self._epilogue is not None:
                self._epilogue.emit(self._e, digits, own)

        if self._epilogue is not None and self._epilogue.accesses:
            # Each piece begins in its own memory.
            loops = [dataclasses.replace(loop, out=0) for loop in loops]
            strides = self._epilogue.own_strides()
            self._row_out, self._plane_out = strides.get(0, 0), strides.get(1, 0)
        counts = [loop.extent for loop in loops]
        self._chunks(counts, s.pieces, piece)

    def _own_result(self, *, is_shared: bool) -> Value | None:
        """Emit memory for a piece, if that is not to be in its place of the result, and compute it there."""
        if self._epilogue is None or not self._epilogue.accesses:
            return None
        own = self._epilogue.own(is_shared=is_shared)
        self._out = _Buffer.of(own)
        return own

    def _chunks(self, counts: Sequence[int], together: int, body: Callable[[Sequence[Index]], None]) -> None:
        """Emit ``body`` for each index of nested loops, innermost first, in chunks of ``together``."""
        e = self._e
        total = math.prod(counts)

        def one(number: Index) -> list[Value]:
            digits: list[Index] = []
            for place, count in enumerate(counts):
                is_last = math.prod(counts[place:]) == count
                digits.append(0 if count == 1 else number if is_last else e.modulo(number, count))
                number = 0 if is_last else e.floordiv(number, count)
            body(digits)
            return []

        def several(first: Index, end: Index, _: list[Value]) -> list[Value]:
            if together == 1:
                return one(first)
            return e.loop((first, end, 1), [], lambda number, _: one(number))

        e.chunks(Split(together, -(-total // together), "", self._s.brief), total, [], several)

    def _least(self, extent: int, digit: Index, size: int) -> Index:
        """Return how much of ``extent`` the piece ``digit`` of ``size`` has."""
        if extent % size == 0:
            return size
        return self._e.minimum(self._e.sub(extent, self._e.mul(digit, size)), size)

    def _product(
        self, places: Sequence[tuple[Index, Loop]], bounds: Sequence[Index], planes: Loop, sums: Index
    ) -> None:
        """Emit the calls for one piece: in loops over the reductions that the kernel does not run over."""
        e, s, g = self._e, self._s, self._g
        plan = reduction(self._depth, s.kc)
        left, right, out = (buffer.first for buffer in (self._left, self._right, self._out))
        left = 0 if s.pack_left else e.add(left, g.first[0])
        right = 0 if s.pack else e.add(right, g.first[1])
        out = e.add(out, g.first[2])
        for index, loop in places:
            left = e.add(left, e.mul(index, loop.left))
            right = e.add(right, e.mul(index, loop.right))
            out = e.add(out, e.mul(index, loop.out))
        rest = {
            "out_first": out,
            **dict(zip(("rows", "planes", "columns"), bounds, strict=True)),
            "depth": plan.step.extent,
            "last_depth": plan.last,
            "taps": plan.tap.extent,
            "last_taps": plan.last_taps,
            "blocks": plan.block.extent,
            "left_row": self._row,
            "left_tile": self._tile,
            "left_plane": planes.left,
            "left_step": plan.step.left,
            "left_tap": plan.tap.left,
            "left_block": plan.block.left,
            "right_panel": self._panel,
            "right_step": plan.step.right,
            "right_tap": plan.tap.right,
            "right_block": plan.block.right,
            "out_row": self._row_out,
            "out_plane": self._plane_out,
            "sums_first": sums,
        }
        self._reduce(plan.around, left, right, rest, self._starts()[1])

    def _reduce(
        self, loops: Sequence[Loop], left: Index, right: Index, rest: Mapping[str, Index], adds: Value
    ) -> list[Value]:
        """Emit a call within ``loops``, the outermost last; the first call of all does what ``adds`` says.

        A method, since a nested function that calls itself would keep MLIR's module alive as a cycle.
        """
        e = self._e
        if not loops:
            self._call({"left_first": left, "right_first": right, **rest}, adds)
            return []
        *inner, loop = loops

        def again(index: Index, _: list[Value]) -> list[Value]:
            later = arith.CmpIOp(arith.CmpIPredicate.ne, e.index(index), e.index(0)).result
            return self._reduce(
                inner,
                e.add(left, e.mul(index, loop.left)),
                e.add(right, e.mul(index, loop.right)),
                rest,
                arith.OrIOp(adds, later).result,
            )

        return e.loop((0, loop.extent, 1), [], again)

    @property
    def _start(self) -> Attribute | None:
        """The number that sums start from."""
        attributes = self._c.view.op.attributes
        return attributes.get(START_ATTRIBUTE)

    def _starts(self) -> tuple[Value, Value]:
        """Return the number that sums start from, and whether they start from what is in the result."""
        bit, element = ir.IntegerType.get_signless(1), self._c.element
        start = self._e.constant(element, self._start or zero(element))
        return start, self._e.constant(bit, ir.BoolAttr.get(self._start is None))

    def _call(self, numbers: Mapping[str, Index], adds: Value) -> None:
        s, element = self._s, self._c.element
        start = self._e.constant(element, self._start or zero(element))
        buffers = [buffer.base for buffer in (self._left, self._right, self._out)]
        values = [self._e.index(numbers[name]) for name in PRODUCT_ARGUMENTS]

        def call(dot: str) -> None:
            kernel = product_kernel(self._c, self._g, s, streams=self._streams, dot=dot)
            self._library.call(kernel, [*buffers, *values, start, adds])

        first, *others = dots_of(self._c, s)
        if self._is_first is None:
            call(first)
            return
        branch = scf.IfOp(self._is_first, has_else=True)
        for block, dot in zip((branch.then_block, branch.else_block), (first, *others), strict=True):
            with ir.InsertionPoint(block):
                call(dot)
                scf.YieldOp([])

    def _factors_are_normal(self) -> Value:
        """Emit whether no subnormal number is among the factors' or on the way to the result."""
        word = ir.IntegerType.get_signless(32)
        noted = []
        for buffer in (self._left, self._right):
            last = self._e.index(ir.MemRefType(buffer.value.type).shape[0] - 1)
            noted.append(memref.LoadOp(buffer.value, [last], results=[word]).result)
        return are_normal(*noted)

    def _pack(self) -> None:
        """Emit panels of the right factor, and take these in its place."""
        e, s, g = self._e, self._s, self._g
        kernel = right_pack(self._c, g, s)
        inner, *outer = g.packed or (ONCE,)
        steps = self._steps(kernel, inner.extent)
        panel = steps * math.prod(loop.extent for loop in outer) * s.columns
        panels = -(-g.columns.extent // s.columns)
        anchor = self._before_loops()
        with ir.InsertionPoint(anchor):
            batches = math.prod(loop.extent for loop in g.batch)
            size = panels * panel * batches
            batch = tuple((loop.extent, loop.right) for loop in g.batch)
            source_is = g.columns.extent, g.columns.right, g.packed, batch, g.first[1], anchor
            columns = g.columns.extent, g.columns.right
            outside = tuple((loop.extent, loop.right) for loop in outer)
            layout = Layout(g.first[1], batch, columns, outside, (inner.extent, inner.right), steps)
            given = self._constant(self._c.right, kernel, layout) if s.given else None
            packed, is_new = given or self._room(
                kernel, size, panels * s.columns * batches, self._right, source_is
            )
            grouped = not g.batch
            source = e.add(self._right.first, g.first[1])
            buffers = self._right.base, packed.base
            stride = g.columns.right if kernel.transposes else inner.right

            def pack_steps(digits: Sequence[Index]) -> None:
                first = e.mul(digits[0], s.packings)
                here = e.add(source, e.mul(first, inner.right))
                live = self._least(inner.extent, digits[0], s.packings)
                there = e.mul(digits[0], s.packings // s.group * s.columns)
                numbers = (here, there, g.columns.extent, live, stride, panel, size)
                self._pack_call(kernel, buffers, numbers, (), 0)

            def pack(digits: Sequence[Index]) -> None:
                first = e.mul(digits[0], s.packings)
                columns = g.columns.extent
                live = self._least(columns, digits[0], s.packings * s.columns) if grouped else columns
                here = e.add(source, e.mul(first, s.columns * g.columns.right))
                there, notes = e.mul(first, panel), e.add(e.mul(first, s.columns), size)
                width = panels
                for digit, loop in zip(digits[1:], g.batch, strict=True):
                    here = e.add(here, e.mul(digit, loop.right))
                    there = e.add(there, e.mul(digit, width * panel))
                    notes = e.add(notes, e.mul(digit, width * s.columns))
                    width *= loop.extent
                notes = notes if kernel.notes == SUMS else size
                bounds = (live, inner.extent, stride, panel, notes)
                self._pack_call(kernel, buffers, (here, there, *bounds), outer, steps * s.columns)

            if not is_new:
                pass
            elif packs_steps(g) and kernel.notes != SUMS:
                self._chunks([-(-inner.extent // s.packings)], 1, pack_steps)
            else:
                counts = [-(-panels // s.packings) if grouped else 1, *(loop.extent for loop in g.batch)]
                self._chunks(counts, 1 if grouped else s.packings, pack)
        self._use(packed, kernel, panel, panels)
        if kernel.notes == SUMS:
            self._notes = size
            self._notes_batch = [width // panel * s.columns for width in self._batch]

    def _steps(self, kernel: PackKernel, extent: int) -> int:
        """Return how many steps, of words where there are any, panels of ``kernel`` have for ``extent``."""
        words = -(-extent // kernel.group)
        return -(-words // kernel.square) * kernel.square if kernel.transposes else words

    def _constant(self, factor: Operand, kernel: PackKernel, layout: Layout) -> tuple[_Buffer, bool] | None:
        """Return ``factor``, a constant, as it is packed, and that nothing is left to do for it."""
        value = self._constants.get(factor.value, kernel, layout, factor.casts)
        return None if value is None else (_Buffer.of(value), False)

    def _room(
        self, kernel: PackKernel, size: int, columns: int, source: _Buffer, what: object
    ) -> tuple[_Buffer, bool]:
        """Return memory for packed elements, and whether they are still to be packed.

        Args:
            kernel: Packs them.
            size: How many there are.
            columns: In how many columns; there is memory for what is noted besides, too.
            source: Where they come from.
            what: Which of them they are.
        """
        if self._packed is None:
            return self._new_room(kernel, size, columns), True
        key = kernel, size, same_memory(source.value), what
        is_new = key not in self._packed
        if is_new:
            self._packed[key] = self._new_room(kernel, size, columns)
        return self._packed[key], is_new

    def _new_room(self, kernel: PackKernel, size: int, columns: int) -> _Buffer:
        element = ir.Type.parse(kernel.element)
        notes = {SUMS: columns, LEAST: 1}.get(kernel.notes, 0)
        value = memref.AllocOp(ir.MemRefType.get([size + notes], element), [], []).result
        if kernel.notes == LEAST:
            nothing = self._e.constant(element, ir.IntegerAttr.get(element, NO_MAGNITUDE))
            memref.StoreOp(nothing, value, [self._e.index(size)])
        return _Buffer.of(value)

    def _pack_piece(self, number: Index, columns: Index, *, is_shared: bool) -> None:
        """Emit the panels of piece ``number``, of ``columns``, into memory of its thread; take these instead.

        They are read before they leave the second-level cache, and never get to memory.
        """
        e, s, g = self._e, self._s, self._g
        kernel = right_pack(self._c, g, s)
        depth = g.packed[0].extent
        panel = self._steps(kernel, depth) * s.columns
        panels = s.nc // s.columns
        type_ = ir.MemRefType.get([panels * panel], ir.Type.parse(kernel.element))
        attributes: dict[str, Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        if is_shared:
            attributes |= {"alignment": _alignment(), PRIVATE_ATTRIBUTE: ir.UnitAttr.get()}
        name = "memref.alloca" if is_shared else "memref.alloc"
        own = _Buffer.of(ir.Operation.create(name, [type_], [], attributes).result)
        source = e.add(self._right.first, g.first[1])
        here = e.add(source, e.mul(number, s.nc * g.columns.right))
        numbers = (here, 0, columns, depth, g.columns.right, panel, panels * panel)
        self._pack_call(kernel, (self._right.base, own.base), numbers, (), 0)
        self._use(own, kernel, panel, panels)

    def _pack_call(
        self,
        kernel: PackKernel,
        buffers: tuple[Value, Value],
        numbers: tuple[Index, ...],
        outer: Sequence[Loop],
        width: int,
    ) -> None:
        """Emit the calls that pack, in loops over the reductions ``outer`` of ``width`` elements each."""
        e = self._e
        if not outer:
            values = [e.index(number) for number in numbers]
            self._library.call(kernel, [*buffers, *values])
            return
        *rest, loop = outer
        whole = width * math.prod(each.extent for each in rest)

        def again(index: Index, _: list[Value]) -> list[Value]:
            here, there, *others = numbers
            moved = e.add(here, e.mul(index, loop.right)), e.add(there, e.mul(index, whole))
            self._pack_call(kernel, buffers, (*moved, *others), rest, width)
            return []

        e.loop((0, loop.extent, 1), [], again)

    def _pack_left(self) -> None:
        """Emit the rows of each tile of the left factor side by side, and take these in its place."""
        e, s, g = self._e, self._s, self._g
        rows, depth = g.rows[0], g.depth[0]
        kernel = left_pack(self._c, g, s)
        tile = self._steps(kernel, depth.extent) * s.rows
        tiles = -(-rows.extent // s.rows)
        batches = math.prod(loop.extent for loop in g.batch)
        size = tiles * tile * batches
        batch = tuple((loop.extent, loop.left) for loop in g.batch)
        source_is = rows.extent, rows.left, depth.extent, depth.left, batch, g.first[0]
        lines = rows.extent, rows.left
        layout = Layout(g.first[0], batch, lines, (), (depth.extent, depth.left), tile // s.rows)
        given = self._constant(self._c.left, kernel, layout) if s.given_left else None
        packed, is_new = given or self._room(kernel, size, 0, self._left, source_is)
        source = e.add(self._left.first, g.first[0])
        buffers = self._left.base, packed.base
        together = split(tiles, 2 * rows.extent * depth.extent * byte_width(kernel.element) * BYTE_NS).step

        def pack(digits: Sequence[Index]) -> None:
            first = e.mul(digits[0], together)
            live = self._least(rows.extent, digits[0], together * s.rows)
            here = e.add(source, e.mul(first, s.rows * rows.left))
            there = e.mul(first, tile)
            for digit, loop, width in zip(digits[1:], g.batch, self._left_batch, strict=True):
                here, there = e.add(here, e.mul(digit, loop.left)), e.add(there, e.mul(digit, width))
            stride = rows.left if kernel.transposes else depth.left
            numbers = (here, there, live, depth.extent, stride, tile, size)
            self._pack_call(kernel, buffers, numbers, (), 0)

        width = tiles * tile
        self._left_batch = []
        for loop in g.batch:
            self._left_batch.append(width)
            width *= loop.extent
        if is_new:
            self._chunks([-(-tiles // together), *(loop.extent for loop in g.batch)], 1, pack)
        self._depth = (dataclasses.replace(self._depth[0], left=s.rows), *self._depth[1:])
        self._row, self._tile, self._left = 1, tile, packed

    def _use(self, packed: _Buffer, kernel: PackKernel, panel: int, panels: int) -> None:
        """Read the right factor from ``packed`` from now on."""
        columns = self._s.columns
        inner = self._g.packed[0].extent if self._g.packed else 1
        depth: list[Loop] = []
        steps = 1
        for loop in self._depth:
            extent = -(-loop.extent // kernel.group)
            depth.append(dataclasses.replace(loop, extent=extent, right=steps * columns))
            steps *= extent
            if steps == inner and kernel.transposes:
                steps = -(-steps // kernel.square) * kernel.square
        self._depth = tuple(depth)
        self._panel = panel
        self._batch = []
        width = panels * panel
        for loop in self._g.batch:
            self._batch.append(width)
            width *= loop.extent
        self._right = packed

    def _before_loops(self) -> Operation:
        """Return the operation that the right factor is packed before: the contraction, or a loop around it.

        A buffer from outside of a loop that does not change the tensor in it is the same in each iteration.
        """
        value = self._right.value
        anchor = self._place
        for _ in range(self._s.outside):
            parent = anchor.parent.operation
            if parent.name not in _LOOPS or is_defined_inside(value, parent):
                break
            anchor = parent
        if anchor != self._place:
            with ir.InsertionPoint(anchor):
                self._right = _Buffer.of(value)
        return anchor


def _alignment() -> Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)


def is_defined_inside(value: Value, ancestor: Operation) -> bool:
    """Return whether ``value`` is defined in a region of ``ancestor``, at any depth."""
    block = value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
    op = block.owner.operation
    while op.name not in ("func.func", "builtin.module"):
        if op == ancestor:
            return True
        op = op.parent.operation
    return False
