"""The micro-kernels of products: what is computed behind each call.

A kernel is a function of pointers, strides and bounds. It depends on element types, the register tile and the
instruction set, never on a shape: all products of a program share one or two, and so do those of all programs
of a process.
"""

from __future__ import annotations

import dataclasses
import functools

from mind_mlir.lowering.schedule.contraction.dots import I8, WORD, dot_products
from mind_mlir.lowering.schedule.contraction.text import Text, byte_width, convert, vector

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
class ProductKernel:
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
        dot: The kind of dot products, one of those of `contraction.dots`, or empty. Then factors are words,
            but for a left factor of pairs that lie side by side, whose strides count elements; steps are of
            words, and sums of ``I8`` start from those that were noted behind the right factor, column by
            column from ``sums_first`` on.
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
    dot: str = ""

    @property
    def name(self) -> str:
        """The symbol of the function."""
        parts = [f"{self.rows}x{self.vectors}x{self.lanes}", self.left, self.right, self.element]
        parts += [flag for flag in ("fma", "masks", "ragged", "copies", "streams") if getattr(self, flag)]
        parts += [self.dot] if self.dot else []
        return "mind_product_" + "_".join(part.replace(":", "_").replace(" ", "_") for part in parts)

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _product_text(self)


@functools.cache
def _product_text(kernel: ProductKernel) -> str:
    return _Product(kernel).text()


