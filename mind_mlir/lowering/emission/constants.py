"""The constants of the schedules that come from measurements, each with the command that measures it.

Schedules depend on nothing else but shapes, dtypes and the target, whose `Rates` say what a byte and an
operation take.
"""

from __future__ import annotations

from mind_mlir.ops.registry import all_ops

# What work takes, and when it is worth sharing: `python -m benchmarks.threads` measures it.

#: Nanoseconds of work below which a loop is left to one thread: about ten times what it takes to meet.
#: `python -m benchmarks.threads` measures what a parallel region costs.
WORTHWHILE_NS = 4_000

#: Nanoseconds of work below which only threads that are awake share a loop: waking one would cost as much.
WAKING_NS = 20_000

#: Nanoseconds of work in a chunk, about: claiming one takes tens of them.
CHUNK_NS = 8_000

#: Half the most chunks of a loop: enough for 64 threads to finish together.
MOST_CHUNKS = 128

#: Products that one accumulator sums: 256 are less accurate by half, 128 cost some percent.
ACCUMULATED = 160

#: Results that are so many times as large as the second-level cache are stored past the caches ...
STREAMED_CACHES = 4

#: ... where they and what they are computed from take this part of the last one: then lines that are written
#: push out what the next call reads.
STREAMED_SHARE = 2


# Fused groups: `python -m benchmarks.sweep NAME VALUE... --only softmax,layernorm,sum_axis0,ew_chain`.

#: Operations that take the time of several, and of how many: those that processors do not pipeline, and those
#: that are functions of many instructions. What they take on floats, the records say.
SLOW = {"arith.divsi": 20, "arith.remsi": 20} | {
    record.scalar_op: record.vector_operations for record in all_ops() if record.scalar_op is not None
}

#: Vectors in a step of a loop that stores past the cache, for bodies of up to so many operations each.
STEPS = ((2, 4), (8, 2))

#: Rows that are computed at once where they read the same elements, as those of a sliding window do: what is
#: read for all of them fits the registers.
BESIDE = 4

#: Rows that are summed at once where they are multiplied with the same row, as those of a matrix times a
#: vector are, for bodies of up to so many operations: an element of that row is loaded once for all of them.
SHARED_ROWS, SHARED_OPERATIONS = 8, 4

#: Reductions along rows that read so many times the last-level cache prefetch what lies so many bytes ahead,
#: past the second-level cache: what they read stays in no cache anyway.
PREFETCH_CACHES, PREFETCH_BYTES = 2, 128

#: The bytes of a tensor from where on its reductions are one nest: what the first-level cache does not hold.
SHARED_BYTES = 32 << 10

#: Iterations of a loop, at most, and operations within it, that are emitted one after the other where the
#: vector loop is a single step: branches, and what is counted on the way, would take as long as they do.
#: Measured: 20,000 products of 4 x 4 take half of the time, of 6 x 6 four fifths.
UNROLLED, UNROLLED_OPERATIONS = 8, 96

#: Accumulators of a reduction, for bodies that take the time of up to so many operations: as many as hide the
#: latency of an addition.
ACCUMULATORS = ((12, 4), (48, 2))

#: Bytes of a tensor that one chunk works on, at most: a few such fit the second-level cache. Two threads that
#: read memory in parts of 64 KB get a fifth less of it than in parts of 256 KB.
CHUNK_BYTES = 256 << 10

#: Chunks that are looked for even if they are smaller: enough for a few threads to finish together.
FEWEST_CHUNKS = 16

#: The most chunks.
MOST_FUSED_CHUNKS = 1024

#: The most parts of a reduced loop.
MOST_PARTS = 64

#: Rows that a part of a reduction over rows has at least: so small is what the partial results add to memory
#: traffic.
PART_ROWS = 64

#: Chunks start at multiples of so many bytes, a page, where they are pieces of one row.
PAGE = 4096

#: Rows of a reduction over rows that are read side by side where there are many long ones: so few that the
#: processor prefetches all of them.
STRIP = 8

#: Bytes in a row from where on one row after another is no longer prefetched: a page.
LONG_ROW = 4096

#: Operations of reductions over rows that wait for memory: with more, they compute meanwhile.
MOVING_OPERATIONS = 4

#: How much longer than registers have room for a row may be that is read in one go, but for a tail.
ROW_TAIL = 1.25

#: Bytes of a row of results that stay in the first-level cache from strip to strip.
STRIP_BYTES = 64 << 10

#: Strips that are added one after the other, at most, where that rounds.
MOST_STRIPS = 32

#: Body operations after which a group takes no more members: more would only spill registers.
GROUP_LIMIT = 48

#: Body operations after which a row program takes no more members, in all of its passes.
ROW_PROGRAM_LIMIT = 192

#: Groups after which it takes no more: what a long program repeats is then emitted once. Swept: the gradients
#: of a layer norm take 2.5 times as long with 6, and the same with 24.
ROW_PROGRAM_GROUPS = 12

#: Operations that a pass over a row rather repeats than read what an earlier one has kept. Swept: 1 and 3 are
#: alike; with 12, a layer norm of bf16 takes 7% longer, with 24 a softmax a third.
REPEATED = 6

#: The same where rows are so long that what is kept goes to memory and comes back.
REPEATED_LONG = 48

#: Operations that it takes to sum what is relative to a number that is not known yet, besides the sum.
RELATIVE_COST = 3

#: The part of the first-level cache that what is read of a piece of a long row takes.
SEGMENT_SHARE = 4

#: Vectors of exponentials that are relative to the same maximum so far, and how often that may grow while
#: they are added up in the same accumulators: few enough for their accuracy.
ONLINE_VECTORS, ONLINE_STEPS = 4, 64

