"""What the choice of a product's schedule depends on: its loops, its elements and the target, as facts."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import ACCUMULATED, LINE
from mind_mlir.lowering.kernels.gemv import JOINED
from mind_mlir.lowering.kernels.product import COPIED_STEPS
from mind_mlir.lowering.kernels.summands import PRODUCTS
from mind_mlir.lowering.kernels.tile_operations import SIDE
from mind_mlir.lowering.schedule.contraction import costs
from mind_mlir.lowering.schedule.contraction.schedule import even_block, round_up
from mind_mlir.ops.accumulation import BLOCK
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.lowering.schedule.contraction.words import Words
    from mind_mlir.target import Target
    from mind_mlir.target.rates import Rates


@dataclass
class ProductCase:
    """A product whose schedule is to be chosen.

    Attributes:
        loops: Its loops, all of one iteration or more.
        bits: Width of an accumulator in bits.
        target: The processor.
        hoist_depth: Out of how many loops the packing of its right factor can be taken.
        words: What both factors can be packed into, to be multiplied by one instruction, if they can.
        converts: Whether elements of the left factor are not accumulators in memory.
        constant_left: Whether the left factor can be packed when the program is compiled.
        constant_right: Whether the right factor can be. What is summed up in which order depends on neither.
        starts_at_zero: Whether all sums start from zero.
        is_symmetric: Whether the result is, since the right factor is the left one transposed.
        terms: How many terms are in a word; 1 without words.
        summands: Of how many bf16 each element of a factor is the sum; 1 for what is multiplied as it is.
        tiled: Whether the instruction multiplies tiles.
        size: Bytes of an accumulator.
        lanes: Accumulators in a vector.
        m: Rows of tiles.
        n: Columns.
        k: Steps of a sum: products, or words of them.
        planes: Iterations of all loops over rows but that of tiles.
        batch: Iterations of the loops over batches.
        all_rows: Rows that read the same right factor.
        nanoseconds: What it takes on one thread: to multiply, or to bring the right factor from memory.
        has_one_sum: Whether there is one loop over steps.
        is_matrix: Whether there is one loop over rows as well, and no batch.
        is_deep: Whether there are several reductions, and far more products than rows or columns.
        is_strided: Whether the right factor is not contiguous along the columns.
        right_bytes: Bytes of it in a batch, as accumulators or words.
        is_far: Whether it exceeds half of the second-level cache.
        is_far_as_given: Whether it does so with each term by itself.
        fills_l1: Whether it exceeds half of the first-level cache.
        step_bytes: By how many bytes steps of it are apart.
        has_near_steps: Whether vectors of it are cache lines, and steps at most a page apart.
        is_read_often: Whether enough rows read it to pay for packing.
        is_read_seldom: Whether few enough rows read it that a copy for each macro-tile is no loss.
        is_read_again: Whether the first-level cache loses it before it is read again.
        gives_panels: Whether it is a constant that is large enough for panels to pay where they take no time.
    """

    loops: Geometry
    bits: int
    target: Target
    hoist_depth: int = 0
    words: Words | None = None
    converts: bool = False
    constant_left: bool = False
    constant_right: bool = False
    starts_at_zero: bool = False
    is_symmetric: bool = False

    def __post_init__(self) -> None:
        loops, target = self.loops, self.target
        self.terms = 1 if self.words is None else self.words.terms
        self.summands = 1 if self.words is None else self.words.summands
        self.tiled = self.words is not None and self.words.is_tiled
        self.size, self.lanes = self.bits // 8, target.lanes(self.bits)
        self.m, self.n = loops.rows[0].extent, loops.columns.extent
        self.k = -(-loops.steps // self.terms)
        self.planes = math.prod(loop.extent for loop in loops.rows[1:])
        self.batch = math.prod(loop.extent for loop in loops.batch)
        self.all_rows = self.m * self.planes
        self.right_bytes = self.k * self.n * self.size * self.summands
        self.nanoseconds = self._nanoseconds(target.rates)
        self.has_one_sum = len(loops.depth) == 1
        self.is_matrix = self.has_one_sum and len(loops.rows) == 1 and not loops.batch
        self.is_deep = not self.has_one_sum and self.k > costs.DEEP * max(self.all_rows, self.n)

        self.is_strided = loops.is_strided
        self.is_far = self.right_bytes > target.l2_bytes // 2
        self.is_far_as_given = loops.steps * self.n * self.size > target.l2_bytes // 2
        self.fills_l1 = self.right_bytes > target.l1_bytes // 2
        self.step_bytes = loops.depth[0].right * self.size
        has_lines = self.lanes * self.size >= LINE
        self.has_near_steps = has_lines and not self.is_strided and self.step_bytes <= costs.PAGE
        self.is_read_often = self.all_rows >= costs.PACK_ROWS
        self.is_read_seldom = self.all_rows <= costs.COPIED_FOR
        is_read_by_few = self.has_one_sum and self.is_read_seldom
        self.is_read_again = not is_read_by_few and self.right_bytes > target.l1_bytes
        self.gives_panels = self.constant_right and self.fills_l1

    def _nanoseconds(self, rates: Rates) -> float:
        multiplied = self.all_rows * self.batch * self.k * -(-self.n // self.lanes) * rates.multiply_add_ns
        multiplied *= len(PRODUCTS[self.summands]) / costs.TILE_SPEED if self.tiled else 1
        return max(multiplied, self.right_bytes * self.batch * rates.byte_ns)

    # Products of few rows

    @cached_property
    def is_swept(self) -> bool:
        """Whether few rows read long rows of a right factor that comes from memory."""
        is_few = self.is_matrix and self.loops.columns.out == 1 and self.m <= costs.AXPY_ROWS
        return (
            is_few and not self.is_strided and self.is_far_as_given and self.n * self.size >= costs.LONG_BYTES
        )

    @property
    def swept_steps(self) -> int:
        """Steps of a part of a sweep."""
        parts = -(-self.loops.steps // (8 * costs.PARTS)) * 8
        return min(self.loops.steps, costs.MOST_STEPS, max(costs.FEWEST_STEPS, parts))

    @cached_property
    def tiles_as_swept(self) -> bool:
        """Whether tiles compute the bits of a sweep with its products in a sum, and gain by panels.

        A sweep has the same blocks of products, whose sums it adds up in the same order if they are one
        group. All starts from zero, so that it does not matter which sum is added first. One row gains
        nothing.
        """
        steps, kc = self.loops.steps, self.swept_steps
        is_alike = -(-steps // kc) <= JOINED and even_block(steps, kc) == kc
        return self.is_swept and self.constant_right and self.starts_at_zero and self.m > 1 and is_alike

    # Tiles

    @cached_property
    def packs_left(self) -> bool:
        """Whether the left factor is packed, if tiles have rows for it: it is strided, or converted."""
        rows, depth = self.loops.rows[0], self.loops.depth[0]
        least = costs.CONVERTED if self.converts else costs.PACK_LEFT
        is_large = rows.extent * self.loops.steps * self.size >= least
        apart = rows.left == 1 and depth.left != 1
        along = self.converts and depth.left == 1
        return self.is_matrix and is_large and (apart or along) and self.n >= costs.PACK_LEFT_COLUMNS

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Rows and vectors of the first tile whose modelled time is within a tolerance of the lowest.

        There are few tiles, so that the contractions of a program share their kernels. Where the left factor
        is packed for certain, it is in squares of as many rows as a tile has. Tiles have a least size, if
        they can, where that lets what comes from afar be read once, or seldom, and much of a row at once.
        """
        vectors = -(-self.n // self.lanes)
        if self.tiled:
            return _first_of(
                {
                    (rows * SIDE, width): -(-self.m // (rows * SIDE))
                    * -(-vectors // width)
                    * costs.tiles_cost(rows, width)
                    for rows, width in costs.TILE_SHAPES
                },
                costs.TOLERANCE_TILES,
            )
        packs = self.terms > 1 or self.packs_left
        tiles = [(rows, width) for rows, width in costs.TILES if not packs or rows in costs.SQUARES]
        registers = self.target.vector_registers
        fitting = [(rows, width) for rows, width in tiles if rows * width + width + 1 <= registers]
        for place, few in enumerate(self._least_tile):
            fitting = [tile for tile in fitting if tile[place] >= few] or fitting
        times = {
            (rows, width): -(-self.m // rows) * -(-vectors // width) * costs.tile_cost(rows, width)
            for rows, width in fitting
        }
        return _first_of(times, self._tolerance)

    @property
    def _least_tile(self) -> tuple[int, int]:
        """The rows and vectors that a tile is to have at least."""
        if not self.is_far:
            return 1, 1
        is_panel = self.gives_panels or self.terms > 1
        is_read_in_place = self.has_near_steps and self.is_read_often and self.is_read_seldom
        if is_read_in_place and self.step_bytes > costs.CLOSE and not is_panel:
            return costs.LARGE
        return self.m if self.m <= costs.ONCE_READ else min(self.m, costs.PANEL_ROWS), 1

    @property
    def _tolerance(self) -> float:
        # Where there are no masks, sums depend on the tile.
        if self._nanoseconds(REFERENCE) <= costs.SMALL_NS:
            return costs.TOLERANCE_SMALL
        if not self.is_far or self.terms > 1:
            return costs.TOLERANCE_NEAR
        return costs.TOLERANCE_LINES if self.has_near_steps else costs.TOLERANCE_FAR

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.lanes * self.tile[1]

    @cached_property
    def is_ragged(self) -> bool:
        """Whether tiles at the edge would load columns that are not there."""
        return self.n % self.columns > 0 and not self.target.masks

    @cached_property
    def reads_once(self) -> bool:
        """Whether too few rows to pay for panels read a right factor that comes from memory."""
        is_plain = self.terms == 1 and not (self.is_ragged or self.is_strided)
        return self.is_far and is_plain and not self.is_read_often

    @cached_property
    def kc(self) -> int:
        """Steps, at most about, that one accumulator sums."""
        if self.tiles_as_swept:
            return self.swept_steps
        if self.tiled:  # a panel of a block stays near, and few sums add to the result
            near = self.target.l1_bytes // costs.TILE_SHARE // (self.columns * self.size)
            return max(near // SIDE * SIDE, round_up(-(-self.k // BLOCK), SIDE), SIDE)
        if self.terms > 1:  # as many terms
            return max(costs.WORDS_SUM, round_up(math.isqrt(self.loops.steps) // self.terms, 4))
        longest = ACCUMULATED if self.has_one_sum else costs.WINDOW_SUM
        most = costs.strip(self.m) if self.reads_once else max(longest, round_up(math.isqrt(self.k), 4))
        if self.has_one_sum and not self.reads_once and self.k <= BLOCK:
            most = max(most, self.k)  # results go to memory once
        return most

    @cached_property
    def stays_near(self) -> bool:
        """Whether what a macro-tile reads of the right factor, in place or copied, stays in the cache."""
        fits = min(self.k, round_up(self.kc, 4)) <= COPIED_STEPS and self.has_one_sum and self.terms == 1
        is_plain = not (self.is_strided or self.is_ragged or (self.is_far and self.hoist_depth))
        return fits and is_plain and self.fills_l1 and self.is_read_often and self.is_read_seldom

    @property
    def has_wide_tiles(self) -> bool:
        """Whether tiles read so much of each row of the right factor that a copy gains nothing."""
        return self.columns * self.size >= (costs.WIDE // 2 if self.has_near_steps else costs.WIDE)

    @property
    def mirrors(self) -> bool:
        """Whether a symmetric result takes so long that a copy of one half is nothing beside it."""
        is_long = self.loops.steps >= costs.MIRRORED_STEPS and self.nanoseconds >= costs.MIRRORED_NS
        return self.is_symmetric and is_long and self.size >= costs.MIRRORED_BYTES

    @property
    def panel_bytes(self) -> int:
        """Bytes of a panel of all steps."""
        return round_up(self.k, costs.PADDED_STEPS) * self.columns * self.size


def _first_of(times: Mapping[tuple[int, int], float], tolerance: float) -> tuple[int, int]:
    """Return the first tile whose time is no longer than ``tolerance`` times the shortest."""
    most = min(times.values()) * tolerance
    return next(tile for tile, time in times.items() if time <= most)