class _Product:
    """Writes one product kernel."""

    def __init__(self, kernel: ProductKernel) -> None:
        self._kernel = kernel
        self._t = Text()
        self._element = kernel.element
        self._columns = kernel.vectors * kernel.lanes
        self._vector = vector(kernel.lanes, kernel.element)
        self._stored = {"left": kernel.left.split(":")[0], "right": kernel.right.split(":")[0]}
        self._float = kernel.element[0] == "f"
        self._zero = "dense<0.0>" if self._float else "dense<0>"
        self._cells = [(row, v) for row in range(kernel.rows) for v in range(kernel.vectors)]

    def text(self) -> str:
        t, kernel = self._t, self._kernel
        left, right, out = (
            t.step(f"%{name}", f"%{name}_first", self._stored.get(name, self._element))
            for name in ("left", "right", "out")
        )
        start = t.splat("%start", kernel.lanes, self._element)
        self._start = start
        self._edge = "" if kernel.masks else self._buffer(kernel.rows)
        self._copy = self._buffer(COPIED_STEPS) if kernel.copies else ""
        self._aligned = self._alignment(out) if kernel.streams else ""
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
        buffers = [(f"%{name}", "!llvm.ptr") for name in ("left", "right", "out")]
        numbers = [(f"%{name}", "i64") for name in PRODUCT_ARGUMENTS]
        return t.function(kernel.name, [*buffers, *numbers, ("%start", self._element), ("%adds", "i1")])

    def _alignment(self, out: str) -> str:
        """Append whether each vector of the result is aligned to its own size."""
        t, width = self._t, byte_width(self._element)
        address = t.op(f"llvm.ptrtoint {out} : !llvm.ptr to i64")
        strides = t.binary("or", "%out_row", "%out_plane")
        bits = t.binary("or", address, t.mul(strides, t.number(width)))
        misplaced = t.binary("and", bits, t.number(self._kernel.lanes * width - 1))
        return t.compare("eq", misplaced, t.number(0))

    def _buffer(self, rows: int) -> str:
        """Append memory for so many rows of a tile or panel."""
        cells = self._t.number(rows * self._columns)
        return self._t.op(
            f"llvm.alloca {cells} x {self._element} {{alignment = 64 : i64}} : (i64) -> !llvm.ptr"
        )

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
        count = t.binary("udiv", t.add("%columns", t.number(self._columns - 1)), width)

        def panel(_: str, inside: list[str]) -> list[str]:
            there, result, live, *noted = inside
            masks = self._masks(live, adds)
            self._first = self._first_sums(first, noted)
            right = self._copied(there, depth, masks[0]) if self._kernel.copies else there
            following = t.step(there, "%right_panel", self._stored["right"])
            is_last = t.compare("ule", live, width)
            ahead = t.select(is_last, blocks[1], following, "!llvm.ptr")
            t.loop(
                "%planes",
                [(left, "!llvm.ptr"), (result, "!llvm.ptr"), (ahead, "!llvm.ptr")],
                lambda _, plane: self._plane(plane, right, depth, masks, (live, adds)),
            )
            return [
                following,
                t.step(result, self._columns, self._element),
                t.binary("sub", live, width),
                *(t.step(each, self._columns, WORD) for each in noted),
            ]

        noted = [t.step("%right", "%sums_first", WORD)] if self._kernel.dot == I8 else []
        t.loop(
            count,
            [
                (blocks[0], "!llvm.ptr"),
                (out, "!llvm.ptr"),
                ("%columns", "i64"),
                *((each, "!llvm.ptr") for each in noted),
            ],
            panel,
        )

    def _first_sums(self, is_first: str, noted: list[str]) -> list[str]:
        """Append what sums start from in each vector of a row: zero, but for bytes in the first block."""
        t = self._t
        zero = t.constant(self._zero, self._vector)
        found = []
        for v in range(self._kernel.vectors):
            if not noted:
                found.append(zero)
                continue
            place = t.step(noted[0], v * self._kernel.lanes, WORD)
            start = t.load(place, self._vector, byte_width(WORD))
            found.append(t.select(is_first, start, zero, self._vector))
        return found

    def _copied(self, right: str, depth: tuple[str, str], masks: list[str]) -> str:
        """Append a copy of the panel at ``right``, step after step and tap after tap; return where it is."""
        t, lanes = self._t, self._kernel.lanes

        def step(_: str, inside: list[str]) -> list[str]:
            source, target = inside
            for v, value in enumerate(self._rights(source, masks if self._kernel.ragged else [])):
                place = t.step(target, v * lanes, self._element)
                t.store(value, place, self._vector, lanes * byte_width(self._element))
            after = t.step(source, "%right_step", self._stored["right"])
            return [after, t.step(target, self._columns, self._element)]

        def tap(_: str, inside: list[str]) -> list[str]:
            source, target = inside
            ends = t.loop(depth[0], [(source, "!llvm.ptr"), (target, "!llvm.ptr")], step)
            return [t.step(source, "%right_tap", self._stored["right"]), ends[1]]

        t.loop(depth[1], [(right, "!llvm.ptr"), (self._copy, "!llvm.ptr")], tap)
        return self._copy

    def _masks(self, live: str, adds: str) -> tuple[list[str], list[str]]:
        """Append the masks of the columns, and of those whose results are added to what there is."""
        if not self._kernel.masks:
            return [], []
        lanes = self._kernel.lanes
        added = self._t.select(adds, live, self._t.number(0), "i64")
        firsts = [v * lanes for v in range(self._kernel.vectors)]
        return (
            [self._t.mask(live, first, lanes) for first in firsts],
            [self._t.mask(added, first, lanes) for first in firsts],
        )

    def _plane(
        self,
        plane: list[str],
        right: str,
        depth: tuple[str, str],
        masks: tuple[list[str], list[str]],
        bounds: tuple[str, str],
    ) -> list[str]:
        t = self._t
        rows = t.number(self._kernel.rows)
        count = t.binary("udiv", t.add("%rows", t.number(self._kernel.rows - 1)), rows)
        next_out = t.mul("%out_row", rows)
        left, out, ahead = plane
        tiles = t.mul(count, "%planes")
        fetched = t.binary("udiv", t.add(depth[0], t.binary("sub", tiles, t.number(1))), tiles)
        fetches = self._kernel.rows >= _FETCHING_ROWS

        def tile(_: str, inside: list[str]) -> list[str]:
            left, out, live, ahead = inside
            last = t.binary("sub", t.minimum(live, rows), t.number(1))
            numbers = [t.minimum(t.number(row), last) for row in range(self._kernel.rows)]
            lefts = [t.step(left, t.mul(n, "%left_row"), self._stored["left"]) for n in numbers]
            outs = [t.step(out, t.mul(n, "%out_row"), self._element) for n in numbers]
            if not self._kernel.streams:  # what sums are added to is on its way meanwhile
                for row, v in self._cells:
                    t.prefetch(t.step(outs[row], v * self._kernel.lanes, self._element))
            after = self._fetched(ahead, fetched) if fetches else ahead
            sums = self._taps(lefts, right, depth, masks[0] if self._kernel.ragged else [])
            if self._kernel.streams:
                self._stream(outs, sums, masks, bounds)
            elif self._kernel.masks:
                self._add_masked(outs, sums, masks)
            else:
                self._add_by_way_of_buffer(outs, sums, last, bounds)
            return [
                t.step(left, "%left_tile", self._stored["left"]),
                t.step(out, next_out, self._element),
                t.binary("sub", live, rows),
                after,
            ]

        carried = [(left, "!llvm.ptr"), (out, "!llvm.ptr"), ("%rows", "i64"), (ahead, "!llvm.ptr")]
        *_, ahead = t.loop(count, carried, tile)
        return [
            t.step(left, "%left_plane", self._stored["left"]),
            t.step(out, "%out_plane", self._element),
            ahead,
        ]

    def _fetched(self, pointer: str, steps: str) -> str:
        """Append hints that so many steps of a panel will be read soon; return where the next ones are.

        The processor follows a panel by itself, but not on to the next page, nor from one panel to the next.
        """
        t, lanes, stored = self._t, self._kernel.lanes, self._stored["right"]

        def step(_: str, inside: list[str]) -> list[str]:
            for v in range(self._kernel.vectors):
                t.prefetch(t.step(inside[0], v * lanes, stored), level=2)
            return [t.step(inside[0], "%right_step", stored)]

        return t.loop(steps, [(pointer, "!llvm.ptr")], step)[0]

    def _taps(self, lefts: list[str], right: str, depth: tuple[str, str], masks: list[str]) -> list[str]:
        """Append the loops over taps and steps around the accumulators."""
        t = self._t
        zeros = [(self._first[v], self._vector) for _, v in self._cells]
        copied = self._kernel.copies
        right_type = self._element if copied else self._stored["right"]
        right_step: str | int = self._columns if copied else "%right_step"
        right_tap = t.mul(depth[0], t.number(self._columns)) if copied else "%right_tap"

        def step(inside: list[str]) -> list[str]:
            offset, pointer, *sums = inside
            rights = self._copies(pointer) if copied else self._rights(pointer, masks)
            following = list(sums)
            for row, left in enumerate(lefts):
                value = self._left(t.step(left, offset, self._stored["left"]))
                for v, factor in enumerate(rights):
                    cell = row * self._kernel.vectors + v
                    following[cell] = self._multiply_add(value, factor, sums[cell])
            after = t.add(offset, "%left_step")
            return [after, t.step(pointer, right_step, right_type), *following]

        def tap(_: str, inside: list[str]) -> list[str]:
            offset, pointer, *sums = inside
            carried = [(offset, "i64"), (pointer, "!llvm.ptr"), *((each, self._vector) for each in sums)]
            _, _, *sums = t.loop(depth[0], carried, lambda _, inner: step(inner))
            after = t.add(offset, "%left_tap")
            return [after, t.step(pointer, right_tap, right_type), *sums]

        return t.loop(depth[1], [(t.number(0), "i64"), (right, "!llvm.ptr"), *zeros], tap)[2:]

    def _left(self, pointer: str) -> str:
        t = self._t
        width = byte_width(self._stored["left"])
        if self._kernel.dot:
            return t.splat(t.load(pointer, WORD, width), self._kernel.lanes, WORD)
        scalar = t.load(pointer, self._stored["left"], width)
        return t.splat(convert(t, self._kernel.left, scalar, 0), self._kernel.lanes, self._element)

    def _copies(self, pointer: str) -> list[str]:
        t, lanes, type_ = self._t, self._kernel.lanes, self._element
        places = [t.step(pointer, v * lanes, type_) for v in range(self._kernel.vectors)]
        return [t.load(place, self._vector, lanes * byte_width(type_)) for place in places]

    def _rights(self, pointer: str, masks: list[str]) -> list[str]:
        t, lanes, stored = self._t, self._kernel.lanes, self._stored["right"]
        values = []
        for v in range(self._kernel.vectors):
            place = t.step(pointer, v * lanes, stored)
            if masks:
                type_ = vector(lanes, stored)
                off = t.constant("dense<0.0>" if stored[0] != "i" else "dense<0>", type_)
                value = t.masked_load(place, masks[v], off, lanes, stored)
            else:
                value = t.load(place, vector(lanes, stored), byte_width(stored))
            values.append(convert(t, self._kernel.right, value, lanes))
        return values

    def _multiply_add(self, left: str, right: str, sums: str) -> str:
        t, type_ = self._t, self._vector
        if self._kernel.dot:
            return dot_products(t, self._kernel.dot, left, right, sums, self._kernel.lanes)
        if not self._float:
            return t.binary("add", sums, t.binary("mul", left, right, type_), type_)
        if self._kernel.fma:
            return t.op(f"llvm.intr.fma({left}, {right}, {sums}) : ({type_}, {type_}, {type_}) -> {type_}")
        return t.binary("fadd", sums, t.binary("fmul", left, right, type_), type_)

    def _sum(self, left: str, right: str) -> str:
        return self._t.binary("fadd" if self._float else "add", left, right, self._vector)

    def _add_masked(self, outs: list[str], sums: list[str], masks: tuple[list[str], list[str]]) -> None:
        """Append results: all are read before any is written, for rows past the last one are that row."""
        t, lanes = self._t, self._kernel.lanes
        places = [t.step(outs[row], v * lanes, self._element) for row, v in self._cells]
        totals = []
        for (_, v), place, value in zip(self._cells, places, sums, strict=True):
            old = t.masked_load(place, masks[1][v], self._start, lanes, self._element)
            totals.append(self._sum(old, value))
        for (_, v), place, value in zip(self._cells, places, totals, strict=True):
            t.masked_store(value, place, masks[0][v], lanes, self._element)

    def _stream(
        self,
        outs: list[str],
        sums: list[str],
        masks: tuple[list[str], list[str]],
        bounds: tuple[str, str],
    ) -> None:
        """Append results, which go past the cache where all columns are there and are aligned."""
        t = self._t
        live, adds = bounds
        whole = t.compare("uge", live, t.number(self._columns))
        first = t.binary("xor", adds, t.constant("true", "i1"), "i1")
        past = t.binary("and", t.binary("and", whole, first, "i1"), self._aligned, "i1")

        def stream() -> None:
            for (row, v), value in zip(self._cells, sums, strict=True):
                place = t.step(outs[row], v * self._kernel.lanes, self._element)
                t.stream(self._sum(self._start, value), place, self._kernel.lanes, self._element)

        t.either(past, stream, lambda: self._add_masked(outs, sums, masks))

    def _add_by_way_of_buffer(
        self, outs: list[str], sums: list[str], last: str, bounds: tuple[str, str]
    ) -> None:
        """Append results: in place if all columns are there, else in memory of their own on the way."""
        t, lanes, element = self._t, self._kernel.lanes, self._element
        live, adds = bounds
        whole = t.compare("uge", live, t.number(self._columns))
        partial = t.compare("ult", live, t.number(self._columns))
        rows = t.add(last, t.number(1))
        first = outs[0]

        def copy(into: bool) -> None:
            def cell(row: str, column: str) -> list[str]:
                place = t.step(first, t.add(t.mul(row, "%out_row"), column), element)
                own = t.step(self._edge, t.add(t.mul(row, t.number(self._columns)), column), element)
                source, target = (place, own) if into else (own, place)
                width = byte_width(element)
                t.store(t.load(source, element, width), target, element, width)
                return []

            def row(number: str, _: list[str]) -> list[str]:
                return t.loop(live, [], lambda column, _: cell(number, column))

            t.loop(rows, [], row)

        t.either(t.binary("and", partial, adds, "i1"), lambda: copy(into=True))
        values = []
        places = []
        for (row, v), value in zip(self._cells, sums, strict=True):
            start = t.step(self._edge, row * self._columns + v * lanes, element)
            place = t.select(whole, t.step(outs[row], v * lanes, element), start, "!llvm.ptr")
            old = t.load(place, self._vector, byte_width(element))
            values.append(self._sum(t.select(adds, old, self._start, self._vector), value))
            places.append(place)
        for place, value in zip(places, values, strict=True):
            t.store(value, place, self._vector, byte_width(element))
        t.either(partial, lambda: copy(into=False))
