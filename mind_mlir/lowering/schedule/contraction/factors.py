"""The factors of a product: read from memory as they are given, or packed, which is emitted here."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.split import emit_chunks, least
from mind_mlir.lowering.kernels.library import KernelBuffer, Library, macro_tile_memory
from mind_mlir.lowering.kernels.vnni import NOTHING_SEEN, SUMS
from mind_mlir.lowering.schedule.contraction.grouped import same_memory
from mind_mlir.lowering.schedule.contraction.kernel_choice import packing_of
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
from mind_mlir.mlir.bindings import Operation, Value, ir, memref
from mind_mlir.mlir.values import is_defined_inside
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.contraction.constant_factors import PackedConstants
    from mind_mlir.lowering.schedule.contraction.geometry import Loop
    from mind_mlir.lowering.schedule.contraction.kernel_choice import Packing
    from mind_mlir.lowering.schedule.contraction.marked import Product
    from mind_mlir.lowering.schedule.contraction.match import Operand

_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class Run:
    """The state with which products that are computed together, or one by itself, are emitted.

    Attributes:
        emitter: Emits.
        library: Calls kernels.
        constants: Those that factors are, packed when the program is compiled.
        place: The operation that all is emitted before.
        packed: What the products have packed so far, by what it is.
    """

    emitter: Emitter
    library: Library
    constants: PackedConstants
    place: Operation
    packed: dict[object, Buffer]


class Factors:
    """The factors of one product, and how far they move: as given at first, then as packed.

    Attributes:
        left: Where the left factor is.
        right: Where the right one is.
        loops: The loops over them.
        tile: By how many elements the left factor moves from one tile to the next.
        panel: By how many the right one moves from one panel to the next.
        info: Where the packed right factor has packing info, if any.
        info_batch: By how many elements they move in each batch loop.
    """

    def __init__(self, product: Product, buffers: tuple[Buffer, Buffer], run: Run) -> None:
        self._p, self._c, self._run, self._e = product, product.contraction, run, run.emitter
        self._s, self._g = schedule, loops = product.schedule, product.loops
        self.left, self.right = buffers
        self.loops = loops
        self.tile, self.panel = schedule.rows * loops.rows[0].left, schedule.columns
        self.info = 0
        self.info_batch = [0 for _ in loops.batch]

    def pack(self) -> None:
        """Emit panels of the right factor, and take these in its place."""
        packing, anchor = packing_of(self._p, "right"), self._before_loops()
        with ir.InsertionPoint(anchor):
            constant = self._c.right if self._s.prepacked else None
            packed = self._packed(packing, self.right, constant, anchor)
        self._use(packed, packing)
        if packing.kernel.info == SUMS:
            columns = packing.kernel.columns
            self.info = packing.size
            self.info_batch = [width // packing.panel * columns for width in packing.batch_strides]

    def pack_left(self) -> None:
        """Emit the rows of each tile of the left factor side by side, and take these in its place."""
        loops, packing = self.loops, packing_of(self._p, "left")
        kernel = packing.kernel
        constant = self._c.left if self._s.prepacked_left else None
        self.left = self._packed(packing, self.left, constant, self._run.place)
        self.tile = packing.panel
        self.loops = dataclasses.replace(
            loops,
            rows=_moving(loops.rows, left=[kernel.square * kernel.summands if kernel.tiles else 1]),
            batch=_moving(loops.batch, left=packing.batch_strides),
            depth=_moving(loops.depth, left=[kernel.line]),
            first=(0, *loops.first[1:]),
        )

    def pack_macro_tile(self, number: Index, columns: Index, *, is_shared: bool) -> None:
        """Emit the panels of macro-tile ``number``, of ``columns``, into memory of its thread; take these.

        They are read before they leave the second-level cache, and never get to memory.
        """
        e, s, g = self._e, self._s, self._g
        packing = dataclasses.replace(packing_of(self._p, "right"), columns=(s.nc, g.columns.right))
        type_ = ir.MemRefType.get([packing.size], ir.Type.parse(packing.kernel.element))
        own = Buffer.of(macro_tile_memory(type_, is_shared=is_shared))
        source = e.add(self.right.first, g.first[1])
        here = e.add(source, e.mul(number, s.nc * g.columns.right))
        self._pack_call(packing, (self.right.base, own.base), (here, 0), {"columns": columns})
        self._use(own, packing)

    def _packed(
        self, packing: Packing, source: Buffer, constant: Operand | None, anchor: Operation
    ) -> Buffer:
        """Return packed elements, which are emitted before ``anchor`` unless they are there already.

        They are given if the factor is a ``constant`` that can be packed when the program is compiled, or if
        another product has packed them.
        """
        if constant is not None:
            value = self._run.constants.get(constant.value, packing, constant.casts)
            if value is not None:
                return Buffer.of(value)
        key = packing, same_memory(source.value), anchor
        if key not in self._run.packed:
            target = self._run.packed[key] = self._room(packing)
            self._pack(packing, source, target)
        return self._run.packed[key]

    def _room(self, packing: Packing) -> Buffer:
        kernel, size = packing.kernel, packing.size
        element = ir.Type.parse(kernel.element)
        value = memref.AllocOp(ir.MemRefType.get([size + packing.info], element), [], []).result
        for place, nothing in enumerate(NOTHING_SEEN.get(kernel.info, ()), size):
            number = self._e.constant(element, ir.IntegerAttr.get(element, nothing))
            memref.StoreOp(number, value, [self._e.index(place)])
        return Buffer.of(value)

    def _pack(self, packing: Packing, source: Buffer, target: Buffer) -> None:
        """Emit the packing of some steps of all columns in a chunk, or of some panels of some batches."""
        e, kernel, together, panel = self._e, packing.kernel, packing.together, packing.panel
        begin, width = e.add(source.first, packing.first), kernel.columns
        #: What is cut, how much of it is packed at once, and how far that moves in what is read and written.
        if packing.by_steps:
            name, (extent, along), size = "depth", packing.inner, together
            moves = size * along, size // kernel.vnni * kernel.line
        else:
            name, (extent, along), size = "columns", packing.columns, together * width
            moves = size * along, together * panel

        def pack(digits: Sequence[Index]) -> None:
            live = least(e, extent, digits[0], size)
            strides = zip((stride for _, stride in packing.batch), packing.batch_strides, strict=True)
            here, there = begin, 0
            for digit, (read, written) in zip(digits, (moves, *strides), strict=True):
                here, there = e.add(here, e.mul(digit, read)), e.add(there, e.mul(digit, written))
            numbers = {name: live}
            if kernel.info == SUMS:
                numbers["info_first"] = e.add(e.mul(e.floordiv(there, panel), width), packing.size)
            self._pack_call(packing, (source.base, target.base), (here, there), numbers)

        counts = [-(-extent // size), *(extent for extent, _ in packing.batch)]
        emit_chunks(e, counts, packing.batches, pack, brief=self._s.brief)

    def _pack_call(
        self,
        packing: Packing,
        buffers: tuple[Value, Value],
        places: tuple[Index, Index],
        others: Mapping[str, Index],
        outer: int | None = None,
    ) -> None:
        """Emit the calls that pack, in loops over so many of the outer reductions, by default all of them.

        Source and target are pointers and places; ``others`` are arguments that are not as ``packing`` says.
        """
        e, (here, there) = self._e, places
        outer = len(packing.outer) if outer is None else outer
        if not outer:
            operands = [KernelBuffer(*each) for each in zip(buffers, places, strict=True)]
            numbers = {"columns": packing.columns[0], "depth": packing.inner[0], "stride": packing.stride}
            numbers |= {"panel": packing.panel, "info_first": packing.size}
            self._run.library.call_with(e, packing.kernel, operands, {**numbers, **others})
            return
        count, stride = packing.outer[outer - 1]
        inside = math.prod(extent for extent, _ in packing.outer[: outer - 1])
        whole = packing.steps * packing.kernel.line * inside

        def again(index: Index) -> None:
            moved = e.add(here, e.mul(index, stride)), e.add(there, e.mul(index, whole))
            self._pack_call(packing, buffers, moved, others, outer - 1)

        e.each((0, count, 1), again)

    def _use(self, packed: Buffer, packing: Packing) -> None:
        """Read the right factor from ``packed`` from now on."""
        kernel = packing.kernel
        inner = self._g.packed[0].extent if self._g.packed else 1
        depth: list[Loop] = []
        steps = 1
        for loop in self.loops.depth:
            extent = packing.steps if kernel.tiles else -(-loop.extent // kernel.vnni)
            depth.append(dataclasses.replace(loop, extent=extent, right=steps * kernel.line))
            steps *= extent
            if steps == inner:
                steps = -(-steps // kernel.multiple) * kernel.multiple
        self.panel, self.right = packing.panel, packed
        self.loops = dataclasses.replace(
            self.loops,
            batch=_moving(self.loops.batch, right=packing.batch_strides),
            depth=tuple(depth),
            first=(self.loops.first[0], 0, self.loops.first[2]),
        )

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


def _moving(loops: Sequence[Loop], **steps: Sequence[int]) -> tuple[Loop, ...]:
    """Return ``loops``, of which the first ones have other strides in one operand."""
    ((side, strides),) = steps.items()
    moved = (dataclasses.replace(loop, **{side: step}) for loop, step in zip(loops, strides, strict=False))
    return (*moved, *loops[len(strides) :])
