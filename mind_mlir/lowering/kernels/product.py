"""The micro-kernels of products: what is computed behind each call.

A kernel is a function of pointers, strides and panel. It depends on element types, the register tile and the
instruction set, never on a shape: all products of a program share one or two, and so do those of all programs
of a process.
"""

from __future__ import annotations

from typing import NamedTuple

from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text, symbol
from mind_mlir.lowering.kernels.llvm_text import TextValue, byte_width, stored
from mind_mlir.lowering.kernels.product_results import Panel, Results, ResultTile
from mind_mlir.lowering.kernels.vnni import I8, WORD, dot_products
from mind_mlir.support.lazy_dataclass import dataclass

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


class PanelProductKernel(MicroKernel):
    """What kernels of products have in common: rows of a left factor by panels of a right one.

    Attributes:
        rows: Rows of a tile.
        vectors: Vectors in a row of it.
    """

    buffers = ("left", "right", "out")
    numbers = PRODUCT_ARGUMENTS[len(buffers) :]
    ones = ("planes", "taps", "last_taps", "blocks")
    adds = True
    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Columns of a tile, and of a panel."""
        return self.vectors * self.lanes


@dataclass(frozen=True)
class ProductKernel(PanelProductKernel):
    """Sums of products in tiles of vector registers.

    It computes ``out[p, i, j] (+)= sum over b, t, k of left[p, i, b, t, k] * right[j, b, t, k]`` for planes
    ``p``, rows ``i`` and columns ``j``. Sums of one block ``b`` start at zero in registers; then they are
    added to what is in memory, or to a start value in the first block, if so told. Each row and each column
    counts on its own: rows past the last one repeat it, columns past it are masked.

    Attributes:
        rows: Rows of the tile.
        vectors: Vectors in a row of it.
        masks: Whether loads and stores of results take masks; else those at edges go through a buffer.
        ragged: Whether loads of the right factor take masks, too; else its panels are whole. They cost one
            of the operations that the processor could multiply with.
        copies: Whether each panel of a block is copied first, converted and with zeros for columns that are
            not there: the copy stays in the first-level cache for all rows. A block has `COPIED_STEPS` steps
            at most.
        streams: Whether results that start a sum go past the cache where whole vectors of them are aligned.
        fetches: In how many steps tiles ask for a vector of the next panel, which pays where panels are
            packed, or copied; more than one only where they lie in one piece. 0: never. Where they are parts
            of long rows, it takes the processor longer to find the pages than it saves.
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
    fetches: int = 0
    dot: str = ""

    kind = "product"

    @property
    def name(self) -> str:
        """The symbol of the function."""
        names = ("fma", "masks", "ragged", "copies", "streams", "fetches")
        flags = [name for name in names if getattr(self, name)] + [str(self.fetches)] * (self.fetches > 1)
        tile = f"{self.rows}x{self.vectors}x{self.lanes}"
        dot = [self.dot] if self.dot else []
        return symbol(self.kind, [tile, self.left, self.right, self.element, *flags, *dot])

    def append(self, t: Text) -> None:
        """Append the body."""
        _Product(self, t).append()


class _Walk(NamedTuple):
    """A pointer, and by how many elements it moves with each step and with each tap."""

    pointer: TextValue
    step: TextValue
    tap: TextValue


