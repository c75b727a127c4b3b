"""The micro-kernel of products by tiles: 16 x 16 sums each, four of which are computed side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.llvm_function import MicroKernel, Text, symbol
from mind_mlir.lowering.kernels.product import PRODUCT_ARGUMENTS
from mind_mlir.lowering.kernels.product_results import Panel, Results, ResultTile
from mind_mlir.lowering.kernels.tile_operations import SIDE, tile_operations
from mind_mlir.lowering.kernels.vnni import WORD
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_text import TextValue

#: Tiles of sums, and all tiles that there are.
_SUMS, _TILES = 4, 8


@dataclass(frozen=True)
class TileProductKernel(MicroKernel):
    """Sums of products in tiles, of factors that are packed into words, as `ProductKernel` computes them.

    The left factor is in squares, ``[row / rows][step / 16][row][step]``, the right one in panels,
    ``[column / columns][step][column]``. There is one plane and one tap, and steps are a multiple of 16.

    Attributes:
        rows: Rows that are computed side by side, a multiple of 16.
        vectors: Vectors of 16 columns side by side.
        lanes: 16.
        left, right: ``bf16``, or ``i8`` and ``u8`` in any combination.
        streams: As `ProductKernel` has it.
        how: How operations on tiles are written, one of those of `tile_operations`.
    """

    rows: int
    vectors: int
    lanes: int
    element: str
    left: str
    right: str
    streams: bool
    how: str

    kind = "tile product"
    buffers = ("left", "right", "out")
    numbers = PRODUCT_ARGUMENTS[len(buffers) :]
    ones = ("planes", "taps", "last_taps", "blocks")
    adds = True

    @property
    def name(self) -> str:
        """The symbol of the function."""
        streams = ["streams"] if self.streams else []
        return symbol("product", [f"{self.rows}x{self.columns}", self.left, self.right, *streams, self.how])

    @property
    def columns(self) -> int:
        """Columns of a panel."""
        return self.vectors * self.lanes

    def append(self, t: Text) -> None:
        """Append the body."""
        _TileProduct(self, t).append()


class _TileProduct:
    """Writes one kernel of products by tiles."""

    def __init__(self, kernel: TileProductKernel, t: Text) -> None:
        self._k, self._t = kernel, t
        self._tiles = tile_operations(t, kernel.how, kernel.left, kernel.right)

    def append(self) -> None:
        """Append the body: block after block of the sums, panel after panel, some rows after others."""
        t, k = self._t, self._k
        left, right, out = t.begin("left", WORD), t.begin("right", WORD), t.begin("out", k.element)
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
            for number in range(_SUMS):
                self._tiles.zero(number)
            with t.loop(panel.depth // SIDE, first, right) as (step, (here, there)):
                self._step(here, there)
                step.next(here + k.rows * SIDE, there + k.columns * SIDE)
            for number in range(_SUMS):
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

        Those tiles of factors of which there are fewer stay in registers; the others share the rest.
        """
        k, tiles = self._k, self._tiles
        rows = [(left + row * SIDE, SIDE) for row in range(0, k.rows, SIDE)]
        columns = [(right + column, k.columns) for column in range(0, k.columns, SIDE)]
        are_rows_few = len(rows) <= len(columns)
        few, many = (rows, columns) if are_rows_few else (columns, rows)
        for number, each in enumerate(few):
            tiles.load(_SUMS + number, *each)
        others = range(_SUMS + len(few), _TILES)
        for turn, each in enumerate(many):
            other = others[turn % len(others)]
            tiles.load(other, *each)
            for number in range(len(few)):
                row, column = (number, turn) if are_rows_few else (turn, number)
                pair = (_SUMS + number, other) if are_rows_few else (other, _SUMS + number)
                tiles.dot(row * k.vectors + column, *pair)
