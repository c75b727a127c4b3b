"""Schedules of products in tiles: the sizes that follow once a strategy is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import LINE, STREAMED_CACHES, WAKING_NS, WORTHWHILE_NS
from mind_mlir.lowering.emission.split import split
from mind_mlir.lowering.kernels.tile_operations import SIDE
from mind_mlir.lowering.schedule.contraction import costs
from mind_mlir.lowering.schedule.contraction.schedule import (
    COPIED,
    OWN_PANELS,
    PACKING,
    STRIPS,
    MatmulSchedule,
    instructions,
    round_up,
)

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.case import ProductCase


def tiled(case: ProductCase, strategy: str) -> MatmulSchedule:
    """Return the schedule of ``case`` in tiles by ``strategy``."""
    target, loops, kc = case.target, case.loops, case.kc
    rows, vectors = case.tile
    packs_left = case.terms > 1 or (case.packs_left and rows in costs.SQUARES)
    mc, nc, planes = _macro_tiles(case, strategy, packs_left=packs_left)
    if strategy == OWN_PANELS:
        mc, nc = case.m, max(1, costs.PANEL_BYTES // 2 // case.panel_bytes) * case.columns
    count = case.batch * -(-case.m // mc) * -(-case.planes // planes) * -(-case.n // nc)
    result = case.batch * case.all_rows * case.n * case.size
    by_steps = loops.packs_steps and not (case.words is not None and case.words.have_sums)
    units = loops.steps if by_steps else case.batch if case.batch > 1 else -(-case.n // case.columns)
    packed = split(units, 2 * case.right_bytes * case.batch * target.rates.byte_ns).step
    mirrors = case.mirrors and mc <= (-(-case.n // nc) - 1) * nc
    is_large = result > STREAMED_CACHES * target.l2_bytes and target.rates.streaming_gain >= 1 and not mirrors
    return MatmulSchedule(
        strategy=strategy,
        lanes=case.lanes,
        rows=rows,
        vectors=vectors,
        kc=kc,
        mc=mc,
        planes=planes,
        nc=nc,
        macro_tiles=split(count, case.nanoseconds).step,
        packings=round_up(packed, case.terms * (SIDE if case.tiled else 1) if by_steps else 1),
        pack_left=packs_left,
        streams=target.masks and case.has_one_sum and case.k <= kc and is_large,
        brief=case.nanoseconds < WAKING_NS,
        hoist_depth=case.hoist_depth if strategy in PACKING else 0,
        vnni=case.terms,
        summands=case.summands,
        prepacked_left=case.constant_left and packs_left,
        prepacked=case.constant_right and strategy in PACKING,
        emulates=case.tiled and target.emulates_tiles,
        fetch_steps=_fetch_steps(case, mc) if strategy in PACKING else 1,
        mirrors=mirrors,
        **instructions(target),
    )


def _fetch_steps(case: ProductCase, mc: int) -> int:
    """Return in how many steps a tile asks for a vector of the next panel, a power of two.

    The last-level cache answers after some steps; meanwhile, no more than so many lines are to be on the way.
    """
    (rows, vectors), rates = case.tile, case.target.rates
    lines = case.target.vector_bytes / LINE
    at_once = lines * rates.l3_latency_ns / (rows * vectors * rates.multiply_add_ns)
    steps, tiles = 1, -(-mc // rows)
    while at_once > costs.LINES_AHEAD * steps and 2 * steps * vectors <= tiles and case.n > case.columns:
        steps *= 2
    return min(steps, case.lanes)


def _room(case: ProductCase, strategy: str, *, packs_left: bool) -> tuple[int, int]:
    """Return the rows and columns of which a block of steps takes a share of the second-level cache."""
    if case.is_deep:
        return case.all_rows, case.n
    has_flat_panels = strategy in PACKING and len(case.loops.rows) == 1
    flat = costs.PANEL_SHARES if has_flat_panels else costs.SHARES
    shares = costs.PACKED_SHARES if packs_left else flat
    shares = costs.SUMMAND_SHARES if case.summands > 1 else shares
    step = min(case.kc, case.k) * case.size * case.summands
    rows, columns = (case.target.l2_bytes // share // step for share in shares)
    return rows, _equal(case.n, columns, case.columns) if has_flat_panels else columns


def _macro_tiles(case: ProductCase, strategy: str, *, packs_left: bool) -> tuple[int, int, int]:
    """Return rows, columns and planes of the macro-tiles of a result."""
    m, n, planes, rows = case.m, case.n, case.planes, case.tile[0]
    #: How many there are to be at least, if that can be; whether they have few columns rather than few rows.
    wanted = max(2, round(case.nanoseconds / costs.PIECE_NS))
    wanted = min(costs.DEEP_PIECES if case.is_deep else costs.MOST_PIECES, wanted)
    wanted = 0 if case.nanoseconds < WORTHWHILE_NS else wanted
    is_tall = strategy == COPIED or (case.is_deep and n > case.all_rows)
    #: The most rows and columns of the factors that one is to read, and the fewest.
    most_rows, most_columns = _room(case, strategy, packs_left=packs_left)
    shortest = costs.COPY_ROWS if strategy == COPIED else rows
    narrowest = costs.STREAM_BYTES // case.size if strategy == STRIPS else case.columns
    if case.is_deep and not is_tall:
        narrowest = n
    row_blocks = -(-m // max(most_rows, rows))
    column_blocks = -(-n // max(most_columns, narrowest))
    plane_blocks = -(-planes // max(1, most_rows // m))
    if case.mirrors:
        row_blocks = max(row_blocks, min(costs.MIRRORED_BLOCKS, m // rows))
        column_blocks = max(column_blocks, min(costs.MIRRORED_BLOCKS, n // case.columns))
    while case.batch * row_blocks * column_blocks * plane_blocks < wanted:
        mc, nc = -(-m // row_blocks), -(-n // column_blocks)
        splits = nc >= 2 * narrowest
        if plane_blocks < planes and not (is_tall and splits):
            plane_blocks = min(planes, 2 * plane_blocks)
        elif splits and (is_tall or nc >= mc or mc < 2 * rows):
            column_blocks *= 2
        elif mc >= 2 * shortest:
            row_blocks *= 2
        else:
            break
    return (
        min(m, round_up(-(-m // row_blocks), rows)),
        round_up(-(-n // column_blocks), case.columns),
        -(-planes // plane_blocks),
    )


def _equal(extent: int, most: int, multiple: int) -> int:
    """Return the size of blocks, of about ``most``, that are equal, so that threads finish together."""
    fewest = -(-extent // max(most, multiple))
    sizes = {count: round_up(-(-extent // count), multiple) for count in range(fewest, fewest + 3)}
    return sizes[min(sizes, key=lambda count: sizes[count] * count)]