class _Product:
    """Writes one product kernel."""

    def __init__(self, kernel: ProductKernel, t: Text) -> None:
        self._k, self._t = kernel, t
        self._fetches = kernel.fetches > 0 and kernel.rows >= _FETCHING_ROWS
        self._places = [v * kernel.lanes for v in range(kernel.vectors)]

    def append(self) -> None:
        """Append the body: block after block of the sums, panel after panel, plane after plane."""
        t, k = self._t, self._k
        given = ("left", k.left), ("right", k.right), ("out", k.element)
        left, right, out = (t.begin(*each) for each in given)
        tile = ResultTile(k.rows, k.vectors, k.lanes, k.element, k.masks, k.streams)
        self._results = Results(t, tile)
        self._copy = t.buffer(COPIED_STEPS * k.columns, k.element) if k.copies else None
        self._results.look_at(out)
        last = t["blocks"] - 1
        with t.loop(t["blocks"], left, right, t.adds) as (block, (left, right, adds)):
            is_last = block.number.compare("eq", last)
            depth = is_last.select(t["last_depth"], t["depth"])
            taps = is_last.select(t["last_taps"], t["taps"])
            next_block = right + t["right_block"]
            is_first = block.number.compare("eq", 0)
            count = t["columns"].blocks(k.columns)
            sums = [t.at("right", WORD) + t["sums_first"]] if k.dot == I8 else []
            with t.loop(count, right, out, t["columns"], *sums) as (panel, inside):
                there, result, live, *sums = inside
                masks = live.masks(k.vectors, k.lanes) if k.masks else []
                facts = Panel(depth, taps, live, adds, masks, self._first_sums(is_first, sums))
                source = self._copied(there, facts) if self._copy is not None else there
                following = there + t["right_panel"]
                ahead = live.compare("ule", k.columns).select(next_block, following)
                with t.loop(t["planes"], left, result) as (plane, (here, there)):
                    self._plane([here, there], (source, ahead), facts)
                    plane.next(here + t["left_plane"], there + t["out_plane"])
                after = result + k.columns, live - k.columns
                panel.next(following, *after, *(each + k.columns for each in sums))
            block.next(left + t["left_block"], next_block, t.constant("true", "i1"))
        if k.streams:  # other threads are to see what went past the cache once this returns
            t.line("llvm.fence seq_cst")

    def _first_sums(self, is_first: TextValue, sums: list[TextValue]) -> list[TextValue]:
        """Append what sums start from in each vector of a row: zero, but for bytes in the first block."""
        zero = self._t.constant(0, self._k.element, self._k.lanes)
        if not sums:
            return [zero] * self._k.vectors
        return [is_first.select((sums[0] + place).load(self._k.lanes), zero) for place in self._places]

    def _copied(self, right: TextValue, panel: Panel) -> TextValue:
        """Append a copy of the panel at ``right``, step after step and tap after tap; return where it is."""
        t, k = self._t, self._k
        assert self._copy is not None
        with t.loop(panel.taps, right, self._copy) as (tap, (source, target)):
            with t.loop(panel.depth, source, target) as (step, (here, there)):
                for place, value in zip(self._places, self._rights(here, panel.masks), strict=True):
                    (there + place).store(value, alignment=self._vector_bytes)
                onward, behind = here + t["right_step"], there + k.columns
                step.next(onward, behind)
            tap.next(source + t["right_tap"], behind)
        return self._copy

    @property
    def _vector_bytes(self) -> int:
        return self._k.lanes * byte_width(self._k.element)

    def _plane(self, plane: list[TextValue], rights: tuple[TextValue, TextValue], panel: Panel) -> None:
        """Append the tiles of a plane, which is there with its results: of a panel, and of the next one."""
        t, k = self._t, self._k
        count = t["rows"].blocks(k.rows)
        next_out = t["out_row"] * k.rows
        with t.loop(count, *plane, t["rows"]) as (tile, (left, out, live)):
            lefts = [left]
            for row in range(1, k.rows):  # those past the last one repeat it
                following = lefts[-1] + t["left_row"]
                lefts.append(live.compare("ugt", row).select(following, lefts[-1]))
            sums = self._taps(lefts, self._walks(*rights, tile.number, panel), panel)
            self._results.add(out, live, sums, panel)
            tile.next(left + t["left_tile"], out + next_out, live - k.rows)

    def _taps(self, lefts: list[TextValue], walks: list[_Walk], panel: Panel) -> list[TextValue]:
        """Append the loops over taps and steps around the accumulators.

        The processor follows a panel by itself, but not from one panel to the next, nor on to the next page.
        So where kernels fetch, each tile prefetches a vector of each step of the next panel, which it takes
        no time for: the multiply-adds of a step take longer than all else. Where that would be more lines at
        once than a core waits for, twice or four times as many tiles do so, each asking again for the same.
        """
        t, k, count = self._t, self._k, len(walks)
        starts = [each.pointer for each in walks]
        with t.loop(panel.taps, t.number(0), *starts, *panel.first * k.rows) as (tap, inside):
            with t.loop(panel.depth, *inside) as (step, (offset, *rest)):
                pointers, sums = rest[:count], rest[count:]
                rights = self._copies(pointers[0]) if k.copies else self._rights(pointers[0], panel.masks)
                if self._fetches:
                    pointers[-1].prefetch(level=2)
                following = []
                for row, left in enumerate(lefts):
                    value = self._left(left + offset)
                    for v, factor in enumerate(rights):
                        following.append(self._multiply_add(value, factor, sums[row * k.vectors + v]))
                onward = offset + t["left_step"]
                moved = [each + walk.step for each, walk in zip(pointers, walks, strict=True)]
                step.next(onward, *moved, *following)
            onward = inside[0] + t["left_tap"]
            moved = [each + walk.tap for each, walk in zip(inside[1:], walks, strict=False)]
            tap.next(onward, *moved, *following)
        return following

    def _walks(self, right: TextValue, ahead: TextValue, number: TextValue, panel: Panel) -> list[_Walk]:
        """Append how tile ``number`` goes through its panel, and through the next one, ``ahead``."""
        t, k = self._t, self._k
        columns = t.number(k.columns)
        walks = [_Walk(right, t["right_step"], t["right_tap"])]
        if k.copies:
            walks = [_Walk(right, columns, panel.depth * columns)]
        if self._fetches:
            some = number.compare("ult", k.vectors * k.fetches)
            if k.fetches == 1:
                first, step, tap = ahead + number * k.lanes, t["right_step"], t["right_tap"]
            else:
                step = t.number(k.lanes // k.fetches)
                tap = panel.depth * step
                first = ahead + number * (panel.taps * tap)
            step, tap = (some.select(each, t.number(0)) for each in (step, tap))
            walks.append(_Walk(some.select(first, ahead), step, tap))
        return walks

    def _left(self, place: TextValue) -> TextValue:
        if self._k.dot:
            width = byte_width(stored(self._k.left))
            return place.load(element=WORD, alignment=width).splat(self._k.lanes)
        return place.read().splat(self._k.lanes)

    def _rights(self, pointer: TextValue, masks: list[TextValue]) -> list[TextValue]:
        k = self._k
        given = masks if k.ragged and masks else [None] * k.vectors
        pairs = zip(self._places, given, strict=True)
        return [(pointer + place).read(k.lanes, mask) for place, mask in pairs]

    def _copies(self, pointer: TextValue) -> list[TextValue]:
        places = [pointer + place for place in self._places]
        return [each.load(self._k.lanes, alignment=self._vector_bytes) for each in places]

    def _multiply_add(self, left: TextValue, right: TextValue, sums: TextValue) -> TextValue:
        if self._k.dot:
            return dot_products(self._t, self._k.dot, left, right, sums)
        return left.multiply_add(right, sums, fma=self._k.fma)
