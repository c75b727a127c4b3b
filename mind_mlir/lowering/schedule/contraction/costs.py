"""The cost model of products: what was measured, and where one way of computing them overtakes another.

No other module of this folder has numbers like these. What a claim of a thread takes is measured for all
schedules (`emission.constants`); cache sizes, and what a byte or an instruction takes, are the target's.
`python -m benchmarks.sweep NAME VALUE... --only mm_skinny` tries others.
"""

from __future__ import annotations

# Which strategy.

#: Many products of so many terms at most, and how many are many: loops over all of them compute these, since
#: a call of a kernel takes as long, about 20 ns.
TINY_TERMS, FEWEST_TINY = 216, 16
#: The most rows of a sweep, which loads and stores each result once a step: with more, that takes longer than
#: reading.
AXPY_ROWS = 4
#: The most rows of dot products, with a right factor that a cache holds and with one that comes from memory:
#: with more, packing it takes less time than they do.
DOT_ROWS = 16, 32
#: Vectors of a column that dot products take at least.
SHORTEST = 4
#: Sums along rows of both factors instead of vectors of few columns: how long a vector of a row takes, in
#: multiply-adds, how long it takes to add up its lanes, and the rows that pay for a transposed right factor.
ROW_READS, SUM_ACROSS, NARROW_ROWS = 1.5, 8, 16
#: Fewer rows than this do not pay for packing or copying the right factor.
PACK_ROWS = 24
#: For more rows than this, a large right factor is packed once rather than copied for each macro-tile; or
#: rather than read in place, where a panel has `WIDE` bytes of each row: half of them where vectors are cache
#: lines and steps at most a page apart.
COPIED_FOR, WIDE, PAGE = 640, 256, 4096
#: Bytes of panels that a macro-tile packs for itself, at most; of their steps, a multiple of so many is
#: there.
PANEL_BYTES, PADDED_STEPS = 256 << 10, 16
#: Several reductions with so many times as many products as the result has rows, or columns, are deep, as
#: those of filters' gradients are: each macro-tile reads much of both factors, so there are few of them.
DEEP, DEEP_PIECES = 4, 4
#: Columns and terms that a product has at least for its factors to be packed into words, and how many rows
#: pay for that: fewer where the right factor is to be packed anyway.
LEAST_COLUMNS, LEAST_TERMS, LEAST_ROWS, LEAST_ROWS_PACKED = 16, 16, 8, 4
#: Bytes of a left factor from which on it is packed, and the least number of columns that pays for it.
PACK_LEFT, PACK_LEFT_COLUMNS = 2 << 20, 256
#: The same bytes where elements are converted, which packing does once.
CONVERTED = 32 << 10

# How many products an accumulator sums, besides `ACCUMULATED` and `ops.accumulation.BLOCK`.

#: Products that one accumulator sums where there are several reductions: three positions in a window of 64
#: channels.
WINDOW_SUM = 192
#: Words that one accumulator sums: of two terms each, blocks are as long as `ops.accumulation` allows.
WORDS_SUM = 128
#: Steps of a sweep: so many parts are looked for, of so many steps. Each has results of its own, which are
#: added up afterwards.
PARTS, FEWEST_STEPS, MOST_STEPS = 16, 16, 128
#: Steps of a dot product, in vectors, that one accumulator sums.
DOT_STEPS = 128

# Tiles of registers.

#: Rows and vectors of the tiles there are, the most efficient ones for large results first.
TILES = (
    *((6, 4), (8, 3), (8, 2), (7, 2), (6, 2), (4, 3), (8, 1), (4, 2)),
    *((4, 4), (2, 4), (2, 8), (1, 8), (1, 4), (4, 1), (1, 1)),
)
#: Rows of tiles whose left factor can be packed.
SQUARES = (2, 4, 8)
#: Nanoseconds of work of a contraction that the choice of its tile does not matter for.
SMALL_NS = 3_000
#: How much longer than the shortest modelled time a tile may take: where work is little, where the right
#: factor is near, and where it comes from afar in vectors of a cache line and in others.
TOLERANCE_SMALL, TOLERANCE_NEAR, TOLERANCE_LINES, TOLERANCE_FAR = 1.3, 1.02, 1.015, 1.05
#: The least tile where the right factor is far and read in place, with steps more bytes than this apart:
#: tiles of 8 x 32 take up to a quarter longer than those of 6 x 64 there.
LARGE, CLOSE = (6, 3), 2048
#: So many rows a tile has at least, if the result has them, where the right factor is far: each row of tiles
#: reads all of it again.
PANEL_ROWS = 4
#: Up to so many rows are all in one tile if the right factor is far: it is read once.
ONCE_READ = 8
#: The most rows that a call computes dot products for, and the most columns that it reads side by side.
ROWS_OF_CALL, BESIDE_COLUMNS = 6, 6
#: Accumulators of dot products that hide the latency of an instruction.
DOT_ACCUMULATORS = 8

