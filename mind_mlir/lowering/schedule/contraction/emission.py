"""Emits contractions on memory: factors are packed if need be, then macro-tiles of the result are computed.

Both are loops over chunks that threads may share, around calls of kernels. Each element of a result is
computed by one call of one chunk, in an order that depends on the shape and the target alone.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.emission.split import emit_chunks, least
from mind_mlir.lowering.kernels.library import KernelBuffer, Library, marked_operations
from mind_mlir.lowering.kernels.summands import are_near
from mind_mlir.lowering.kernels.vnni import LEAST, NOTHING_SEEN, SPREAD, are_normal
from mind_mlir.lowering.schedule.contraction.constant_factors import PackedConstants
from mind_mlir.lowering.schedule.contraction.factors import Factors, Run
from mind_mlir.lowering.schedule.contraction.gemv import GemvEmission
from mind_mlir.lowering.schedule.contraction.geometry import ONCE, Loop, TiledLoop
from mind_mlir.lowering.schedule.contraction.grouped import grouped_runs
from mind_mlir.lowering.schedule.contraction.kernel_choice import product_kernel, vnni_kinds
from mind_mlir.lowering.schedule.contraction.marked import SCHEDULE_ATTRIBUTE, Product
from mind_mlir.lowering.schedule.contraction.mirror import Mirror
from mind_mlir.lowering.schedule.contraction.operands import laid_out
from mind_mlir.lowering.schedule.contraction.phases import ProductEmission
from mind_mlir.lowering.schedule.contraction.schedule import OWN_PANELS, reduction
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
from mind_mlir.lowering.schedule.linalg_view.view import Views
from mind_mlir.mlir.bindings import Module, Operation, Value, arith, ir, memref
from mind_mlir.mlir.records import attribute_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.contraction.epilogue import Epilogue

    #: Marked products in the order of a block, each with the loops over its result.
    Products: TypeAlias = Sequence[tuple[Operation, tuple[TiledLoop, ...]]]
    #: The same, each with what ends its macro-tiles, in runs that are computed together.
    Ended: TypeAlias = list[list[tuple[Operation, Epilogue | None]]]
    #: What a kernel is given: buffers, and numbers.
    Given: TypeAlias = tuple[Sequence[KernelBuffer], Mapping[str, Index]]

_FACTORS = ("left", "right")


def emit_contractions(module: Module, end: Callable[[Products], Ended]) -> None:
    """Replace the marked contractions of a bufferized ``module`` by loops around calls of kernels.

    Args:
        module: Functions on memory.
        end: Says of products that may be computed together which ones are, and what ends their macro-tiles.
    """
    library = Library(module)
    views = Views()
    numbers = itertools.count()
    constants = PackedConstants(module)
    for emitter, marked in marked_operations(module, SCHEDULE_ATTRIBUTE):
        products = {op: laid_out(op, views) for op in marked}
        for together in grouped_runs(marked):
            for run in end([(op, products[op].tiled_loops) for op in together]):
                ended = [(products[op], epilogue) for op, epilogue in run]
                _emit(ended, Run(emitter, library, constants, run[-1][0], {}), numbers)
    constants.drop_replaced()


def _emit(products: Sequence[tuple[Product, Epilogue | None]], run: Run, numbers: Iterator[int]) -> None:
    """Emit the products of ``run`` in the place of the last of them, or of what ends the last macro-tiles."""
    for _, epilogue in products:
        if epilogue is not None and run.place.is_before_in_block(epilogue.loop):
            run.place.move_before(epilogue.loop)
    with ir.InsertionPoint(run.place), run.place.location:
        emissions = [
            _TiledEmission(product, run, end) if product.schedule.is_tiled else GemvEmission(product, run)
            for product, end in products
        ]
        for phase in ("prepare", "check", "compute", "finish"):
            # Parallel loops of the same phase may be one.
            run.emitter.together = attribute_of(next(numbers)) if len(products) > 1 else None
            for (product, _), emission in zip(products, emissions, strict=True):
                with product.contraction.view.op.location:
                    getattr(emission, phase)()
        run.emitter.together = None
    for product, _ in products:
        product.contraction.view.op.erase()
    for _, epilogue in products:
        if epilogue is not None:
            epilogue.erase()


class _TiledEmission(ProductEmission):
    """Emits one product in macro-tiles, each of which may have an epilogue."""

    def __init__(self, product: Product, run: Run, epilogue: Epilogue | None) -> None:
        super().__init__(product, run)
        left, right, self._out = self._buffers
        self._f, self._epilogue = Factors(product, (left, right), run), epilogue
        #: Whether the first of two kinds of dot products is to be computed.
        self._is_first: Value | None = None
        self._planes = self._g.rows[1] if len(self._g.rows) > 1 else ONCE
        #: By how many elements the result moves: from one row to the next, and from one plane.
        self._row_out, self._plane_out = self._g.rows[0].out, self._planes.out
        self._mirror = Mirror(self._e, product) if self._s.mirrors else None

    def prepare(self) -> None:
        """Emit the packing."""
        if self._s.pack_left:
            self._f.pack_left()
        if self._s.packs_first:
            self._f.pack()

    def check(self) -> None:
        """Emit whether no subnormal number is among the factors' or on the way to the result, if need be.

        Summands are not to overflow either.
        """
        if len(vnni_kinds(self._p)) == 1:
            return
        is_split, word = self._s.summands > 1, ir.IntegerType.get_signless(32)
        info = []
        for buffer in (self._f.left, self._f.right):
            end = ir.MemRefType(buffer.value.type).shape[0]
            last = range(end - len(NOTHING_SEEN[SPREAD if is_split else LEAST]), end)
            places = [self._e.index(place) for place in last]
            info.append([memref.LoadOp(buffer.value, [each], results=[word]).result for each in places])
        self._is_first = are_near(*info) if is_split else are_normal(*(each for (each,) in info))

    def compute(self) -> None:
        """Emit the macro-tiles."""
        e, s, f, end = self._e, self._s, self._f, self._epilogue
        parts, loops = self._p.tiled_loops, f.loops
        counts = [part.count for part in parts]
        is_shared = math.prod(counts) > s.macro_tiles
        #: How far factors, the result and packing info are from one macro-tile to the next, along each part.
        tiles, own_panels = -(-s.mc // s.rows), s.strategy == OWN_PANELS
        panels = 0 if own_panels else s.nc // s.columns * f.panel
        others = [*loops.rows[2:], *loops.batch]
        lefts = [tiles * f.tile, s.planes * self._planes.left, 0, *(each.left for each in others)]
        rights = [0, 0, panels, *(each.right for each in others)]
        infos = [0, 0, s.nc, *(0 for _ in loops.rows[2:]), *f.info_batch]
        outs = [part.size * part.stride for part in parts]
        if end is not None and end.accesses:  # each macro-tile begins in its own memory
            outs, strides = [0 for _ in parts], end.own_strides()
            self._row_out, self._plane_out = strides.get(0, 0), strides.get(1, 0)

        def macro_tile(digits: Sequence[Index]) -> None:
            if self._mirror is None:
                whole(digits)
            else:
                e.when(self._mirror.is_computed(digits[0], digits[2]), lambda: whole(digits))

        def whole(digits: Sequence[Index]) -> None:
            inner = zip(parts, digits[:3], strict=False)
            bounds = [least(e, part.extent, digit, part.size) for part, digit in inner]
            if own_panels:
                f.pack_macro_tile(digits[2], bounds[2], is_shared=is_shared)
            sums = f.info
            for digit, width in zip(digits, infos, strict=True):
                sums = e.add(sums, e.mul(digit, width))
            own = None
            if end is not None and end.accesses:
                own = end.own(is_shared=is_shared)
                self._out = Buffer.of(own)
            buffers = zip((f.left, f.right, self._out), f.loops.first, strict=True)
            places = [e.add(buffer.first, first) for buffer, first in buffers]
            for digit, *steps in zip(digits, lefts, rights, outs, strict=True):
                places = [e.add(at, e.mul(digit, step)) for at, step in zip(places, steps, strict=True)]
            self._product(places, bounds, sums)
            if end is not None:
                end.emit(e, digits, own)

        emit_chunks(e, counts, s.macro_tiles, macro_tile, brief=s.brief)

    def finish(self) -> None:
        """Emit the copies of what is above the diagonal."""
        if self._mirror is not None:
            emit_chunks(self._e, self._mirror.counts, 1, self._mirror.copy, brief=True)

    def _product(self, places: Sequence[Index], bounds: Sequence[Index], sums: Index) -> None:
        """Emit the calls for a macro-tile, in loops over the reductions that the kernel does not run over."""
        plan, f = reduction(self._f.loops.depth, self._s.kc, self._s.multiple), self._f
        inner = {"step": plan.step, "tap": plan.tap, "block": plan.block}
        lefts, rights = ({name: getattr(loop, side) for name, loop in inner.items()} for side in _FACTORS)
        left, right, out = zip((f.left.base, f.right.base, self._out.base), places, strict=True)
        operands = (
            KernelBuffer(*left, row=f.loops.rows[0].left, tile=f.tile, plane=self._planes.left, **lefts),
            KernelBuffer(*right, panel=f.panel, **rights),
            KernelBuffer(*out, row=self._row_out, plane=self._plane_out),
        )
        numbers: dict[str, Index] = dict(zip(("rows", "planes", "columns"), bounds, strict=True))
        numbers |= {"depth": plan.step.extent, "taps": plan.tap.extent, "blocks": plan.block.extent}
        numbers |= {"last_depth": plan.last, "last_taps": plan.last_taps, "sums_first": sums}
        self._reduce(plan.around, places[:2], (operands, numbers), self._starts()[1])

    def _reduce(self, loops: Sequence[Loop], places: Sequence[Index], given: Given, adds: Value) -> None:
        """Emit a call within ``loops``, the outermost last; the first call of all does what ``adds`` says.

        It is given factors from ``places`` on. A method, since a nested function that calls itself would keep
        MLIR's module alive as a cycle.
        """
        e = self._e
        if not loops:
            firsts = {f"{side}_first": place for side, place in zip(_FACTORS, places, strict=True)}
            self._call((given[0], {**given[1], **firsts}), adds)
            return
        *inner, loop = loops

        def again(index: Index) -> None:
            later = e.compare("ne", index, 0)
            moves = zip(places, (loop.left, loop.right), strict=True)
            moved = [e.add(place, e.mul(index, step)) for place, step in moves]
            self._reduce(inner, moved, given, arith.OrIOp(adds, later).result)

        e.each((0, loop.extent, 1), again)

    def _call(self, given: Given, adds: Value) -> None:
        start, _ = self._starts()

        def call(dot: str) -> None:
            kernel = product_kernel(self._p, streams=self._streams, dot=dot)
            self._library.call_with(self._e, kernel, *given, (start, adds))

        kinds = vnni_kinds(self._p)
        if self._is_first is None:
            call(kinds[0])
        else:
            self._e.when(self._is_first, lambda: call(kinds[0]), lambda: call(kinds[1]))
