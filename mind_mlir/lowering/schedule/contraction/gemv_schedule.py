"""Schedules of products of few rows: which of them read their right factor once, on through memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.gemv import JOINED
from mind_mlir.lowering.schedule.contraction.schedule import MatmulSchedule, even_block
from mind_mlir.lowering.schedule.emission.constants import BYTE_NS, WAKING_NS
from mind_mlir.lowering.schedule.emission.split import split

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.target import Target

#: The most rows of a sweep, which loads and stores each result once a step, and of dot products: with more,
#: that takes longer than reading.
_AXPY_ROWS, _DOT_ROWS = 4, 8
#: Bytes of the results that a sweep adds to again and again, and bytes of a row of the right factor that it
#: reads in one go, at least.
_RESULTS, _LONG = 32 << 10, 2048
#: Steps of a sweep: so many parts are looked for, of so many steps. Each has results of its own, which are
#: added up afterwards.
_PARTS, _FEWEST_STEPS, _MOST_STEPS = 16, 16, 128
#: Steps of a dot product, in vectors, that one accumulator sums.
_DOT_STEPS = 64
#: Accumulators of a dot product, and vectors that it has at least.
_ACCUMULATORS, _SHORTEST = 8, 4


def gemv_schedule(
    geometry: Geometry, *, bits: int, target: Target, hoist_depth: int = 0
) -> MatmulSchedule | None:
    """Return the schedule of a contraction that reads its right factor once; None if another one is better.

    Args:
        geometry: Its loops, all of one iteration or more.
        bits: Width of an accumulator in bits.
        target: The processor.
        hoist_depth: Out of how many loops the packing of its right factor could be hoisted: then a factor
            that fits the cache is rather packed once.
    """
    alone = len(geometry.rows) == 1 and not geometry.batch and len(geometry.depth) == 1
    if not alone or geometry.columns.out != 1:
        return None
    rows = geometry.rows[0].extent
    far = geometry.steps * geometry.columns.extent * bits // 8 > target.l2_bytes // 2
    if geometry.is_strided:
        return _dot(geometry, bits, target) if rows <= _DOT_ROWS and (far or not hoist_depth) else None
    return _axpy(geometry, bits, target) if rows <= _AXPY_ROWS and far else None


def may_be_tiled(schedule: MatmulSchedule, geometry: Geometry) -> bool:
    """Return whether tiles compute the bits of ``schedule`` with its products in a sum, and gain by panels.

    A sweep has the same blocks of products, whose sums it adds up in the same order if they are one group.
    All starts from zero, so that it does not matter which sum is added first. One row gains nothing.
    """
    blocks = -(-geometry.steps // schedule.kc)
    whole = even_block(geometry.steps, schedule.kc) == schedule.kc
    return schedule.gemv_axpy and schedule.rows > 1 and blocks <= JOINED and whole


def _axpy(geometry: Geometry, bits: int, target: Target) -> MatmulSchedule | None:
    m, n, k = geometry.rows[0].extent, geometry.columns.extent, geometry.steps
    size, lanes = bits // 8, target.lanes(bits)
    if n * size < _LONG or geometry.columns.right != 1:
        return None
    most = max(_RESULTS // (m * size), _LONG // size)
    wide = -(-n // -(-n // most))  # columns of a piece: as many in each
    steps = min(_MOST_STEPS, max(_FEWEST_STEPS, -(-k // (8 * _PARTS)) * 8))
    return MatmulSchedule(
        lanes=lanes,
        rows=m,
        vectors=1,
        kc=min(k, steps),
        mc=m,
        planes=1,
        nc=-(-wide // lanes) * lanes,
        macro_tiles=1,
        pack=False,
        packings=1,
        copy=False,
        pack_left=False,
        fma=target.fma,
        masks=target.masks,
        half=target.half,
        gemv_axpy=True,
    )


def _dot(geometry: Geometry, bits: int, target: Target) -> MatmulSchedule | None:
    m, n, k = geometry.rows[0].extent, geometry.columns.extent, geometry.steps
    size, lanes = bits // 8, target.lanes(bits)
    along = geometry.depth[0].left == 1 and geometry.depth[0].right == 1
    fitting = (each for each in (8, 4, 2, 1) if m * each + each < target.vector_registers)
    vectors = next((v for v in fitting if target.masks or k % (v * lanes) == 0), 0)
    while vectors > 1 and (vectors * m > 2 * _ACCUMULATORS or k < vectors * lanes):
        vectors //= 2
    if not along or not vectors or k < _SHORTEST * lanes:
        return None
    whole = vectors * lanes
    blocks = -(-k // (_DOT_STEPS * whole))
    kc = min(k, -(-k // (blocks * whole)) * whole)
    if k - (-(-k // kc) - 1) * kc < whole:
        return None
    nanoseconds = k * n * size * BYTE_NS
    return MatmulSchedule(
        lanes=lanes,
        rows=m,
        vectors=vectors,
        kc=kc,
        mc=m,
        planes=1,
        nc=split(n, nanoseconds).step,
        macro_tiles=1,
        pack=False,
        packings=1,
        copy=False,
        pack_left=False,
        fma=target.fma,
        masks=target.masks,
        brief=nanoseconds < WAKING_NS,
        half=target.half,
        gemv_dot=True,
    )
