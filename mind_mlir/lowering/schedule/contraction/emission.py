"""Emits contractions on memory: factors are packed if need be, then macro-tiles of the result are computed.

Both are loops over chunks that threads may share, around calls of kernels. Each element of a result is
computed by one call of one chunk, in an order that depends on the shape and the target alone.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.contraction.constant_factors import PackedConstants
from mind_mlir.lowering.schedule.contraction.factors import Factors, Run
from mind_mlir.lowering.schedule.contraction.gemv import GemvEmission
from mind_mlir.lowering.schedule.contraction.geometry import ONCE, Loop, TiledLoop
from mind_mlir.lowering.schedule.contraction.grouped import LoopNumbers, grouped_runs
from mind_mlir.lowering.schedule.contraction.kernel_choice import product_kernel, vnni_kinds
from mind_mlir.lowering.schedule.contraction.kernels.library import Buffer, Library
from mind_mlir.lowering.schedule.contraction.kernels.vnni import are_normal
from mind_mlir.lowering.schedule.contraction.marked import SCHEDULE_ATTRIBUTE, Product
from mind_mlir.lowering.schedule.contraction.operands import lay_out
from mind_mlir.lowering.schedule.contraction.phases import ProductEmission
from mind_mlir.lowering.schedule.contraction.schedule import OWN_PANELS, reduction
from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
from mind_mlir.lowering.schedule.emission.split import emit_chunks, least
from mind_mlir.lowering.schedule.linalg_view.view import Views
from mind_mlir.mlir.bindings import Module, Operation, Value, arith, func, ir, linalg, memref
from mind_mlir.mlir.memory import is_row_major
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.lowering.schedule.contraction.epilogue import Epilogue

    #: Marked products in the order of a block, each with the loops over its result.
    Products: TypeAlias = Sequence[tuple[Operation, tuple[TiledLoop, ...]]]
    #: The same, each with what ends its macro-tiles, in runs that are computed together.
    Ended: TypeAlias = list[list[tuple[Operation, Epilogue | None]]]


def emit_contractions(module: Module, end: Callable[[Products], Ended]) -> None:
    """Replace the marked contractions of a bufferized ``module`` by loops around calls of kernels.

    Args:
        module: Functions on memory.
        end: Says of products that may be computed together which ones are, and what ends their macro-tiles.
    """
    library = Library(module)
    views = Views()
    numbers = LoopNumbers()
    constants = PackedConstants(module)
    for function in list(module.body.operations):
        if not isinstance(function, func.FuncOp) or not function.regions[0].blocks:
            continue
        marked = [op for op in find_all(function, linalg.GenericOp) if SCHEDULE_ATTRIBUTE in op.attributes]
        for op in marked:
            lay_out(op, views)
        emitter = Emitter(function) if marked else None
        for together in grouped_runs(marked):
            assert emitter is not None
            for run in end([(op, Product.of(op, views).tiled_loops) for op in together]):
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
    """Emit the products of ``run`` in the place of the last of them, or of what ends the last macro-tiles."""
    place = run[-1][0]
    for _, epilogue in run:
        if epilogue is not None and place.is_before_in_block(epilogue.loop):
            place.move_before(epilogue.loop)
    together = Run(emitter, library, constants, place, {} if len(run) > 1 else None)
    with ir.InsertionPoint(place), place.location:
        emissions = [_emission(op, views, together, end) for op, end in run]
        for phase in ("prepare", "check", "compute", "finish"):
            with numbers.next_of(emitter, len(run)):
                for emission in emissions:
                    getattr(emission, phase)()
    for op, _ in run:
        op.erase()
    for _, epilogue in run:
        if epilogue is not None:
            epilogue.erase()


def _emission(op: Operation, views: Views, run: Run, epilogue: Epilogue | None) -> ProductEmission:
    product = Product.of(op, views)
    left, right = product.contraction.left.value, product.contraction.right.value
    out = product.contraction.view.operands[2]
    buffers = Buffer.of(left), Buffer.of(right)
    if not product.schedule.is_tiled:
        return GemvEmission(product, run, (*buffers, Buffer.of(out)))
    streams = product.schedule.streams and _only_written(out, op)
    return _TiledEmission(
        product, Factors(product, buffers, run), Buffer.of(out), run, epilogue, streams=streams
    )


def _only_written(buffer: Value, op: Operation) -> bool:
    """Return whether ``buffer`` is all of a result of the function, of which ``op`` is the only use."""
    is_argument = isinstance(buffer, ir.BlockArgument) and buffer.owner.owner.operation.name == "func.func"
    return is_argument and is_row_major(buffer.type) and all(use.owner.operation == op for use in buffer.uses)


class _TiledEmission(ProductEmission):
    """Emits one product in macro-tiles."""

    def __init__(
        self,
        product: Product,
        factors: Factors,
        out: Buffer,
        run: Run,
        epilogue: Epilogue | None,
        *,
        streams: bool,
    ) -> None:
        super().__init__(product, run)
        self._f, self._out, self._epilogue, self._streams = factors, out, epilogue, streams
        #: Whether the first of two kinds of dot products is to be computed.
        self._is_first: Value | None = None
        #: By how many elements the result moves: from one row to the next, and from one plane.
        self._row_out = self._g.rows[0].out
        self._plane_out = self._g.rows[1].out if len(self._g.rows) > 1 else 0

    def prepare(self) -> None:
        """Emit the packing."""
        if self._s.pack_left:
            self._f.pack_left()
        if self._s.packs_first:
            self._f.pack()

    def check(self) -> None:
        """Emit what tells which kernel to call."""
        if len(vnni_kinds(self._p)) > 1:
            self._is_first = self._factors_are_normal()

    def compute(self) -> None:
        """Emit the macro-tiles."""
        g, s = self._g, self._s
        planes = g.rows[1] if len(g.rows) > 1 else ONCE
        extents = (g.rows[0].extent, planes.extent, g.columns.extent)
        sizes = (s.mc, s.planes, s.nc)
        right = s.nc // s.columns * self._f.panel
        if s.strategy == OWN_PANELS:
            right = 0  # each macro-tile begins in its own panels
        #: A loop over macro-tiles: how many there are, and how far each operand moves.
        loops = [
            Loop(-(-extents[0] // s.mc), -(-s.mc // s.rows) * self._f.tile, 0, s.mc * g.rows[0].out),
            Loop(-(-extents[1] // s.planes), s.planes * planes.left, 0, s.planes * planes.out),
            Loop(-(-extents[2] // s.nc), 0, right, s.nc * g.columns.out),
            *g.rows[2:],
            *(
                dataclasses.replace(loop, left=left, right=right)
                for loop, left, right in zip(g.batch, self._f.left_batch, self._f.batch, strict=True)
            ),
        ]
        info_strides = [0, 0, s.nc, *(0 for _ in g.rows[2:]), *self._f.info_batch]

        def macro_tile(digits: Sequence[Index]) -> None:
            bounds = [
                least(self._e, extent, digit, size)
                for extent, digit, size in zip(extents, digits, sizes, strict=False)
            ]
            if s.strategy == OWN_PANELS:
                self._f.pack_macro_tile(digits[2], bounds[2], is_shared=math.prod(counts) > s.macro_tiles)
            sums = self._f.info
            for digit, width in zip(digits, info_strides, strict=True):
                sums = self._e.add(sums, self._e.mul(digit, width))
            own = self._own_result(is_shared=math.prod(counts) > s.macro_tiles)
            self._product(list(zip(digits, loops, strict=True)), bounds, planes, sums)
            if self._epilogue is not None:
                self._epilogue.emit(self._e, digits, own)

        if self._epilogue is not None and self._epilogue.accesses:
            # Each macro-tile begins in its own memory.
            loops = [dataclasses.replace(loop, out=0) for loop in loops]
            strides = self._epilogue.own_strides()
            self._row_out, self._plane_out = strides.get(0, 0), strides.get(1, 0)
        counts = [loop.extent for loop in loops]
        emit_chunks(self._e, counts, s.macro_tiles, macro_tile, brief=s.brief)

    def _own_result(self, *, is_shared: bool) -> Value | None:
        """Emit memory for a macro-tile, if that is not to be in its place of the result, and use that."""
        if self._epilogue is None or not self._epilogue.accesses:
            return None
        own = self._epilogue.own(is_shared=is_shared)
        self._out = Buffer.of(own)
        return own

    def _product(
        self, places: Sequence[tuple[Index, Loop]], bounds: Sequence[Index], planes: Loop, sums: Index
    ) -> None:
        """Emit the calls for a macro-tile, in loops over the reductions that the kernel does not run over."""
        e, s, g = self._e, self._s, self._g
        plan = reduction(self._f.depth, s.kc)
        left, right, out = (buffer.first for buffer in (self._f.left, self._f.right, self._out))
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
            "left_row": self._f.row,
            "left_tile": self._f.tile,
            "left_plane": planes.left,
            "left_step": plan.step.left,
            "left_tap": plan.tap.left,
            "left_block": plan.block.left,
            "right_panel": self._f.panel,
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
            later = e.compare("ne", index, 0)
            return self._reduce(
                inner,
                e.add(left, e.mul(index, loop.left)),
                e.add(right, e.mul(index, loop.right)),
                rest,
                arith.OrIOp(adds, later).result,
            )

        return e.loop((0, loop.extent, 1), [], again)

    def _call(self, numbers: Mapping[str, Index], adds: Value) -> None:
        start, _ = self._starts()
        buffers = [buffer.base for buffer in (self._f.left, self._f.right, self._out)]

        def call(dot: str) -> None:
            kernel = product_kernel(self._p, streams=self._streams, dot=dot)
            self._library.call_with(self._e, kernel, buffers, numbers, (start, adds))

        kinds = vnni_kinds(self._p)
        if self._is_first is None:
            call(kinds[0])
        else:
            self._e.when(self._is_first, lambda: call(kinds[0]), lambda: call(kinds[1]))

    def _factors_are_normal(self) -> Value:
        """Emit whether no subnormal number is among the factors' or on the way to the result."""
        word = ir.IntegerType.get_signless(32)
        info = []
        for buffer in (self._f.left, self._f.right):
            last = self._e.index(ir.MemRefType(buffer.value.type).shape[0] - 1)
            info.append(memref.LoadOp(buffer.value, [last], results=[word]).result)
        return are_normal(*info)
