"""The micro-kernels of products: what is computed behind each call.

A kernel is a function of pointers, strides and bounds. It depends on element types, the register tile and the
instruction set, never on a shape: all products of a program share one or two, and so do those of all programs
of a process.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from mind_mlir.lowering.schedule.contraction.kernels.kernel import MicroKernel, symbol
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import Moving, begin, count_of, stored, walk
from mind_mlir.lowering.schedule.contraction.kernels.product_results import Results, has_row
from mind_mlir.lowering.schedule.contraction.kernels.vnni import I8, WORD, dot_products

#: The most steps of a block that kernels copy, taps and all: with 192 bytes each, the first-level cache.
COPIED_STEPS = 256

#: Kernels of fewer rows are through with a panel before hints about the next one are of use.
_FETCHING_ROWS = 4

#: The arguments behind the three buffers of a product: offsets, extents and strides in elements.
PRODUCT_ARGUMENTS = (
    *("left_first", "right_first", "out_first"),
    *("rows", "planes", "columns", "depth", "last_depth", "taps", "last_taps", "blocks"),
    *("left_row", "left_tile", "left_plane", "left_step", "left_tap", "left_block"),
    *("right_panel", "right_step", "right_tap", "right_block"),
    *("out_row", "out_plane"),
    "sums_first",
)


@dataclasses.dataclass(frozen=True)
class ProductKernel(MicroKernel):
    """Sums of products in tiles of vector registers.

    It computes ``out[p, i, j] (+)= sum over b, t, k of left[p, i, b, t, k] * right[j, b, t, k]`` for planes
    ``p``, rows ``i`` and columns ``j``. Sums of one block ``b`` start at zero in registers; then they are
    added to what is in memory, or to a start value in the first block, if so told. Each row and each column
    counts on its own: rows past the last one repeat it, columns past it are masked.

    Attributes:
        rows: Rows of the tile.
        vectors: Vectors in a row of it.
        lanes: Elements in a vector.
        element: The type of accumulators and results, ``f32``, ``i64``.
        left: The type of elements of the left factor in memory, and conversions to accumulators, as in
            ``f32:fpext f64``.
        right: The same of the right factor.
        fma: Whether products of floats are fused with their addition.
        masks: Whether loads and stores of results take masks; else those at edges go through a buffer.
        ragged: Whether loads of the right factor take masks, too; else its panels are whole. They cost one
            of the operations that the processor could multiply with.
        copies: Whether each panel of a block is copied first, converted and with zeros for columns that are
            not there: the copy stays in the first-level cache for all rows. A block has `COPIED_STEPS` steps
            at most.
        streams: Whether results that start a sum go past the cache where whole vectors of them are aligned.
        fetches: Whether tiles ask for the next panel, which pays where panels are packed, or copied. Where
            they are parts of long rows, it takes the processor longer to find the pages than it saves.
        dot: The kind of dot products, one of those of `vnni`, or empty. Factors are words then, but for a
            left factor of pairs that lie side by side, whose strides count elements; steps are of words, and
            sums of ``I8`` start from those that lie behind the right factor, column by column from
            ``sums_first`` on.
    """

    rows: int
    vectors: int
    lanes: int
    element: str
    left: str
    right: str
    fma: bool
    masks: bool
    ragged: bool
    copies: bool
    streams: bool = False
    fetches: bool = False
    dot: str = ""

    kind = "product"
    buffers = ("left", "right", "out")
    numbers = PRODUCT_ARGUMENTS

    @property
    def name(self) -> str:
        """The symbol of the function."""
        names = ("fma", "masks", "ragged", "copies", "streams", "fetches")
        flags = [name for name in names if getattr(self, name)]
        tile = f"{self.rows}x{self.vectors}x{self.lanes}"
        dot = [self.dot] if self.dot else []
        return symbol(self.kind, [tile, self.left, self.right, self.element, *flags, *dot])

    @property
    def sums(self) -> str:
        """The type of what sums start from."""
        return self.element

    def append(self, t: Text) -> None:
        """Append the body."""
        _Product(self, t).append()


class _Walk(NamedTuple):
    """A pointer, and by how many elements of a type it moves with each step and with each tap."""

    pointer: str
    step: str
    tap: str
    element: str


class _Product:
    """Writes one product kernel."""

    def __init__(self, kernel: ProductKernel, t: Text) -> None:
        self._kernel = kernel
        self._t = t
        self._element = kernel.element
        self._columns = kernel.vectors * kernel.lanes
        self._vector = vector(kernel.lanes, kernel.element)
        self._stored = {"left": stored(kernel.left), "right": stored(kernel.right)}
        self._fetches = kernel.fetches and kernel.rows >= _FETCHING_ROWS

    def append(self) -> None:
        """Append the body: block after block of the sums, panel after panel."""
        t, kernel = self._t, self._kernel
        left, right, out = (
            begin(t, name, self._stored.get(name, self._element)) for name in ("left", "right", "out")
        )
        results = self._results = Results(t, kernel)
        self._copy = results.buffer(COPIED_STEPS) if kernel.copies else ""
        results.look_at(out)
        last = t.binary("sub", "%blocks", t.number(1))

        def block(number: str, inside: list[str]) -> list[str]:
            here, there, adds = inside
            is_last = t.compare("eq", number, last)
            depth = t.select(is_last, "%last_depth", "%depth", "i64")
            taps = t.select(is_last, "%last_taps", "%taps", "i64")
            following = t.step(there, "%right_block", self._stored["right"])
            is_first = t.compare("eq", number, t.number(0))
            self._panels(here, (there, following), out, (depth, taps), (adds, is_first))
            return [
                t.step(here, "%left_block", self._stored["left"]),
                following,
                t.constant("true", "i1"),
            ]

        t.loop("%blocks", [(left, "!llvm.ptr"), (right, "!llvm.ptr"), ("%adds", "i1")], block)
        if kernel.streams:  # other threads are to see what went past the cache once this returns
            t.line("llvm.fence seq_cst")

    def _panels(
        self,
        left: str,
        blocks: tuple[str, str],
        out: str,
        depth: tuple[str, str],
        flags: tuple[str, str],
    ) -> None:
        t = self._t
        adds, first = flags
        width = t.number(self._columns)
        count = count_of(t, "%columns", self._columns)

        def panel(_: str, inside: list[str]) -> list[str]:
            there, result, live, *column_sums = inside
            masks = self._masks(live)
            self._first = self._first_sums(first, column_sums)
            right = self._copied(there, depth, masks) if self._kernel.copies else there
            following = t.step(there, "%right_panel", self._stored["right"])
            is_last = t.compare("ule", live, width)
            ahead = t.select(is_last, blocks[1], following, "!llvm.ptr")
            planes = [
                Moving(left, "%left_plane", self._stored["left"]),
                Moving(result, "%out_plane", self._element),
            ]
            rest = (right, ahead), depth, masks, (live, adds)
            walk(t, "%planes", planes, lambda _, *plane: self._plane(plane, *rest))
            return [
                following,
                t.step(result, self._columns, self._element),
                t.binary("sub", live, width),
                *(t.step(each, self._columns, WORD) for each in column_sums),
            ]

        column_sums = [t.step("%right", "%sums_first", WORD)] if self._kernel.dot == I8 else []
        t.loop(
            count,
            [
                (blocks[0], "!llvm.ptr"),
                (out, "!llvm.ptr"),
                ("%columns", "i64"),
                *((each, "!llvm.ptr") for each in column_sums),
            ],
            panel,
        )

    def _first_sums(self, is_first: str, column_sums: list[str]) -> list[str]:
        """Append what sums start from in each vector of a row: zero, but for bytes in the first block."""
        t = self._t
        zero = t.zero(self._element, self._kernel.lanes)
        found = []
        for v in range(self._kernel.vectors):
            if not column_sums:
                found.append(zero)
                continue
            place = t.step(column_sums[0], v * self._kernel.lanes, WORD)
            start = t.load(place, self._vector, byte_width(WORD))
            found.append(t.select(is_first, start, zero, self._vector))
        return found

    def _copied(self, right: str, depth: tuple[str, str], masks: list[str]) -> str:
        """Append a copy of the panel at ``right``, step after step and tap after tap; return where it is."""
        t, lanes, stored = self._t, self._kernel.lanes, self._stored["right"]

        def step(_: str, source: str, target: str) -> None:
            for v, value in enumerate(self._rights(source, masks)):
                place = t.step(target, v * lanes, self._element)
                t.store(value, place, self._vector, lanes * byte_width(self._element))

        def tap(_: str, inside: list[str]) -> list[str]:
            source, target = inside
            moving = [Moving(source, "%right_step", stored), Moving(target, self._columns, self._element)]
            ends = walk(t, depth[0], moving, step)
            return [t.step(source, "%right_tap", stored), ends[1]]

        t.loop(depth[1], [(right, "!llvm.ptr"), (self._copy, "!llvm.ptr")], tap)
        return self._copy

    def _masks(self, live: str) -> list[str]:
        """Append the masks of the columns."""
        if not self._kernel.masks:
            return []
        return self._t.masks(live, self._kernel.vectors, self._kernel.lanes)

    def _plane(
        self,
        plane: tuple[str, ...],
        panels: tuple[str, str],
        depth: tuple[str, str],
        masks: list[str],
        bounds: tuple[str, str],
    ) -> None:
        t, kernel = self._t, self._kernel
        rows = t.number(kernel.rows)
        count = count_of(t, "%rows", kernel.rows)
        next_out = t.mul("%out_row", rows)
        left, out = plane

        def tile(number: str, inside: list[str]) -> list[str]:
            left, out, live = inside
            lefts = [left]
            for row in range(1, kernel.rows):  # those past the last one repeat it
                following = t.step(lefts[-1], "%left_row", self._stored["left"])
                lefts.append(t.select(has_row(t, live, row), following, lefts[-1], "!llvm.ptr"))
            sums = self._taps(lefts, (*panels, number), depth, masks)
            self._results.add(out, live, sums, masks, bounds)
            return [
                t.step(left, "%left_tile", self._stored["left"]),
                t.step(out, next_out, self._element),
                t.binary("sub", live, rows),
            ]

        t.loop(count, [(left, "!llvm.ptr"), (out, "!llvm.ptr"), ("%rows", "i64")], tile)

    def _taps(
        self,
        lefts: list[str],
        panels: tuple[str, str, str],
        depth: tuple[str, str],
        masks: list[str],
    ) -> list[str]:
        """Append the loops over taps and steps around the accumulators.

        The processor follows a panel by itself, but not from one panel to the next, nor on to the next page.
        So where kernels fetch, each tile prefetches a vector of each step of the next panel, which it takes
        no time for: the multiply-adds of a step take longer than all else.
        """
        t = self._t
        walks = self._walks(*panels, depth[0])
        zeros = [(first, self._vector) for first in self._first] * self._kernel.rows
        copies = self._kernel.copies

        def step(inside: list[str]) -> list[str]:
            offset, *rest = inside
            pointers, sums = rest[: len(walks)], rest[len(walks) :]
            rights = self._copies(pointers[0]) if copies else self._rights(pointers[0], masks)
            if self._fetches:
                t.prefetch(pointers[-1], level=2)
            following = list(sums)
            for row, left in enumerate(lefts):
                value = self._left(t.step(left, offset, self._stored["left"]))
                for v, factor in enumerate(rights):
                    cell = row * self._kernel.vectors + v
                    following[cell] = self._multiply_add(value, factor, sums[cell])
            after = t.add(offset, "%left_step")
            moved = [
                t.step(each, walk.step, walk.element) for each, walk in zip(pointers, walks, strict=True)
            ]
            return [after, *moved, *following]

        def tap(_: str, inside: list[str]) -> list[str]:
            offset, *rest = inside
            pointers, sums = rest[: len(walks)], rest[len(walks) :]
            carried = [*((each, "!llvm.ptr") for each in pointers), *((each, self._vector) for each in sums)]
            _, *ends = t.loop(depth[0], [(offset, "i64"), *carried], lambda _, inner: step(inner))
            after = t.add(offset, "%left_tap")
            moved = [t.step(each, walk.tap, walk.element) for each, walk in zip(pointers, walks, strict=True)]
            return [after, *moved, *ends[len(walks) :]]

        starts = [(walk.pointer, "!llvm.ptr") for walk in walks]
        return t.loop(depth[1], [(t.number(0), "i64"), *starts, *zeros], tap)[1 + len(walks) :]

    def _walks(self, right: str, ahead: str, number: str, depth: str) -> list[_Walk]:
        """Append how tile ``number`` goes through its panel, and through the next one, ``ahead``."""
        t, kernel, stored = self._t, self._kernel, self._stored["right"]
        columns, nothing = t.number(self._columns), t.number(0)
        walks = [_Walk(right, "%right_step", "%right_tap", stored)]
        if kernel.copies:
            walks = [_Walk(right, columns, t.mul(depth, columns), self._element)]
        if self._fetches:
            some = t.compare("ult", number, t.number(kernel.vectors))
            first = t.step(ahead, t.mul(number, t.number(kernel.lanes)), stored)
            step, tap = (t.select(some, each, nothing, "i64") for each in ("%right_step", "%right_tap"))
            walks.append(_Walk(t.select(some, first, ahead, "!llvm.ptr"), step, tap, stored))
        return walks

    def _left(self, pointer: str) -> str:
        t = self._t
        if self._kernel.dot:
            word = t.load(pointer, WORD, byte_width(self._stored["left"]))
            return t.splat(word, self._kernel.lanes, WORD)
        return t.splat(t.read(pointer, self._kernel.left, 0), self._kernel.lanes, self._element)

    def _copies(self, pointer: str) -> list[str]:
        t, lanes, type_ = self._t, self._kernel.lanes, self._element
        places = [t.step(pointer, v * lanes, type_) for v in range(self._kernel.vectors)]
        return [t.load(place, self._vector, lanes * byte_width(type_)) for place in places]

    def _rights(self, pointer: str, masks: list[str]) -> list[str]:
        t, lanes, stored = self._t, self._kernel.lanes, self._stored["right"]
        values = []
        for v in range(self._kernel.vectors):
            mask = masks[v] if self._kernel.ragged and masks else None
            values.append(t.read(t.step(pointer, v * lanes, stored), self._kernel.right, lanes, mask))
        return values

    def _multiply_add(self, left: str, right: str, sums: str) -> str:
        t, kernel = self._t, self._kernel
        if kernel.dot:
            return dot_products(t, kernel.dot, left, right, sums, kernel.lanes)
        return t.multiply_add(left, right, sums, kernel.element, kernel.lanes, fma=kernel.fma)
