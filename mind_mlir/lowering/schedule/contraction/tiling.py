"""The choice of schedules of contractions, by shape, element size and target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.product import COPIED_STEPS
from mind_mlir.lowering.schedule.contraction.schedule import MatmulSchedule, round_up
from mind_mlir.lowering.schedule.emission.constants import (
    ACCUMULATED,
    BYTE_NS,
    FMA_NS,
    LINE,
    STREAMED_CACHES,
    WAKING_NS,
    WORTHWHILE_NS,
)
from mind_mlir.lowering.schedule.emission.split import split
from mind_mlir.ops.accumulation import BLOCK

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.target import Target


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
        sums: How many products an accumulator sums, if that is said.
    """
    lanes = target.lanes(bits)
    size = bits // 8
    m, n, k = geometry.rows[0].extent, geometry.columns.extent, -(-geometry.steps // vnni)
    planes = math.prod(loop.extent for loop in geometry.rows[1:])
    batch = math.prod(loop.extent for loop in geometry.batch)
    nanoseconds = max(m * planes * batch * k * -(-n // lanes) * FMA_NS, k * n * batch * size * BYTE_NS)
    right = k * n * size
    far = right > target.l2_bytes // 2
    step = geometry.depth[0].right * size
    near = not geometry.is_strided and step <= _PAGE and lanes * size >= LINE
    tolerance = 1.02 if not far or vnni > 1 else 1.015 if near else 1.05
    tolerance = 1.3 if nanoseconds <= _SMALL_NS else tolerance
    often, few = m * planes >= _PACK_ROWS, m * planes <= _COPIED_FOR
    packs = vnni > 1 or _packs_left(geometry, _SQUARES[0], size, converts=converts)
    has_panels = prepacked[1] and right > target.l1_bytes // 2
    least = 1 if not far else m if m <= _ONCE_READ else min(m, _PANEL_ROWS)
    apart = near and far and often and few and step > _CLOSE and not (has_panels or vnni > 1)
    smallest = _LARGE if apart else (least, 1)
    rows, vectors = _tile(m, -(-n // lanes), target, tolerance, packs=packs, least=smallest)
    columns = lanes * vectors
    ragged = n % columns > 0 and not target.masks
    streamed = far and vnni == 1 and not (often or ragged or geometry.is_strided)
    alone = len(geometry.depth) == 1
    longest = ACCUMULATED if alone else _WINDOW_SUM
    kc = _strip(m) if streamed else max(longest, round_up(math.isqrt(k), 4))
    if alone and not streamed and k <= BLOCK:
        kc = max(kc, k)  # results go to memory once
    if vnni > 1:  # as many terms
        kc = max(_WORDS, round_up(math.isqrt(geometry.steps) // vnni, 4))
    kc = sums or kc
    streamed = streamed and not has_panels
    plain = not geometry.is_strided and not ragged and min(k, round_up(kc, 4)) <= COPIED_STEPS
    wide = columns * size >= (_WIDE // 2 if near else _WIDE)
    stays = plain and alone and often and few and not (far and hoist_depth) and vnni == 1
    stays = stays and right > target.l1_bytes // 2
    copy = stays and not (wide or has_panels)
    again = not (alone and few) and right > target.l1_bytes
    deep = not alone and k > _DEEP * max(m * planes, n)
    pack = geometry.is_strided or ragged or (often and (far or again) and not (stays or deep)) or vnni > 1
    pack = pack or has_panels
    pack_left = _packs_left(geometry, rows, size, converts=converts) or vnni > 1
    panel = round_up(k, _PADDED_STEPS) * columns * size
    pack_macro_tiles = (
        geometry.is_strided and far and alone and len(geometry.rows) == batch == 1 and not hoist_depth
    )
    pack_macro_tiles = (
        pack_macro_tiles and not prepacked[1] and m <= _COPIED_FOR and panel <= _PANEL_BYTES and vnni == 1
    )
    flat = pack and len(geometry.rows) == 1
    most = _PACKED_SHARES if pack_left else _PANEL_SHARES if flat else _SHARES
    room = [target.l2_bytes // share // (min(kc, k) * size) for share in most]
    room[1] = _equal(n, room[1], columns) if flat else room[1]
    room = [m * planes, n] if deep else room
    tall = copy or (deep and n > m * planes)
    narrowest = n if deep and not tall else _STREAM_BYTES // size if streamed else columns
    wanted = min(_DEEP_PIECES if deep else _MOST_PIECES, max(2, round(nanoseconds / _PIECE_NS)))
    mc, nc, together = _macro_tiles(
        (m, n, planes, batch),
        (rows, _COPY_ROWS if copy else rows, columns, narrowest),
        (room[0], room[1]),
        0 if nanoseconds < WORTHWHILE_NS else wanted,
        tall=tall,
    )
    if pack_macro_tiles:
        mc, nc = m, max(1, _PANEL_BYTES // 2 // panel) * columns
    result = batch * planes * m * n * size
    tiles = batch * -(-m // mc) * -(-planes // together) * -(-n // nc)
    by_steps = geometry.packs_steps and vnni < _WHOLE
    units = geometry.steps if by_steps else batch if batch > 1 else -(-n // columns)
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
        packings=round_up(split(units, 2 * right * batch * BYTE_NS).step, vnni if by_steps else 1),
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


def _packs_left(geometry: Geometry, rows: int, size: int, *, converts: bool) -> bool:
    """Return whether the left factor is packed, in tiles of ``rows``: steps are far apart, or converted."""
    plain = len(geometry.rows) == 1 and not geometry.batch and len(geometry.depth) == 1
    if not plain or rows not in _SQUARES:
        return False
    far = geometry.rows[0].extent * geometry.steps * size >= (_CONVERTED if converts else _PACK_LEFT[0])
    apart = geometry.rows[0].left == 1 and geometry.depth[0].left != 1
    along = converts and geometry.depth[0].left == 1
    return far and (apart or along) and geometry.columns.extent >= _PACK_LEFT[1]


#: Nanoseconds of work of a contraction that the choice of its tile does not matter for.
_SMALL_NS = 3_000
#: Products that one accumulator sums where there are several reductions: three positions in a window of 64
#: channels.
_WINDOW_SUM = 192
#: Words that one accumulator sums: of two terms each, blocks are as long as `ops.accumulation` allows.
_WORDS = 128
#: Words of so many terms are packed a column at a time: their sums are stored, too.
_WHOLE = 4
#: Bytes of a left factor from which on it is packed, and the least number of columns that pays for it.
_PACK_LEFT = 2 << 20, 256
#: The same bytes where elements are converted, which packing does once.
_CONVERTED = 32 << 10
#: Rows of tiles whose left factor can be packed.
_SQUARES = (2, 4, 8)
#: What part of the second-level cache the left and the right factor of a macro-tile may take, a block of
#: steps at a time: of the left one little where panels are packed, so that it stays while many of them go
#: through, and so that rows of it and of the result do not displace each other where they are a power of two
#: apart.
_SHARES, _PANEL_SHARES, _PACKED_SHARES = (4, 4), (16, 4), (24, 6)
#: The fewest rows of a macro-tile whose kernel copies: copying takes a thirtieth of the time then.
_COPY_ROWS = 64
#: For more rows than this, a large right factor is packed once rather than copied for each macro-tile; or
#: rather than read in place, where a panel has so many bytes of each row: half of them where vectors are
#: cache lines and rows at most a page apart.
_COPIED_FOR, _WIDE, _PAGE = 640, 256, 4096
#: The least tile where the right factor is far and read in place, with rows more bytes than this apart: tiles
#: of 8 x 32 take up to a quarter longer than those of 6 x 64 there.
_LARGE, _CLOSE = (6, 3), 2048
#: So many rows a tile has at least, if the result has them, where the right factor is far: each row of tiles
#: reads all of it again.
_PANEL_ROWS = 4
#: Bytes of panels that a macro-tile packs for itself, at most; of their steps, a multiple of so many is
#: there.
_PANEL_BYTES, _PADDED_STEPS = 256 << 10, 16
#: Up to so many rows are all in one tile if the right factor is far: it is read once.
_ONCE_READ = 8
#: Fewer rows than this do not pay for packing.
_PACK_ROWS = 24
#: Bytes of a row of the right factor that are read from afar in one go.
_STREAM_BYTES = 4096
#: Nanoseconds of work in a macro-tile, about, where there is enough of it.
_PIECE_NS = 10_000
#: The least number of macro-tiles of a large contraction.
_MOST_PIECES = 32
#: Several reductions with so many times as many products as the result has rows, or columns, are deep, as
#: those of filters' gradients are: each macro-tile reads much of both factors, so there are few of them.
_DEEP, _DEEP_PIECES = 4, 4


def _macro_tiles(
    extents: tuple[int, int, int, int],
    least: tuple[int, int, int, int],
    room: tuple[int, int],
    wanted: int,
    *,
    tall: bool,
) -> tuple[int, int, int]:
    """Return rows, columns and planes of the macro-tiles of a result.

    Args:
        extents: Rows, columns, planes and batches.
        least: Rows of the tile and, at least, of a macro-tile; columns of the tile and, at least, of a
            macro-tile.
        room: The most rows and columns of the factors that a macro-tile is to read.
        wanted: How many macro-tiles there are to be at least, if that can be.
        tall: Whether macro-tiles have few columns rather than few rows.
    """
    m, n, planes, batch = extents
    rows, shortest, columns, fewest = least
    row_blocks = -(-m // max(room[0], rows))
    column_blocks = -(-n // max(room[1], fewest))
    plane_blocks = -(-planes // max(1, room[0] // m))
    while batch * row_blocks * column_blocks * plane_blocks < wanted:
        mc, nc = -(-m // row_blocks), -(-n // column_blocks)
        splits = nc >= 2 * fewest
        if plane_blocks < planes and not (tall and splits):
            plane_blocks = min(planes, 2 * plane_blocks)
        elif splits and (tall or nc >= mc or mc < 2 * rows):
            column_blocks *= 2
        elif mc >= 2 * shortest:
            row_blocks *= 2
        else:
            break
    return (
        min(m, round_up(-(-m // row_blocks), rows)),
        round_up(-(-n // column_blocks), columns),
        -(-planes // plane_blocks),
    )


def _equal(extent: int, most: int, multiple: int) -> int:
    """Return the size of blocks, of about ``most``, that are equal, so that threads finish together."""
    fewest = -(-extent // max(most, multiple))
    sizes = {count: round_up(-(-extent // count), multiple) for count in range(fewest, fewest + 3)}
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
    (7, 2),
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
