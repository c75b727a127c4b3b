"""Schedules of contractions as data, chosen by shape, element size and target."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.kernels.summands import PRODUCTS
from mind_mlir.lowering.kernels.tile_operations import SIDE
from mind_mlir.lowering.schedule.contraction.costs import WINDOW_SUM
from mind_mlir.lowering.schedule.contraction.geometry import ONCE, Loop
from mind_mlir.mlir.records import spelled
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.target import Target

#: The strategies: what `MatmulSchedule.strategy` may be. `choice` says which product takes which.
DOTS, SWEEP, TILES, WORDS, CONSTANT = "dots", "sweep", "tiles", "words", "constant panels"
OWN_PANELS, PANELS, COPIED, STRIPS, IN_PLACE = "own panels", "panels", "copied", "strips", "in place"
#: Those that pack the right factor into panels ``[columns][step][column]``.
PACKING = (TILES, WORDS, CONSTANT, OWN_PANELS, PANELS)


def instructions(target: Target) -> dict[str, bool]:
    """Return what schedules of products say of the instructions of ``target``."""
    return {"fma": target.fma, "masks": target.masks, "half": target.half}


@dataclass(frozen=True)
class MatmulSchedule:
    """The schedule of a contraction: in macro-tiles of the result, by calls of a kernel.

    Attributes:
        strategy: How the right factor is read.
        lanes: Elements in a vector.
        rows: Rows of the accumulator tile.
        vectors: Vectors in a row of the accumulator tile.
        kc: Products, at most about, that one accumulator sums before it is added to the result.
        mc: Rows of a macro-tile.
        planes: For how many values of the other loops over rows a macro-tile stands.
        nc: Columns of a macro-tile.
        macro_tiles: Macro-tiles in a chunk, the unit of threads.
        packings: Parts of the panels of the right factor that are packed in a chunk: steps of all where
            `Geometry.packs_steps`, else panels.
        pack_left: Whether the left factor is copied into ``[rows][step][row]`` first, tile by tile.
        fma: Whether products of floats are fused with their addition.
        masks: Whether vectors at edges are masked; else they go through a buffer.
        streams: Whether results may go past the cache, if nothing but the contraction uses them.
        brief: Whether the macro-tiles are over so soon that no thread is to be woken for them.
        hoist_depth: Out of how many loops packing is taken, since they do not change the right factor.
        half: Whether f16 becomes f32 in one instruction.
        vnni: Terms in a word, into which both factors are packed; then ``kc`` counts words.
        summands: Of how many bf16 elements of the factors are the sums; words are of one each.
        beside: Columns of dot products that are read side by side.
        prepacked_left: Whether the left factor is a constant, which is packed when the program is compiled.
        prepacked: Whether the right factor is.
        emulates: Whether vector code takes the place of instructions for tiles.
        fetch_steps: In how many steps a tile asks for a vector of the next panel, if panels are packed.
        mirrors: Whether macro-tiles above the diagonal are copies of what is below it.
    """

    strategy: str
    lanes: int
    rows: int
    vectors: int
    kc: int
    mc: int
    nc: int
    fma: bool
    masks: bool
    planes: int = 1
    macro_tiles: int = field(default=1, metadata=spelled("pieces"))
    packings: int = 1
    pack_left: bool = False
    streams: bool = False
    brief: bool = False
    hoist_depth: int = field(default=0, metadata=spelled("outside"))
    half: bool = True
    vnni: int = field(default=1, metadata=spelled("group"))
    summands: int = 1
    beside: int = 1
    prepacked_left: bool = field(default=False, metadata=spelled("given_left"))
    prepacked: bool = field(default=False, metadata=spelled("given"))
    emulates: bool = False
    fetch_steps: int = 1
    mirrors: bool = False

    @property
    def columns(self) -> int:
        """Columns of the accumulator tile."""
        return self.lanes * self.vectors

    @property
    def multiple(self) -> int:
        """What the steps of a block are a multiple of; of tiles those of the last one are, too."""
        return SIDE if self.strategy == TILES else 4

    @property
    def pack(self) -> bool:
        """Whether the right factor is packed into panels."""
        return self.strategy in PACKING

    @property
    def is_tiled(self) -> bool:
        """Whether the result is computed in macro-tiles."""
        return self.strategy not in (DOTS, SWEEP)

    @property
    def packs_first(self) -> bool:
        """Whether that is done before any macro-tile is computed."""
        return self.pack and self.strategy != OWN_PANELS

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        if not self.is_tiled:
            return self._gemv_choices()
        planes = f"{self.planes} x " if self.planes > 1 else ""
        panels = f"panels of {self.columns} columns" if self.pack else "in place"
        right = {
            COPIED: f"{self.columns} columns and {self.kc} steps at a time",
            OWN_PANELS: f"packed by each piece, {panels}",
        }.get(self.strategy, panels)
        reasons = (
            "packed where its steps are far apart, or converted",
            "packed where it is strided, or read often enough from afar",
        )
        if self.vnni > 1:
            reasons = ("packed for the instruction that multiplies several terms",) * 2
        constant = "a constant, packed when the program is compiled"
        given = zip((self.prepacked_left, self.prepacked), reasons, strict=True)
        why = [constant if is_constant else reason for is_constant, reason in given]
        near = "the part of the right factor that it reads stays in the second-level cache"
        registers = "tile" if self.strategy == TILES else "vector"
        sums = str(self.kc * self.vnni), "products in registers before they are added to the result"
        return chosen(
            ("tile", f"{self.rows} x {self.columns}", f"fits the {registers} registers, and the result"),
            ("sums", *sums),
            ("piece", f"{planes}{self.mc} x {self.nc}", near),
            ("chunk", f"{self.macro_tiles} pieces", "enough work to be worth a claim"),
            ("left", "packed" if self.pack_left else "in place", why[0]),
            ("right", right, why[1]),
            self.vnni > 1
            and ("terms", f"{self.vnni} at a time", "one instruction multiplies and adds as many"),
            self.summands > 1
            and (
                "products",
                f"{len(PRODUCTS[self.summands])} of bf16 each",
                f"a factor is a sum of {self.summands}, which tiles multiply",
            ),
            self.fetch_steps > 1
            and ("panel ahead", f"a vector in {self.fetch_steps} steps", "the last-level cache answers late"),
            self.streams and ("result", "past the cache", "larger than it, and written once"),
            self.mirrors and ("above", "copied from below the diagonal", "the result is symmetric"),
        )

    def _gemv_choices(self) -> tuple[Choice, ...]:
        columns = "column after column" if self.beside == 1 else f"{self.beside} columns side by side"
        order, size, sums = {
            SWEEP: ("row after row", f"{self.kc} x {self.nc}", self.kc),
            DOTS: (columns, f"{self.nc} columns", -(-self.kc // self.columns)),
        }[self.strategy]
        return chosen(
            ("right", f"in place, {order}", "memory is read once, and from one end to the other"),
            ("sums", str(sums), "products in an accumulator before it is added to another one"),
            ("chunk", size, "what threads share"),
        )


@dataclass(frozen=True)
class Reduction:
    """The reductions as a kernel runs through them.

    Attributes:
        step: The innermost loop.
        last: Its extent in the last block.
        tap: The loop around it, in the same registers.
        last_taps: Its extent in the last block.
        block: The loop around that one; accumulators go to memory after each iteration.
        around: What is left, innermost first.
    """

    step: Loop
    last: int
    tap: Loop
    last_taps: int
    block: Loop
    around: tuple[Loop, ...]


def reduction(depth: tuple[Loop, ...], kc: int, multiple: int = 4) -> Reduction:
    """Return how to run through the reductions ``depth``, innermost first, at most about ``kc`` at once.

    Blocks of the innermost one but for its last are of a ``multiple`` of steps.
    """
    first, *rest = depth or (ONCE,)
    if first.extent > kc:
        size = even_block(first.extent, kc, multiple)
        step, block, last = _blocks(first, size)
        return Reduction(step, last, ONCE, 1, block, tuple(rest))
    if not rest:
        return Reduction(first, first.extent, ONCE, 1, ONCE, ())
    most = max(1, WINDOW_SUM // first.extent)
    tap, block, last = _blocks(rest[0], even_block(rest[0].extent, most, 1))
    around = tuple(rest[1:])
    if block.extent == 1 and around:
        block, around = around[0], around[1:]
    return Reduction(first, first.extent, tap, last, block, around)


def _blocks(loop: Loop, size: int) -> tuple[Loop, Loop, int]:
    """Return ``loop`` as one of ``size`` in a loop over blocks, and the extent of the last block."""
    count = -(-loop.extent // size)
    block = Loop(count, size * loop.left, size * loop.right, 0) if count > 1 else ONCE
    return dataclasses.replace(loop, extent=size), block, loop.extent - (count - 1) * size


def even_block(extent: int, most: int, multiple: int = 4) -> int:
    """Return the block of at most about ``most`` that splits ``extent`` into blocks of nearly equal size."""
    blocks = -(-extent // most)
    return min(extent, round_up(-(-extent // blocks), multiple))


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple that is no less than ``value``."""
    return -(-value // multiple) * multiple