# Tiles of AMX: sums of 16 x 16 results.

#: Rows and columns, in tiles, that kernels compute side by side, those that read least first; and how much
#: longer than the shortest modelled time they may take.
TILE_SHAPES, TOLERANCE_TILES = ((2, 2), (1, 4), (4, 1)), 1.1
#: How many times as fast as vectors tiles are: 16 x 16 x 16 products of words in 16 cycles, rather than 32 in
#: each. Elsewhere 3,090 GFLOP/s of bf16 were measured a core, with tiles from the first-level cache.
TILE_SPEED = 8
#: What part of the first-level cache a block of a panel may take, of one summand.
TILE_SHARE = 2
#: Nanoseconds to split an element into summands and to pack these: 0.25 to 0.55, measured without tiles.
SPLIT_NS = 0.4

# Macro-tiles and chunks.

#: Lines of the next panel that may be on their way from the last-level cache: fewer than the 10 to 16 that
#: cores keep track of, for tiles read their own panel besides.
LINES_AHEAD = 9
#: What part of the second-level cache the left and the right factor of a macro-tile may take, a block of
#: steps at a time: of the left one little where panels are packed, so that it stays while many of them go
#: through, and so that rows of it and of the result do not displace each other where they are a power of two
#: apart.
SHARES, PANEL_SHARES, PACKED_SHARES = (4, 4), (16, 4), (24, 6)
#: The same for summands: three times the bytes, so that both factors are to be read again seldom. A
#: macro-tile of 160 x 160, as it is with 2 MB, reads 6.4 bytes of them for each cycle of products.
SUMMAND_SHARES = 6, 6
#: The fewest rows of a macro-tile whose kernel copies: copying takes a thirtieth of the time then.
COPY_ROWS = 64
#: Bytes of a row of the right factor that are read from afar in one go.
STREAM_BYTES = 4096
#: Nanoseconds of work in a macro-tile, about, where there is enough of it.
PIECE_NS = 10_000
#: The least number of macro-tiles of a large contraction.
MOST_PIECES = 32
#: Steps of a sum, and nanoseconds of work, from which on a product of a matrix and its own transpose computes
#: one half of its result: the other one is copied, which takes a pass of its own.
MIRRORED_STEPS, MIRRORED_NS = 64, 40_000
#: Macro-tiles along its rows, and along its columns, at least: the more there are, the fewer products above
#: the diagonal are computed.
MIRRORED_BLOCKS = 8
#: Bytes of an element of such a result, at least: squares of shorter ones have too many.
MIRRORED_BYTES = 4
#: Bytes of the results that a sweep adds to again and again, and bytes of a row of the right factor that it
#: reads in one go, at least.
SWEPT_BYTES, LONG_BYTES = 32 << 10, 2048
#: Bytes of the right factor that all rows of dot products read before the next ones: some columns, in a
#: cache.
NEAR_COLUMNS = 128 << 10

# Weights of few bits: `python -m benchmarks.quantized`.

#: Rows of activations and columns side by side in the registers of a kernel, by how many registers there are.
FEW_BIT_TILES = {32: (4, 2), 16: (2, 2)}
#: Columns side by side for a single row: so many streams the processor prefetches.
STREAMS = 4
#: Rows of activations from which on weights are packed, as bytes or as f32.
BYTE_PANELS_FROM, FLOAT_PANELS_FROM = 8, 24
#: Their tiles of accumulators, of rows and vectors: of f32 by how many registers there are. Of integers one
#: strip has accumulators of its own on the way.
FLOAT_TILES, INTEGER_TILE = {32: (12, 2), 16: (6, 2)}, (8, 2)
#: Columns that are packed at once, and blocks: the second-level cache holds them beside what is multiplied.
PANEL_COLUMNS, INTEGER_BLOCKS, FLOAT_BLOCKS = 64, 128, 8
#: Nanoseconds of a product of one activation and one weight, about, and to arrange an activation.
FEW_BIT_NS, ARRANGED_NS = 0.01, 0.5


def strip(rows: int) -> int:
    """Return how many rows of a right factor that is read once from afar are read side by side.

    Few enough for the processor to prefetch all of them, enough to make up for storing the accumulators.
    """
    return 16 if 1 < rows <= 16 else 32


def tile_cost(rows: int, width: int) -> float:
    """Modelled cycles of one step of K: two multiply-adds and two loads a cycle, four cycles of latency."""
    return max(rows * width / 2, (rows + width) / 2, 4.0)


def tiles_cost(rows: int, columns: int) -> int:
    """Modelled cycles of a step of tiles: 16 for each product of two, or what loads of factors take.

    Tiles of the left factor come from the second-level cache, in 16 cycles, those of the right one from the
    first, in 8.
    """
    return max(16 * rows * columns, 16 * rows + 8 * columns)