#: Operations that rounding to a narrow float stands for, besides itself.
NARROWING = 6

#: The part of the second-level cache that what a row program touches of one row may take. Swept: with 1, a
#: softmax of 512 x 50,257 takes 13% longer; with 4, one of rows of 32,768 takes 8 to 21% longer, and a
#: log-softmax of rows of 50,257 a tenth less time.
ROW_SHARE = 2

#: Bytes of a cache line.
LINE = 64

#: How much longer what there is one of for each row takes in a row program, where no vector holds several.
#: Swept: from 1 to 16, rows of 8 to 40 elements take the same time.
SINGLE_COST = 4

#: Rows in a block from where on what there is one of for each is computed in vectors. Swept: with 2, a layer
#: norm of 4,096 rows takes a tenth less time than with 4.
FEW_SINGLES = 2

#: The part of the first-level cache that what a row program touches of a block of rows may take. Swept:
#: smaller blocks are up to 5% faster where rows come from memory, larger ones where they come from the cache.
BLOCK_SHARE = 2

#: Bytes of a row from where on a row program prefetches the rows that follow. Swept: rows of 3 KB gain a
#: fifth.
PREFETCH_ROW = 1024

#: Rows that a row program adds up in the same partial sums: few enough for their accuracy, and so many that
#: these are a small part of what it reads. Swept: with 16, the gradients of a layer norm take a tenth longer.
SUMMED_ROWS = 64

#: Sums over the rows become part of a row program where there are so many of these, and so few bytes in each
#: that a chunk has some rows. Swept: the gradients of a layer norm of 64 x 3,072 take a quarter less time on
#: two threads with 64 rows than with 128, those of 1,024 x 8,192 as well with 64 KB than with 16, those of
#: 512 x 32,768 a fifth to two fifths more with 128.
LEAST_SUMMED, LONGEST_SUMMED = 64, 64 << 10

#: Additions along a row below which the next row goes on with the same accumulators.
SHORT_ROW = 8

#: Additions within the inner loops of a reduction below which they go on with the accumulators of the outer.
SHORT_COLUMN = 16

#: Terms of several loops that are computed without these, at most, as those of windows: of truth values, they
#: take half the time (`python -m benchmarks.sweep WINDOW_TERMS 0 9`).
WINDOW_TERMS = 9

#: Terms that an accumulator takes.
RADIX = 32


# Moving data: `python -m benchmarks.sweep NAME VALUE... --only transpose,gather,scatter_add`.

#: Larger squares than this take more registers than there are.
LARGEST_SQUARE = 16

#: The most columns of a matrix that is transposed column by column, in rows that are read or written whole:
#: 100,000 rows of three bytes take 7 us rather than 80 in squares. Those of 7, with AVX2, a quarter longer.
NARROW = 4

#: How often elements are repeated side by side, at most, in rows that are written whole. Five times, bytes
#: take a sixth of the time of rows by themselves, numbers of 32 bits half.
REPEATED_COLUMNS = 8

#: Squares in a band: with more, the rows that are read at the same time are too many for the prefetcher.
BAND = 4

#: Rows of a band where the result exceeds the second-level cache: their lines stay in the first-level one,
#: and longer pieces of the result are written.
BAND_ROWS = 256

#: Bytes of a row of a square of numbers of 8 bits, and of 16 bits where the result exceeds the second-level
#: cache: instructions interleave such rows in one step (`shuffles.transpose_side_by_side`).
NARROW_SQUARE_BYTES = 16

#: Squares ahead along the rows of the source whose lines are prefetched, where it exceeds the second-level
#: cache: the rows of a band lie on pages of their own, of which processors prefetch few.
PREFETCH_SQUARES = 4

#: Fewer iterations of a loop than this make chunks too unequal for threads.
FEWEST_SHARED = 8

#: Nanoseconds that it takes to find a row in memory (`python -m benchmarks.threads`).
ROW_NS = 40

#: Nanoseconds that it takes to combine a single element with one that lies anywhere.
ELEMENT_NS = 3

#: Nanoseconds that it takes to list an update that may belong to a chunk, and which part of the work may go
#: there.
LIST_NS, LISTED = 1, 0.05

#: Bytes of half a row, at least, whose halves threads share. Measured: on one thread two halves of 256 bytes
#: take a fifth longer than the row, four parts two thirds longer.
PART_OF_ROW = 128

#: Tables that single numbers are added in by turns, where so many fit half of the first-level cache.
TURNS = 4

#: Updates for each element of tables, and the most chunks that have tables of their own.
TABLE_SHARE, MOST_TABLE_CHUNKS = 2, 16


# Products: `python -m benchmarks.sweep NAME VALUE... --only mm_skinny`.

#: Products that are computed together, at most, and the part of the last-level cache that all that is packed
#: for them may take.
MOST_TOGETHER, TOGETHER_SHARE = 8, 2

#: So few rows are computed one by one rather than repack the other factor for them.
GEMV_ROWS = 1


# Convolutions in Winograd's form: `python -m benchmarks.winograd` compares both forms.

#: Tiles, channels and features that it takes at least: with fewer tiles, the transform of the filter and
#: reading what comes of it take longer than the products that are saved.
WINOGRAD_TILES, WINOGRAD_CHANNELS = 32, 16

#: The part of the products that may be left, those of tiles that reach beyond the result included.
WINOGRAD_GAIN = 3 / 5

#: The part of the last-level cache that what lies between the transforms may take. With all of it, results of
#: the products go to memory and come back, which two threads wait for.
WINOGRAD_SHARE = 4


# Sharing of nests: `python -m benchmarks.compile_time --families`.

#: So many nests of a kind stand where they are used: most programs need no further functions.
IN_PLACE = 8
