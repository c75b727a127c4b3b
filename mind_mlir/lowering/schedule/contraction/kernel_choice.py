"""The micro-kernels that a contraction calls, known from its schedule long before the calls are emitted.

Those that pack are told what they pack: which elements of a factor, in which order.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mind_mlir.lowering.emission.split import split
from mind_mlir.lowering.kernels.gemv import AxpyKernel, DotKernel, JoinKernel
from mind_mlir.lowering.kernels.llvm_text import byte_width
from mind_mlir.lowering.kernels.packing import PackKernel
from mind_mlir.lowering.kernels.product import ProductKernel
from mind_mlir.lowering.kernels.tile_operations import EMULATED, INSTRUCTIONS, LEFT_TILES, RIGHT_TILES
from mind_mlir.lowering.kernels.tile_product import TileProductKernel
from mind_mlir.lowering.kernels.vnni import NOTHING_SEEN, SUMS, WIDENED, WORD
from mind_mlir.lowering.schedule.contraction.geometry import ONCE
from mind_mlir.lowering.schedule.contraction.schedule import COPIED, DOTS, SWEEP, TILES
from mind_mlir.lowering.schedule.contraction.words import conversions, words_of
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.lowering.schedule.contraction.geometry import Loop
    from mind_mlir.lowering.schedule.contraction.marked import Product
    from mind_mlir.lowering.schedule.contraction.schedule import MatmulSchedule
    from mind_mlir.lowering.schedule.contraction.words import Words


def kernels_of(product: Product) -> list[Kernel]:
    """Return all kernels that a product calls."""
    schedule = product.schedule
    if schedule.strategy == DOTS:
        return list(dict.fromkeys(dot_kernel(product, rows) for rows in dot_rows(schedule)))
    if schedule.strategy == SWEEP:
        return [axpy_kernel(product), join_kernel(product)]
    kinds = vnni_kinds(product)
    kernels: list[Kernel] = [product_kernel(product, streams=schedule.streams, dot=dot) for dot in kinds]
    if schedule.pack:
        kernels.append(packing_of(product, "right").kernel)
    if schedule.pack_left:
        kernels.append(packing_of(product, "left").kernel)
    return kernels


def vnni_kinds(product: Product) -> tuple[str, ...]:
    """Return the kinds of dot products that are computed: of two, the first where factors allow it."""
    if product.schedule.vnni == 1:
        return ("",)
    if product.schedule.strategy == TILES:
        how = EMULATED if product.schedule.emulates else INSTRUCTIONS
    else:
        how = _words(product).kind
    return (how, WIDENED) if product.contraction.floating else (how,)


def _words(product: Product) -> Words:
    """Return the words that the factors of a product are packed into."""
    found = words_of(product.contraction, tiled=product.schedule.strategy == TILES)
    assert found is not None, "the schedule has words"
    return found


def _multiplies(product: Product) -> dict[str, Any]:
    """Return what all kernels that multiply have."""
    c, s = product.contraction, product.schedule
    return {
        "lanes": s.lanes,
        "element": str(c.element),
        "left": conversions(c.left, half=s.half),
        "right": conversions(c.right, half=s.half),
        "fma": s.fma and c.floating,
    }


def product_kernel(product: Product, *, streams: bool, dot: str = "") -> ProductKernel | TileProductKernel:
    """Return the kernel that multiplies in tiles, by dot products of a kind of `vnni_kinds`."""
    s, common = product.schedule, _multiplies(product)
    if s.strategy == TILES:
        left, right = _words(product).types
        tile, types = (s.rows, s.vectors, s.lanes), (common["element"], left, right)
        return TileProductKernel(*tile, *types, streams, dot, s.summands)
    packed = WORD if dot else common["element"]
    common |= {"left": packed} if s.pack_left else {}
    common |= {"right": packed} if s.pack else {}
    return ProductKernel(
        rows=s.rows,
        vectors=s.vectors,
        masks=s.masks,
        ragged=not s.pack and product.loops.columns.extent % s.columns > 0,
        copies=s.strategy == COPIED,
        streams=streams,
        fetches=s.fetch_steps if s.pack else int(s.strategy == COPIED),
        dot=dot,
        **common,
    )


#: Extent and stride of a loop over memory.
Axis: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True)
class Packing:
    """The elements of a factor that are packed, and their order: ``[batch][panel][outer][step][column]``.

    Attributes:
        kernel: Packs them.
        first: The first of them.
        columns: The loop over columns.
        inner: The innermost loop over steps.
        outer: The other loops over steps, innermost first.
        batch: The loops over batches, innermost first.
        together: How many panels, or steps of all panels, are packed at once.
        batches: Of how many batches in a chunk.
        by_steps: Whether chunks are some steps of all panels.
    """

    kernel: PackKernel
    first: int
    columns: Axis
    inner: Axis
    outer: tuple[Axis, ...] = ()
    batch: tuple[Axis, ...] = ()
    together: int = dataclasses.field(default=1, compare=False)
    batches: int = dataclasses.field(default=1, compare=False)
    by_steps: bool = dataclasses.field(default=False, compare=False)

    @property
    def steps(self) -> int:
        """Steps that a panel has for the innermost loop: words, where there are any."""
        words, multiple = -(-self.inner[0] // self.kernel.vnni), self.kernel.multiple
        return -(-words // multiple) * multiple

    @property
    def panel(self) -> int:
        """Elements of a panel."""
        return self.steps * math.prod(extent for extent, _ in self.outer) * self.kernel.line

    @property
    def panels(self) -> int:
        """Panels of a batch."""
        return -(-self.columns[0] // self.kernel.columns)

    @property
    def size(self) -> int:
        """Elements of all panels."""
        return self.panels * self.panel * math.prod(extent for extent, _ in self.batch)

    @property
    def info(self) -> int:
        """Elements of packing info behind them."""
        if self.kernel.info == SUMS:
            return self.size // self.panel * self.kernel.columns
        return len(NOTHING_SEEN.get(self.kernel.info, ()))

    @property
    def stride(self) -> int:
        """How far the kernel moves in memory: from one column to the next if it transposes, else a step."""
        return (self.columns if self.kernel.transposes else self.inner)[1]

    @property
    def batch_strides(self) -> list[int]:
        """How far packed elements move in each loop over batches."""
        extents = [extent for extent, _ in self.batch]
        width = self.panels * self.panel
        return [width * math.prod(extents[:place]) for place in range(len(extents))]


def packing_of(product: Product, side: Literal["left", "right"]) -> Packing:
    """Return the packing of a factor: the left one by rows of tiles, the right one by panels."""
    c, g, s = product.contraction, product.loops, product.schedule
    is_left = side == "left"
    lines, (inner, *outer) = (g.rows[0], g.depth[:1]) if is_left else (g.columns, g.packed or (ONCE,))
    kernel = PackKernel(
        columns=s.rows if is_left else s.columns,
        lanes=s.rows if is_left else s.lanes,
        element=str(c.element),
        source=conversions(c.left if is_left else c.right, half=s.half),
        transposes=lines.left != 1 if is_left else g.is_strided,
        masks=s.masks,
    )
    if s.vnni > 1:
        words = _words(product)
        source, info = (each[0 if is_left else 1] for each in (words.sources, words.infos))
        kernel = dataclasses.replace(
            kernel, element=WORD, source=source, vnni=s.vnni, info=info, summands=s.summands
        )
    if s.strategy == TILES:
        kernel = dataclasses.replace(kernel, lanes=s.lanes, tiles=LEFT_TILES if is_left else RIGHT_TILES)

    def axis(loop: Loop) -> Axis:
        return loop.extent, loop.left if is_left else loop.right

    panels = -(-lines.extent // kernel.columns)
    together, batches = s.packings, 1
    if is_left:
        copied = 2 * lines.extent * inner.extent * byte_width(kernel.element)
        together = split(panels, copied * REFERENCE.byte_ns).step
    elif g.batch:
        together, batches = panels, s.packings
    return Packing(
        kernel,
        first=g.first[0 if is_left else 1],
        columns=axis(lines),
        inner=axis(inner),
        outer=tuple(axis(loop) for loop in outer),
        batch=tuple(axis(loop) for loop in g.batch),
        together=together,
        batches=batches,
        by_steps=not is_left and g.packs_steps and kernel.info != SUMS,
    )


def axpy_kernel(product: Product) -> AxpyKernel:
    """Return the kernel that goes through the right factor row by row."""
    return AxpyKernel(rows=product.schedule.rows, masks=product.schedule.masks, **_multiplies(product))


def join_kernel(product: Product) -> JoinKernel:
    """Return the kernel that adds up the results of parts."""
    s = product.schedule
    return JoinKernel(s.lanes, str(product.contraction.element), s.masks)


def dot_rows(schedule: MatmulSchedule) -> list[int]:
    """Return how many rows each of the calls has that read the same columns of the right factor."""
    firsts = range(0, schedule.mc, schedule.rows)
    return [min(schedule.rows, schedule.mc - first) for first in firsts]


def dot_kernel(product: Product, rows: int) -> DotKernel:
    """Return the kernel that goes through the right factor by columns, for so many ``rows``."""
    c, s = product.contraction, product.schedule
    ragged = c.extent(c.k) % s.columns > 0
    return DotKernel(rows=rows, beside=s.beside, vectors=s.vectors, ragged=ragged, **_multiplies(product))
