"""Schedules of contractions as data, chosen by shape, element size and target."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.decision import Choice

if TYPE_CHECKING:
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class MatmulSchedule:
    """How a product of ``M x K`` by ``K x N`` is tiled.

    Attributes:
        lanes: elements in a vector.
        rows: rows of the accumulator tile.
        vectors: vectors in a row of the accumulator tile.
        unroll: steps of K in one iteration of the innermost loop.
        kc: block of K after which accumulators go back to memory.
        mc: block of M for which a panel of the right factor stays in the first-level cache.
        nc: block of N for which the packed right factor stays in the second-level cache.
        pack: whether the right factor is copied into panels ``[nc / columns][kc][columns]`` first.
        panels_first: whether all rows are multiplied with one panel before the next, or the other way round.
        fma: whether products of floats are fused with their addition.
    """

    lanes: int
    rows: int
    vectors: int
    unroll: int
    kc: int
    mc: int
    nc: int
    pack: bool
    panels_first: bool
    fma: bool

    @property
    def columns(self) -> int:
        """Columns of the accumulator tile."""
        return self.lanes * self.vectors

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        order = "one panel for all rows" if self.panels_first else "all panels for each block of rows"
        return (
            Choice("tile", f"{self.rows} x {self.vectors} vectors of {self.lanes}", "least modelled time"),
            Choice("unroll", f"{self.unroll} steps of k", "more where few accumulators leave room"),
            Choice("blocks", f"m {self.mc}, n {self.nc}, k {self.kc}", "panels in L1, right factor in L2"),
            Choice("pack", "right factor", "strided, or rows enough to pay for it")
            if self.pack
            else Choice("pack", "nothing", "contiguous, and few rows or a right factor that fits L2"),
            Choice("order", order, "by whether the right factor fits L2"),
        )


def choose_matmul_schedule(
    m: int,
    n: int,
    k: int,
    *,
    bits: int,
    target: Target,
    repeats: int = 1,
    depths: int = 1,
    strided_right: bool = False,
) -> MatmulSchedule:
    """Return the schedule of a product of ``m x k`` by ``k x n``, all positive.

    Args:
        m: rows of the result.
        n: columns of the result, along which vectors run.
        k: extent of the reduction.
        bits: width of an accumulator in bits.
        target: the processor.
        repeats: how often the same right factor is multiplied, for other rows.
        depths: how many such products are summed.
        strided_right: whether the right factor is not contiguous along ``n``, so that it has to be packed.
    """
    lanes = target.lanes(bits)
    size = bits // 8
    rows, vectors = _tile(m, -(-n // lanes), target)
    columns = lanes * vectors
    right = depths * k * n * size
    pack = strided_right or (depths == 1 and m * repeats >= _PACK_ROWS and right > target.l2_bytes // 2)
    if pack:
        kc = _even_block(k, _KC_BYTES // (columns * size), lanes if strided_right else 4)
        nc = target.l2_bytes // (kc * size)
    else:
        streamed = depths * repeats == 1 and right > target.l2_bytes // 2
        kc = _even_block(k, _strip(m) if streamed else _KC_BYTES // (columns * size), 4)
        nc = target.l2_bytes // 2 // (m * size)
    mc = min(m, max(rows, target.l2_bytes // 4 // (kc * size)))
    return MatmulSchedule(
        lanes=lanes,
        rows=rows,
        vectors=vectors,
        unroll=min(2 if rows * vectors >= 12 else 4, k),
        kc=kc,
        mc=_round_up(mc, rows),
        nc=_round_up(min(n, max(columns, nc)), columns),
        pack=pack,
        panels_first=pack or right > target.l2_bytes // 2,
        fma=target.fma,
    )


#: A panel of the right factor: larger than the first-level cache on purpose, for it is streamed.
_KC_BYTES = 64 << 10
#: Fewer rows than this do not pay for packing.
_PACK_ROWS = 48


def _strip(rows: int) -> int:
    """Return how many rows of a right factor that is read once from afar are read side by side.

    Few enough for the processor to prefetch all of them, enough to make up for storing the accumulators.
    """
    return 8 if rows == 1 else 16 if rows <= 16 else 32


def _tile(m: int, vectors: int, target: Target) -> tuple[int, int]:
    """Return the rows and vectors of the tile with the lowest modelled time; the first of equals."""
    candidates = [
        (rows, width)
        for width in (2, 3, 4, 1, 6, 8)
        for rows in (8, 6, 4, 12, 5, 7, 10, 14, 3, 2, 1)
        if rows * width + width + 1 <= target.vector_registers and rows <= m and width <= vectors
    ]
    return min(candidates, key=lambda tile: _cost(m, vectors, *tile))


def _cost(m: int, vectors: int, rows: int, width: int) -> float:
    """Modelled cycles of one step of K over the whole result; a second kernel for odd rows has a price."""
    panels = -(-vectors // width)
    remainder = _tile_cost(m % rows, width) * 1.1 if m % rows else 0.0
    return panels * (m // rows * _tile_cost(rows, width) + remainder)


def _tile_cost(rows: int, width: int) -> float:
    """Modelled cycles of one step of K: two multiply-adds and two loads a cycle, four cycles of latency."""
    return max(rows * width / 2, (rows + width) / 2, 4.0)


def _even_block(extent: int, most: int, multiple: int) -> int:
    """Return the block of at most about ``most`` that splits ``extent`` into blocks of nearly equal size."""
    blocks = -(-extent // most)
    return min(extent, _round_up(-(-extent // blocks), multiple))


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
