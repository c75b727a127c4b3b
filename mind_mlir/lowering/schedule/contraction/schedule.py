"""Schedules of contractions as data, chosen by shape, element size and target."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.geometry import ONCE, Geometry, Loop
from mind_mlir.lowering.schedule.contraction.kernels.product import COPIED_STEPS
from mind_mlir.lowering.schedule.emission.constants import (
    BYTE_NS,
    LINE,
    STREAMED_CACHES,
    WAKING_NS,
    WORTHWHILE_NS,
)
from mind_mlir.lowering.schedule.emission.decision import Choice
from mind_mlir.lowering.schedule.emission.split import split
from mind_mlir.mlir.records import spelled
from mind_mlir.ops.accumulation import BLOCK

if TYPE_CHECKING:
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class MatmulSchedule:
    """The schedule of a contraction: in pieces of the result, by calls of a kernel.

    Attributes:
        lanes: Elements in a vector.
        rows: Rows of the accumulator tile.
        vectors: Vectors in a row of the accumulator tile.
        kc: Products, at most about, that one accumulator sums before it is added to the result.
        mc: Rows of a piece.
        planes: For how many values of the other loops over rows a piece stands.
        nc: Columns of a piece.
        macro_tiles: Pieces in a chunk, the unit of threads.
        pack: Whether the right factor is copied into panels ``[columns][step][column]`` first.
        packings: Parts of that in a chunk: steps of all panels where `packs_steps` says so, else panels.
        copy: Whether the kernel copies what it reads of the right factor, a block of a panel at a time.
        pack_left: Whether the left factor is copied into ``[rows][step][row]`` first, tile by tile.
        fma: Whether products of floats are fused with their addition.
        masks: Whether vectors at edges are masked; else they go through a buffer.
        streams: Whether results may go past the cache, if nothing but the contraction uses them.
        brief: Whether the pieces are over so soon that no thread is to be woken for them.
        hoist_depth: Out of how many loops packing is taken, since they do not change the right factor.
        half: Whether f16 becomes f32 in one instruction.
        vnni: Terms in a word, into which both factors are packed; then ``kc`` counts words.
        pack_macro_tiles: Whether each macro-tile packs its panels of the right factor itself, just before it
            uses them.
        gemv_axpy: Whether rows of the right factor are read one after the other (see `AxpyKernel`), ``kc`` of
            them in a part.
        gemv_dot: Whether columns of it are, each of which is contiguous (see `DotKernel`).
        prepacked_left: Whether the left factor is a constant, which is packed when the program is compiled.
        prepacked: Whether the right factor is.
    """

    lanes: int
    rows: int
    vectors: int
    kc: int
    mc: int
    planes: int
    nc: int
    macro_tiles: int = field(metadata=spelled("pieces"))
    pack: bool
    packings: int
    copy: bool
    pack_left: bool
    fma: bool
    masks: bool
    streams: bool = False
    brief: bool = False
    hoist_depth: int = field(default=0, metadata=spelled("outside"))
    half: bool = True
    vnni: int = field(default=1, metadata=spelled("group"))
    pack_macro_tiles: bool = field(default=False, metadata=spelled("pack_pieces"))
    gemv_axpy: bool = field(default=False, metadata=spelled("sweeps"))
    gemv_dot: bool = field(default=False, metadata=spelled("dots"))
    prepacked_left: bool = field(default=False, metadata=spelled("given_left"))
    prepacked: bool = field(default=False, metadata=spelled("given"))

    @property
    def columns(self) -> int:
        """Columns of the accumulator tile."""
        return self.lanes * self.vectors

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        if self.gemv_axpy or self.gemv_dot:
            return self._gemv_choices()
        planes = f"{self.planes} x " if self.planes > 1 else ""
        size = f"{planes}{self.mc} x {self.nc}"
        packed = f"panels of {self.columns} columns" if self.pack else "in place"
        packed = f"{self.columns} columns and {self.kc} steps at a time" if self.copy else packed
        packed = f"packed by each piece, {packed}" if self.pack_macro_tiles else packed
        left, right = (
            "packed where its steps are far apart, or converted",
            "packed where it is strided, or read often enough from afar",
        )
        if self.vnni > 1:
            left = right = "packed for the instruction that multiplies several terms"
        constant = "a constant, packed when the program is compiled"
        left, right = constant if self.prepacked_left else left, constant if self.prepacked else right
        return (
            Choice("tile", f"{self.rows} x {self.columns}", "fits the vector registers, and the result"),
            Choice(
                "sums", str(self.kc * self.vnni), "products in registers before they are added to the result"
            ),
            Choice(
                "piece", size, "the part of the right factor that it reads stays in the second-level cache"
            ),
            Choice("chunk", f"{self.macro_tiles} pieces", "enough work to be worth a claim"),
            Choice("left", "packed" if self.pack_left else "in place", left),
            Choice("right", packed, right),
            *(
                [Choice("terms", f"{self.vnni} at a time", "one instruction multiplies and adds as many")]
                if self.vnni > 1
                else []
            ),
            *(
                [Choice("result", "past the cache", "larger than it, and written once")]
                if self.streams
                else []
            ),
        )

    def _gemv_choices(self) -> tuple[Choice, ...]:
        order = "row after row" if self.gemv_axpy else "column after column"
        size = f"{self.kc} x {self.nc}" if self.gemv_axpy else f"{self.nc} columns"
        sums = self.kc if self.gemv_axpy else -(-self.kc // (self.vectors * self.lanes))
        return (
            Choice("right", f"in place, {order}", "memory is read once, and from one end to the other"),
            Choice("sums", str(sums), "products in an accumulator before it is added to another one"),
            Choice("chunk", size, "what threads share"),
        )


@dataclasses.dataclass(frozen=True)
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


def reduction(depth: tuple[Loop, ...], kc: int) -> Reduction:
    """Return how to run through the reductions ``depth``, innermost first, at most about ``kc`` at once."""
    first, *rest = depth or (ONCE,)
    if first.extent > kc:
        size = even_block(first.extent, kc)
        step, block, last = _blocks(first, size)
        return Reduction(step, last, ONCE, 1, block, tuple(rest))
    if not rest:
        return Reduction(first, first.extent, ONCE, 1, ONCE, ())
    most = max(1, _TAPS // first.extent)
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


def choose_matmul_schedule(
    geometry: Geometry,
    *,
    bits: int,
    target: Target,
    hoist_depth: int = 0,
    vnni: int = 1,
    converts: bool = False,
    prepacked: tuple[bool, bool] = (False, False),
    sums: int = 0,
) -> MatmulSchedule:
    """Return the schedule of a contraction.

    Args:
        geometry: Its loops, all of one iteration or more.
        bits: Width of an accumulator in bits.
        target: The processor.
        hoist_depth: Out of how many loops the packing of its right factor can be taken.
        vnni: How many terms of both factors go into a word, which one instruction multiplies.
        converts: Whether elements of the left factor are not accumulators in memory.
        prepacked: Whether the left factor, and the right one, can be packed when the program is compiled.
            What is summed up in which order does not depend on it.
        sums: How many products an accumulator sums, if that is settled.
    """
    lanes = target.lanes(bits)
    size = bits // 8
    m, n, k = geometry.rows[0].extent, geometry.columns.extent, -(-geometry.steps // vnni)
    planes = math.prod(loop.extent for loop in geometry.rows[1:])
    batch = math.prod(loop.extent for loop in geometry.batch)
    nanoseconds = max(m * planes * batch * k * -(-n // lanes) * _FMA_NS, k * n * batch * size * BYTE_NS)
    right = k * n * size
    far = right > target.l2_bytes // 2
    step = geometry.depth[0].right * size
    near = not is_strided(geometry) and step <= _PAGE and lanes * size >= LINE
    tolerance = 1.02 if not far or vnni > 1 else 1.015 if near else 1.05
    tolerance = 1.3 if nanoseconds <= _SMALL_NS else tolerance
    often, few = m * planes >= _PACK_ROWS, m * planes <= _COPIED_FOR
    packs = vnni > 1 or _packs_left(geometry, _SQUARES[0], size, converts=converts)
    has_panels = prepacked[1] and right > target.l1_bytes // 2
    least = 1 if not far else m if m <= _ONCE_READ else min(m, _PANEL_ROWS) if has_panels else 1
    apart = near and far and often and few and step > _CLOSE and not (has_panels or vnni > 1)
    smallest = _LARGE if apart else (least, 1)
    rows, vectors = _tile(m, -(-n // lanes), target, tolerance, packs=packs, least=smallest)
    columns = lanes * vectors
    ragged = n % columns > 0 and not target.masks
    streamed = far and vnni == 1 and not (often or ragged or is_strided(geometry))
    alone = len(geometry.depth) == 1
    longest = _SUM if alone else _WINDOW_SUM
    kc = _strip(m) if streamed else max(longest, _round_up(math.isqrt(k), 4))
    if alone and not streamed and k <= BLOCK:
        kc = max(kc, k)  # results go to memory once
    if vnni > 1:  # as many terms
        kc = max(_WORDS, _round_up(math.isqrt(geometry.steps) // vnni, 4))
    kc = sums or kc
    streamed = streamed and not has_panels
    plain = not is_strided(geometry) and not ragged and min(k, _round_up(kc, 4)) <= COPIED_STEPS
    wide = columns * size >= (_WIDE // 2 if near else _WIDE)
    stays = plain and alone and often and few and not (far and hoist_depth) and vnni == 1
    stays = stays and right > target.l1_bytes // 2
    copy = stays and not (wide or has_panels)
    again = not (alone and few) and right > target.l1_bytes
    deep = not alone and k > _DEEP * max(m * planes, n)
    pack = is_strided(geometry) or ragged or (often and (far or again) and not (stays or deep)) or vnni > 1
    pack = pack or has_panels
    pack_left = _packs_left(geometry, rows, size, converts=converts) or vnni > 1
    panel = _round_up(k, _PADDED_STEPS) * columns * size
    pack_macro_tiles = (
        is_strided(geometry) and far and alone and len(geometry.rows) == batch == 1 and not hoist_depth
    )
    pack_macro_tiles = (
        pack_macro_tiles and not prepacked[1] and m <= _COPIED_FOR and panel <= _PANEL_BYTES and vnni == 1
    )
    flat = pack and len(geometry.rows) == 1
    most = _PACKED_SHARES if pack_left else _PANEL_SHARES if flat else _SHARES
    room = [target.l2_bytes // share // (min(kc, k) * size) for share in most]
    room[1] = _equal(n, room[1], columns) if flat else room[1]
    room = [m * planes, n] if deep else room
    narrowest = n if deep else _STREAM_BYTES // size if streamed else columns
    wanted = min(_DEEP_PIECES if deep else _MOST_PIECES, max(2, round(nanoseconds / _PIECE_NS)))
    mc, nc, together = _macro_tiles(
        (m, n, planes, batch),
        (rows, _COPY_ROWS if copy else rows, columns, narrowest),
        (room[0], room[1]),
        0 if nanoseconds < WORTHWHILE_NS else wanted,
        tall=copy,
    )
    if pack_macro_tiles:
        mc, nc = m, max(1, _PANEL_BYTES // 2 // panel) * columns
    result = batch * planes * m * n * size
    tiles = batch * -(-m // mc) * -(-planes // together) * -(-n // nc)
    by_steps = packs_steps(geometry) and vnni < _WHOLE
    tiled_loops = geometry.steps if by_steps else batch if batch > 1 else -(-n // columns)
    return MatmulSchedule(
        lanes=lanes,
        rows=rows,
        vectors=vectors,
        kc=kc,
        mc=mc,
        planes=together,
        nc=nc,
        macro_tiles=split(tiles, nanoseconds).step,
        pack=pack,
        packings=_round_up(split(tiled_loops, 2 * right * batch * BYTE_NS).step, vnni if by_steps else 1),
        copy=copy,
        pack_left=pack_left,
        fma=target.fma,
        masks=target.masks,
        streams=target.masks and alone and k <= kc and result > STREAMED_CACHES * target.l2_bytes,
        brief=nanoseconds < WAKING_NS,
        hoist_depth=hoist_depth if pack else 0,
        half=target.half,
        vnni=vnni,
        pack_macro_tiles=pack_macro_tiles,
        prepacked_left=prepacked[0] and pack_left,
        prepacked=prepacked[1] and pack,
    )


def is_strided(geometry: Geometry) -> bool:
    """Return whether the right factor is not contiguous along the columns, so that it has to be packed."""
    return geometry.columns.right != 1 and geometry.columns.extent > 1


def packs_steps(geometry: Geometry) -> bool:
    """Return whether a chunk of packing is some steps of all panels, which are read on through memory."""
    return not is_strided(geometry) and not geometry.batch and len(geometry.packed) == 1


def _packs_left(geometry: Geometry, rows: int, size: int, *, converts: bool) -> bool:
    """Return whether the left factor is packed, in tiles of ``rows``: steps are far apart, or converted."""
    plain = len(geometry.rows) == 1 and not geometry.batch and len(geometry.depth) == 1
    if not plain or rows not in _SQUARES:
        return False
    far = geometry.rows[0].extent * geometry.steps * size >= (_CONVERTED if converts else _PACK_LEFT[0])
    apart = geometry.rows[0].left == 1 and geometry.depth[0].left != 1
    along = converts and geometry.depth[0].left == 1
    return far and (apart or along) and geometry.columns.extent >= _PACK_LEFT[1]


#: Nanoseconds for a vector multiply-add among others, about.
_FMA_NS = 0.17
#: Nanoseconds of work of a contraction that the choice of its tile does not matter for.
_SMALL_NS = 3_000
#: Products that one accumulator sums: 256 are less accurate by half, 128 cost some percent.
_SUM = 160
#: The same where there are several reductions: three positions in a window of 64 channels.
_WINDOW_SUM = 192
#: Words that one accumulator sums: of two terms each, blocks are as long as `ops.accumulation` allows.
_WORDS = 128
#: Words of so many terms are packed a column at a time: their sums are noted, too.
_WHOLE = 4
#: Products that one accumulator sums where there are several reductions.
_TAPS = 192
#: Bytes of a left factor from which on it is packed, and the least number of columns that pays for it.
_PACK_LEFT = 2 << 20, 256
#: The same bytes where elements are converted, which packing does once.
_CONVERTED = 32 << 10
#: Rows of tiles whose left factor can be packed.
_SQUARES = (2, 4, 8)
#: What part of the second-level cache the left and the right factor of a piece may take, a block of steps at
#: a time: of the left one little where panels are packed, so that it stays while many of them go through, and
#: so that rows of it and of the result do not displace each other where they are a power of two apart.
_SHARES, _PANEL_SHARES, _PACKED_SHARES = (4, 4), (16, 4), (24, 6)
#: The fewest rows of a piece whose kernel copies: copying takes a thirtieth of the time then.
_COPY_ROWS = 64
#: For more rows than this, a large right factor is packed once rather than copied for each piece; or rather
#: than read in place, where a panel has so many bytes of each row: half of them where vectors are cache lines
#: and rows at most a page apart.
_COPIED_FOR, _WIDE, _PAGE = 640, 256, 4096
#: The least tile where the right factor is far and read in place, with rows more bytes than this apart: tiles
#: of 8 x 32 take up to a quarter longer than those of 6 x 64 there.
_LARGE, _CLOSE = (6, 3), 2048
#: Rows of a tile, at most, that are looked for where panels are packed when compiled, and read from afar.
_PANEL_ROWS = 4
#: Bytes of panels that a piece packs for itself, at most; of their steps, a multiple of so many is there.
_PANEL_BYTES, _PADDED_STEPS = 256 << 10, 16
#: Up to so many rows are all in one tile if the right factor is far: it is read once.
_ONCE_READ = 8
#: Fewer rows than this do not pay for packing.
_PACK_ROWS = 24
#: Bytes of a row of the right factor that are read from afar in one go.
_STREAM_BYTES = 4096
#: Nanoseconds of work in a piece, about, where there is enough of it.
_PIECE_NS = 10_000
#: The least number of pieces of a large contraction.
_MOST_PIECES = 32
#: Several reductions with so many times as many products as the result has rows, or columns, are deep, as
#: those of filters' gradients are: each piece reads much of both factors, so there are few of them.
_DEEP, _DEEP_PIECES = 4, 4


def _macro_tiles(
    extents: tuple[int, int, int, int],
    least: tuple[int, int, int, int],
    room: tuple[int, int],
    wanted: int,
    *,
    tall: bool,
) -> tuple[int, int, int]:
    """Return rows, columns and planes of the pieces of a result.

    Args:
        extents: Rows, columns, planes and batches.
        least: Rows of the tile and, at least, of a piece; columns of the tile and, at least, of a piece.
        room: The most rows and columns of the factors that a piece is to read.
        wanted: How many pieces there are to be at least, if that can be.
        tall: Whether pieces have few columns rather than few rows.
    """
    m, n, planes, batch = extents
    rows, shortest, columns, fewest = least
    row_blocks = -(-m // max(room[0], rows))
    column_blocks = -(-n // max(room[1], fewest))
    plane_blocks = -(-planes // max(1, room[0] // m))
    while batch * row_blocks * column_blocks * plane_blocks < wanted:
        mc, nc = -(-m // row_blocks), -(-n // column_blocks)
        if plane_blocks < planes:
            plane_blocks = min(planes, 2 * plane_blocks)
        elif nc >= 2 * fewest and (tall or nc >= mc or mc < 2 * rows):
            column_blocks *= 2
        elif mc >= 2 * shortest:
            row_blocks *= 2
        else:
            break
    return (
        min(m, _round_up(-(-m // row_blocks), rows)),
        _round_up(-(-n // column_blocks), columns),
        -(-planes // plane_blocks),
    )


def _equal(extent: int, most: int, multiple: int) -> int:
    """Return the size of blocks, of about ``most``, that are equal, so that threads finish together."""
    fewest = -(-extent // max(most, multiple))
    sizes = {count: _round_up(-(-extent // count), multiple) for count in range(fewest, fewest + 3)}
    return sizes[min(sizes, key=lambda count: sizes[count] * count)]


def _strip(rows: int) -> int:
    """Return how many rows of a right factor that is read once from afar are read side by side.

    Few enough for the processor to prefetch all of them, enough to make up for storing the accumulators.
    """
    return 16 if 1 < rows <= 16 else 32


def _tile(
    m: int, vectors: int, target: Target, tolerance: float, *, packs: bool, least: tuple[int, int]
) -> tuple[int, int]:
    """Return the first of the tiles whose modelled time is within ``tolerance`` of the lowest.

    The first ones are the most efficient where the result is large. There are few of them, so that the
    contractions of a program share their kernels. Where the left factor is packed for certain (``packs``), it
    is in squares of as many rows as a tile has. Of ``least`` rows and vectors, if tiles can have so many,
    what comes from afar is read once, or seldom, and much of a row at once.
    """
    tiles = [(rows, width) for rows, width in _TILES if not packs or rows in _SQUARES]
    fitting = [(rows, width) for rows, width in tiles if rows * width + width + 1 <= target.vector_registers]
    for place, few in enumerate(least):
        fitting = [tile for tile in fitting if tile[place] >= few] or fitting
    costs = [-(-m // rows) * -(-vectors // width) * _tile_cost(rows, width) for rows, width in fitting]
    return next(tile for tile, cost in zip(fitting, costs, strict=True) if cost <= min(costs) * tolerance)


#: Rows and vectors of the tiles there are.
_TILES = (
    (6, 4),
    (8, 3),
    (8, 2),
    (6, 2),
    (4, 3),
    (8, 1),
    (4, 2),
    (4, 4),
    (2, 4),
    (2, 8),
    (1, 8),
    (1, 4),
    (4, 1),
    (1, 1),
)


def _tile_cost(rows: int, width: int) -> float:
    """Modelled cycles of one step of K: two multiply-adds and two loads a cycle, four cycles of latency."""
    return max(rows * width / 2, (rows + width) / 2, 4.0)


def even_block(extent: int, most: int, multiple: int = 4) -> int:
    """Return the block of at most about ``most`` that splits ``extent`` into blocks of nearly equal size."""
    blocks = -(-extent // most)
    return min(extent, _round_up(-(-extent // blocks), multiple))


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
