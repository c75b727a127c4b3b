"""The micro-kernel of products by tiles: 16 x 16 sums each, four of which are computed side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.llvm_function import Text, symbol
from mind_mlir.lowering.kernels.product import PanelProductKernel
from mind_mlir.lowering.kernels.product_results import Panel, Results, ResultTile
from mind_mlir.lowering.kernels.summands import PRODUCTS
from mind_mlir.lowering.kernels.tile_operations import SIDE, SUMS, TILES, tile_operations
from mind_mlir.lowering.kernels.vnni import WIDENED, WORD
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_text import TextValue


@dataclass(frozen=True)
class TileProductKernel(PanelProductKernel):
    """Sums of products in tiles, of factors that are packed into words, as `ProductKernel` computes them.

    The left factor is in squares, ``[row / rows][step / 16][row][summand][step]``, the right one in panels,
    ``[column / columns][step][summand][column]``. There is one plane and one tap, and steps are a multiple of
    16.

    Attributes:
        rows: Rows that are computed side by side, a multiple of 16.
        vectors: Vectors of 16 columns side by side.
        lanes: 16.
        left, right: ``bf16``, or ``i8`` and ``u8`` in any combination.
        streams: As `ProductKernel` has it.
        how: How operations on tiles are written, one of those of `tile_operations`.
        summands: Of how many bf16 each element of a factor is the sum.
        in_place: Whether the left factor is rows of pairs of bf16 as they lie, whose strides count elements;
            there are all rows of its last tile.
    """

    rows: int
    vectors: int
    lanes: int
    element: str
    left: str
    right: str
    streams: bool
    how: str
    summands: int = 1
    in_place: bool = False

    kind = "tile product"

    @property
    def name(self) -> str:
        """The symbol of the function."""
        flags = self.streams and "streams", self.summands > 1 and f"summands {self.summands}"
        how = self.in_place and "in place", self.how
        parts = f"{self.rows}x{self.columns}", self.left, self.right, *flags, *how
        return symbol("product", [each for each in parts if each])

    def append(self, t: Text) -> None:
        """Append the body."""
        _TileProduct(self, t).append()


class _TileProduct:
    """Writes one kernel of products by tiles."""

    def __init__(self, kernel: TileProductKernel, t: Text) -> None:
        self._k, self._t = kernel, t
        self._tiles = tile_operations(t, kernel.how, kernel.left, kernel.right, kernel.summands)
        #: How far lines of tiles of each factor are apart.
        squares = t["left_row"] if kernel.in_place else SIDE * kernel.summands
        self._strides: tuple[TextValue | int, int] = squares, kernel.columns * kernel.summands
        #: Which summands are multiplied; of code that joins them, all at once.
        self._pairs = PRODUCTS[1 if kernel.how == WIDENED else kernel.summands]

    def append(self) -> None:
        """Append the body: block after block of the sums, panel after panel, some rows after others."""
        t, k = self._t, self._k
        left, right = t.begin("left", "i16" if k.in_place else WORD), t.begin("right", WORD)
        out = t.begin("out", k.element)
        row = ResultTile(1, k.vectors, k.lanes, k.element, masks=True, streams=k.streams)
        self._results = Results(t, row)
        self._sums = t.buffer(k.rows * k.columns, k.element)
        self._results.look_at(out)
        self._tiles.begin()
        last = t["blocks"] - 1
        with t.loop(t["blocks"], left, right, t.adds) as (block, (left, right, adds)):
            depth = block.number.compare("eq", last).select(t["last_depth"], t["depth"])
            count = t["columns"].blocks(k.columns)
            with t.loop(count, right, out, t["columns"]) as (panel, (there, result, live)):
                masks = live.masks(k.vectors, k.lanes)
                facts = Panel(depth, t["taps"], live, adds, masks, [])
                self._rows(left, there, result, facts)
                panel.next(there + t["right_panel"], result + k.columns, live - k.columns)
            block.next(left + t["left_block"], right + t["right_block"], t.constant("true", "i1"))
        self._tiles.end()
        if k.streams:  # other threads are to see what went past the cache once this returns
            t.line("llvm.fence seq_cst")

    def _rows(self, left: TextValue, right: TextValue, out: TextValue, panel: Panel) -> None:
        """Append the products of all rows and a panel."""
        t, k = self._t, self._k
        with t.loop(t["rows"].blocks(k.rows), left, out, t["rows"]) as (tile, (first, result, live)):
            for number in range(SUMS):
                self._tiles.zero(number)
            with t.loop(panel.depth // SIDE, first, right) as (step, (here, there)):
                self._step(here, there)
                onward = 2 * SIDE if k.in_place else SIDE * k.rows * k.summands
                step.next(here + onward, there + SIDE * k.columns * k.summands)
            for number in range(SUMS):
                row, vector = divmod(number, k.vectors)
                place = self._sums + (row * SIDE * k.columns + vector * SIDE)
                self._tiles.store(number, place, k.columns)
            with t.loop(live.minimum(k.rows), self._sums, result) as (line, (sums, there)):
                values = [(sums + vector * SIDE).load(SIDE, alignment=64) for vector in range(k.vectors)]
                self._results.add(there, live, values, panel)
                line.next(sums + k.columns, there + t["out_row"])
            tile.next(first + t["left_tile"], result + t["out_row"] * k.rows, live - k.rows)

    def _step(self, left: TextValue, right: TextValue) -> None:
        """Append the dot products of 16 words of all rows and columns.

        Those tiles of factors of which there are fewer stay in registers; the others share the rest. What a
        register holds is not loaded again.
        """
        k, tiles = self._k, self._tiles
        rows, columns = k.rows // SIDE, k.vectors
        held: dict[int, tuple[int, int, int]] = {}

        def hold(tile: int, side: int, number: int, summand: int) -> int:
            if held.get(tile) != (side, number, summand):
                held[tile] = side, number, summand
                place = self._place((left, right)[side], side, number, summand)
                tiles.load(tile, side, place, self._strides[side])
            return tile

        few = min(rows, columns)
        others = range(SUMS + few, TILES)
        few_side = 0 if rows <= columns else 1
        for pair in self._pairs:
            for number in range(few):
                hold(SUMS + number, few_side, number, pair[few_side])
            for turn in range(max(rows, columns)):
                other = hold(others[turn % len(others)], 1 - few_side, turn, pair[1 - few_side])
                for number in range(few):
                    both = (number, SUMS + number), (turn, other)
                    (row, one), (column, another) = both if few_side == 0 else both[::-1]
                    tiles.dot(row * k.vectors + column, one, another)

    def _place(self, first: TextValue, side: int, number: int, summand: int) -> TextValue:
        """Append where a tile of a factor lies."""
        k, (row, _) = self._k, self._strides
        if side == 1:
            return first + (number * SIDE + summand * k.columns)
        if isinstance(row, int):
            return first + (number * SIDE * row + summand * SIDE)
        return first + row * (number * SIDE) if number else first
