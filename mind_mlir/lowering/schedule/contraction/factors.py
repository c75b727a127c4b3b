"""The factors of a product: read from memory as they are given, or packed, which is emitted here."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.contraction.constant_factors import Layout, PackedConstants
from mind_mlir.lowering.schedule.contraction.geometry import ONCE, Loop
from mind_mlir.lowering.schedule.contraction.grouped import same_memory
from mind_mlir.lowering.schedule.contraction.kernel_choice import left_pack, right_pack
from mind_mlir.lowering.schedule.contraction.kernels.library import Buffer, Library, macro_tile_memory
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import byte_width
from mind_mlir.lowering.schedule.contraction.kernels.vnni import LEAST, NO_MAGNITUDE, SUMS
from mind_mlir.lowering.schedule.emission.constants import BYTE_NS
from mind_mlir.lowering.schedule.emission.split import emit_chunks, least, split
from mind_mlir.mlir.bindings import Operation, Value, ir, memref
from mind_mlir.mlir.values import is_defined_inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.contraction.marked import Product
    from mind_mlir.lowering.schedule.contraction.match import Operand
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index

#: What has been packed for products that are computed together, by what it is.
Rooms: TypeAlias = "dict[object, Buffer]"
_LOOPS = ("scf.for", "scf.while")


@dataclasses.dataclass(frozen=True)
class Run:
    """The state with which products that are computed together, or one by itself, are emitted.

    Attributes:
        emitter: Emits.
        library: Calls kernels.
        constants: Those that factors are, packed when the program is compiled.
        place: The operation that all is emitted before.
        packed: What the products have packed so far; None for a product by itself.
    """

    emitter: Emitter
    library: Library
    constants: PackedConstants
    place: Operation
    packed: Rooms | None


class Factors:
    """The factors of one product, and how far they move: as given at first, then as packed.

    Attributes:
        left: Where the left factor is.
        right: Where the right one is.
        depth: The loops over the reductions.
        panel: By how many elements the right factor moves from one panel to the next.
        batch: By how many it moves in each batch loop.
        left_batch: By how many the left factor moves in each batch loop.
        row: By how many the left factor moves from one row to the next.
        tile: By how many it moves from one tile to the next.
        info: Where the packed right factor has packing info, if any.
        info_batch: By how many elements they move in each batch loop.
    """

    def __init__(self, product: Product, buffers: tuple[Buffer, Buffer], run: Run) -> None:
        self._c = product.contraction
        self._s = schedule = product.schedule
        self._g = loops = product.loops
        self._run = run
        self._e = run.emitter
        self.left, self.right = buffers
        self.depth = loops.depth
        self.panel = schedule.columns
        self.batch = [loop.right for loop in loops.batch]
        self.left_batch = [loop.left for loop in loops.batch]
        self.row = loops.rows[0].left
        self.tile = schedule.rows * self.row
        self.info = 0
        self.info_batch = [0 for _ in loops.batch]

    def pack(self) -> None:
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
            around = tuple((loop.extent, loop.right) for loop in outer)
            layout = Layout(g.first[1], batch, columns, around, (inner.extent, inner.right), steps)
            prepacked = self._constant(self._c.right, kernel, layout) if s.prepacked else None
            packed, is_new = prepacked or self._room(
                kernel, size, panels * s.columns * batches, self.right, source_is
            )
            grouped = not g.batch
            source = e.add(self.right.first, g.first[1])
            buffers = self.right.base, packed.base
            stride = g.columns.right if kernel.transposes else inner.right

            def pack_steps(digits: Sequence[Index]) -> None:
                first = e.mul(digits[0], s.packings)
                here = e.add(source, e.mul(first, inner.right))
                live = least(self._e, inner.extent, digits[0], s.packings)
                there = e.mul(digits[0], s.packings // s.vnni * s.columns)
                numbers = (here, there, g.columns.extent, live, stride, panel, size)
                self._pack_call(kernel, buffers, numbers, (), 0)

            def pack(digits: Sequence[Index]) -> None:
                first = e.mul(digits[0], s.packings)
                columns = g.columns.extent
                live = least(self._e, columns, digits[0], s.packings * s.columns) if grouped else columns
                here = e.add(source, e.mul(first, s.columns * g.columns.right))
                there, info = e.mul(first, panel), e.add(e.mul(first, s.columns), size)
                width = panels
                for digit, loop in zip(digits[1:], g.batch, strict=True):
                    here = e.add(here, e.mul(digit, loop.right))
                    there = e.add(there, e.mul(digit, width * panel))
                    info = e.add(info, e.mul(digit, width * s.columns))
                    width *= loop.extent
                info = info if kernel.info == SUMS else size
                bounds = (live, inner.extent, stride, panel, info)
                self._pack_call(kernel, buffers, (here, there, *bounds), outer, steps * s.columns)

            if not is_new:
                pass
            elif g.packs_steps and kernel.info != SUMS:
                emit_chunks(e, [-(-inner.extent // s.packings)], 1, pack_steps, brief=s.brief)
            else:
                counts = [-(-panels // s.packings) if grouped else 1, *(loop.extent for loop in g.batch)]
                emit_chunks(e, counts, 1 if grouped else s.packings, pack, brief=s.brief)
        self._use(packed, kernel, panel, panels)
        if kernel.info == SUMS:
            self.info = size
            self.info_batch = [width // panel * s.columns for width in self.batch]

    def _steps(self, kernel: PackKernel, extent: int) -> int:
        """Return how many steps, of words where there are any, panels of ``kernel`` have for ``extent``."""
        words = -(-extent // kernel.vnni)
        return -(-words // kernel.square) * kernel.square if kernel.transposes else words

    def _constant(self, factor: Operand, kernel: PackKernel, layout: Layout) -> tuple[Buffer, bool] | None:
        """Return ``factor``, a constant, as it is packed, and that nothing is left to do for it."""
        value = self._run.constants.get(factor.value, kernel, layout, factor.casts)
        return None if value is None else (Buffer.of(value), False)

    def _room(
        self, kernel: PackKernel, size: int, columns: int, source: Buffer, what: object
    ) -> tuple[Buffer, bool]:
        """Return memory for packed elements, and whether they are still to be packed.

        Args:
            kernel: Packs them.
            size: How many there are.
            columns: In how many columns; there is memory for packing info, too.
            source: Where they come from.
            what: Which of them they are.
        """
        if self._run.packed is None:
            return self._new_room(kernel, size, columns), True
        key = kernel, size, same_memory(source.value), what
        is_new = key not in self._run.packed
        if is_new:
            self._run.packed[key] = self._new_room(kernel, size, columns)
        return self._run.packed[key], is_new

    def _new_room(self, kernel: PackKernel, size: int, columns: int) -> Buffer:
        element = ir.Type.parse(kernel.element)
        info = {SUMS: columns, LEAST: 1}.get(kernel.info, 0)
        value = memref.AllocOp(ir.MemRefType.get([size + info], element), [], []).result
        if kernel.info == LEAST:
            nothing = self._e.constant(element, ir.IntegerAttr.get(element, NO_MAGNITUDE))
            memref.StoreOp(nothing, value, [self._e.index(size)])
        return Buffer.of(value)

    def pack_macro_tile(self, number: Index, columns: Index, *, is_shared: bool) -> None:
        """Emit the panels of macro-tile ``number``, of ``columns``, into memory of its thread; take these.

        They are read before they leave the second-level cache, and never get to memory.
        """
        e, s, g = self._e, self._s, self._g
        kernel = right_pack(self._c, g, s)
        depth = g.packed[0].extent
        panel = self._steps(kernel, depth) * s.columns
        panels = s.nc // s.columns
        type_ = ir.MemRefType.get([panels * panel], ir.Type.parse(kernel.element))
        own = Buffer.of(macro_tile_memory(type_, is_shared=is_shared))
        source = e.add(self.right.first, g.first[1])
        here = e.add(source, e.mul(number, s.nc * g.columns.right))
        numbers = (here, 0, columns, depth, g.columns.right, panel, panels * panel)
        self._pack_call(kernel, (self.right.base, own.base), numbers, (), 0)
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
            self._run.library.call(kernel, [*buffers, *values])
            return
        *rest, loop = outer
        whole = width * math.prod(each.extent for each in rest)

        def again(index: Index, _: list[Value]) -> list[Value]:
            here, there, *others = numbers
            moved = e.add(here, e.mul(index, loop.right)), e.add(there, e.mul(index, whole))
            self._pack_call(kernel, buffers, (*moved, *others), rest, width)
            return []

        e.loop((0, loop.extent, 1), [], again)

    def pack_left(self) -> None:
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
        prepacked = self._constant(self._c.left, kernel, layout) if s.prepacked_left else None
        packed, is_new = prepacked or self._room(kernel, size, 0, self.left, source_is)
        source = e.add(self.left.first, g.first[0])
        buffers = self.left.base, packed.base
        together = split(tiles, 2 * rows.extent * depth.extent * byte_width(kernel.element) * BYTE_NS).step

        def pack(digits: Sequence[Index]) -> None:
            first = e.mul(digits[0], together)
            live = least(self._e, rows.extent, digits[0], together * s.rows)
            here = e.add(source, e.mul(first, s.rows * rows.left))
            there = e.mul(first, tile)
            for digit, loop, width in zip(digits[1:], g.batch, self.left_batch, strict=True):
                here, there = e.add(here, e.mul(digit, loop.left)), e.add(there, e.mul(digit, width))
            stride = rows.left if kernel.transposes else depth.left
            numbers = (here, there, live, depth.extent, stride, tile, size)
            self._pack_call(kernel, buffers, numbers, (), 0)

        self.left_batch = self._batch_strides(tiles * tile)
        if is_new:
            emit_chunks(
                e, [-(-tiles // together), *(loop.extent for loop in g.batch)], 1, pack, brief=s.brief
            )
        self.depth = (dataclasses.replace(self.depth[0], left=s.rows), *self.depth[1:])
        self.row, self.tile, self.left = 1, tile, packed

    def _use(self, packed: Buffer, kernel: PackKernel, panel: int, panels: int) -> None:
        """Read the right factor from ``packed`` from now on."""
        columns = self._s.columns
        inner = self._g.packed[0].extent if self._g.packed else 1
        depth: list[Loop] = []
        steps = 1
        for loop in self.depth:
            extent = -(-loop.extent // kernel.vnni)
            depth.append(dataclasses.replace(loop, extent=extent, right=steps * columns))
            steps *= extent
            if steps == inner and kernel.transposes:
                steps = -(-steps // kernel.square) * kernel.square
        self.depth = tuple(depth)
        self.panel = panel
        self.batch = self._batch_strides(panels * panel)
        self.right = packed

    def _batch_strides(self, width: int) -> list[int]:
        """Return how far packed elements move in each batch loop, ``width`` of them a batch."""
        extents = [loop.extent for loop in self._g.batch]
        return [width * math.prod(extents[:place]) for place in range(len(extents))]

    def _before_loops(self) -> Operation:
        """Return the operation that the right factor is packed before: the contraction, or a loop around it.

        A buffer from outside of a loop that does not change the tensor in it is the same in each iteration.
        """
        value = self.right.value
        anchor = self._run.place
        for _ in range(self._s.hoist_depth):
            parent = anchor.parent.operation
            if parent.name not in _LOOPS or is_defined_inside(value, parent):
                break
            anchor = parent
        if anchor != self._run.place:
            with ir.InsertionPoint(anchor):
                self.right = Buffer.of(value)
        return anchor
