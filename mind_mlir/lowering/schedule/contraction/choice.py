"""The strategies of products as one table, in order: a product takes the first one that is for it.

A person reads there which one a shape takes: `docs/schedule.md` shows the table, and ``--emit=schedule``
names the strategy of each product. What a strategy is asked about are the facts of `case`; the numbers that
these compare with are in `costs`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import GEMV_ROWS, WAKING_NS
from mind_mlir.lowering.emission.split import split
from mind_mlir.lowering.schedule.contraction import costs
from mind_mlir.lowering.schedule.contraction.constant_factors import constant_of
from mind_mlir.lowering.schedule.contraction.schedule import (
    CONSTANT,
    COPIED,
    DOTS,
    IN_PLACE,
    OWN_PANELS,
    PANELS,
    STRIPS,
    SWEEP,
    TILES,
    WORDS,
    MatmulSchedule,
    instructions,
    round_up,
)
from mind_mlir.lowering.schedule.contraction.tiling import tiled
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from mind_mlir.lowering.schedule.contraction.case import ProductCase
    from mind_mlir.lowering.schedule.contraction.match import Contraction
    from mind_mlir.mlir.bindings import Value
    from mind_mlir.target import Target


@dataclass(frozen=True)
class Strategy:
    """A way to compute products, by how the right factor, which is the large one, is read.

    Attributes:
        name: What it is called.
        schedule: Returns how a product that no strategy before takes is computed so; None if it is not.
        when: Which products are, in words.
        how: How the right factor is read, in words.
    """

    name: str
    schedule: Callable[[ProductCase], MatmulSchedule | None]
    when: str
    how: str


def _dots(case: ProductCase) -> MatmulSchedule | None:
    loops, target, lanes, k = case.loops, case.target, case.lanes, case.loops.steps
    is_packed_once = case.constant_right or (case.hoist_depth and not case.is_far_as_given)
    if is_packed_once or case.m > costs.DOT_ROWS[case.is_far_as_given]:
        return None
    rows = -(-case.m // -(-case.m // costs.ROWS_OF_CALL))  # as many in each call
    beside = min(costs.BESIDE_COLUMNS, case.n, (target.vector_registers - 2) // (rows + 1))
    is_by_columns = loops.columns.out == loops.depth[0].left == loops.depth[0].right == 1
    if not (case.is_matrix and case.is_strided and is_by_columns):
        return None
    if beside < 1 or k < costs.SHORTEST * lanes:
        return None
    vectors = 1
    while (
        vectors * rows * beside < costs.DOT_ACCUMULATORS
        and (vectors * 2 * rows + 2) * beside <= target.vector_registers
    ):
        vectors *= 2
    whole = vectors * lanes
    kc = min(k, -(-k // (-(-k // (costs.DOT_STEPS * whole)) * whole)) * whole)
    last = k - (-(-k // kc) - 1) * kc
    if last < whole or not (target.masks or k % whole == 0):
        return None
    nanoseconds = k * case.n * case.size * target.rates.byte_ns
    return MatmulSchedule(
        strategy=DOTS,
        lanes=lanes,
        rows=rows,
        vectors=vectors,
        kc=kc,
        mc=case.m,
        nc=split(case.n, nanoseconds, multiple=beside).step,
        brief=nanoseconds < WAKING_NS,
        beside=beside,
        **instructions(target),
    )


def _sweep(case: ProductCase) -> MatmulSchedule | None:
    if not case.is_swept or case.tiles_as_swept:
        return None
    most = max(costs.SWEPT_BYTES // (case.m * case.size), costs.LONG_BYTES // case.size)
    wide = -(-case.n // -(-case.n // most))  # columns of a macro-tile: as many in each
    return MatmulSchedule(
        strategy=SWEEP,
        lanes=case.lanes,
        rows=case.m,
        vectors=1,
        kc=case.swept_steps,
        mc=case.m,
        nc=round_up(wide, case.lanes),
        **instructions(case.target),
    )


def _in_tiles(name: str, takes: Callable[[ProductCase], bool], when: str, how: str) -> Strategy:
    return Strategy(name, lambda case: tiled(case, name) if takes(case) else None, when, how)


#: All strategies but that of `is_by_rows`, which is no product of this folder, in the order in which they are
#: asked. Each takes what is left.
STRATEGIES = (
    Strategy(
        DOTS,
        _dots,
        f"the right factor is stored transposed, and rows are few: {costs.DOT_ROWS[0]}, or "
        f"{costs.DOT_ROWS[1]} where it comes from memory",
        "some columns after others, as dot products",
    ),
    Strategy(
        SWEEP,
        _sweep,
        f"the right factor comes from memory for {costs.AXPY_ROWS} rows or fewer",
        "row after row, in parts whose results are added up",
    ),
    _in_tiles(
        TILES,
        lambda case: case.tiled,
        "an instruction multiplies tiles of words of narrow terms",
        "panels of words, packed first",
    ),
    _in_tiles(
        WORDS,
        lambda case: case.terms > 1,
        "an instruction multiplies several narrow terms of both factors",
        "panels of words, packed first",
    ),
    _in_tiles(
        CONSTANT,
        lambda case: case.gives_panels,
        "the right factor is a constant, and fills half of the first-level cache",
        "panels, packed when the program is compiled",
    ),
    _in_tiles(
        OWN_PANELS,
        lambda case: (
            case.is_strided
            and case.is_far
            and case.is_matrix
            and case.is_read_seldom
            and not (case.hoist_depth or case.constant_right or case.mirrors)
            and case.panel_bytes <= costs.PANEL_BYTES
        ),
        f"the right factor is stored transposed and comes from memory, for {costs.COPIED_FOR} rows or fewer",
        "panels, packed by each macro-tile just before it uses them",
    ),
    _in_tiles(
        PANELS,
        lambda case: (
            case.is_strided
            or case.is_ragged
            or (
                case.is_read_often
                and (case.is_far or case.is_read_again)
                and not (case.stays_near or case.is_deep)
            )
        ),
        "the right factor is stored transposed, has edges that want masks where there are none, or is read "
        "again and again from afar",
        "panels, packed first",
    ),
    _in_tiles(
        COPIED,
        lambda case: case.stays_near and not case.has_wide_tiles,
        f"{costs.PACK_ROWS} rows or more read a right factor in narrow tiles, which copies keep near",
        "in blocks that the kernel copies",
    ),
    _in_tiles(
        STRIPS,
        lambda case: case.reads_once,
        f"the right factor comes from memory for fewer than {costs.PACK_ROWS} rows",
        "in place, a few long rows side by side",
    ),
    _in_tiles(IN_PLACE, lambda _: True, "nothing is gained by a copy of the right factor", "in place"),
)


def choose_schedule(case: ProductCase) -> MatmulSchedule:
    """Return the schedule of ``case``, by the first strategy that takes it."""
    schedules = (strategy.schedule(case) for strategy in STRATEGIES)
    return next(schedule for schedule in schedules if schedule is not None)


def table() -> str:
    """Return the strategies as a table of Markdown, as `docs/schedule.md` shows it."""
    rows = [f"| **{each.name}** | {each.when} | {each.how} |" for each in STRATEGIES]
    return "\n".join(("| strategy | where | how the right factor is read |", "|---|---|---|", *rows))


def is_of_tiny_ones(contraction: Contraction) -> bool:
    """Return whether a product is many so small ones that calls of kernels would take most of the time."""
    terms = math.prod(contraction.extent(dim) for dim in (contraction.m, contraction.n, contraction.k))
    count = math.prod(contraction.extent(dim) for dim in contraction.batch)
    is_all = terms * count == math.prod(contraction.view.extents)
    return is_all and terms <= costs.TINY_TERMS and count >= costs.FEWEST_TINY


def is_by_rows(contraction: Contraction, constants: Container[Value | None]) -> bool:
    """Return whether a product is rather computed as sums along contiguous rows of both factors, by `fusion`.

    Not so where one of ``constants`` is a factor: that is packed when the program is compiled.
    """
    if constant_of(contraction.right.value) in constants:
        return False
    few = contraction.extent(contraction.m) <= GEMV_ROWS
    rows = contraction.left.contiguous(contraction.k) and contraction.right.contiguous(contraction.k)
    return few and rows and not contraction.inner


def is_narrow(contraction: Contraction, target: Target) -> bool:
    """Return whether sums along rows of both factors take less time than vectors of so few columns.

    The right factor may have them as columns: it is small beside the left one.
    """
    left, lanes = contraction.left, target.lanes(contraction.element.width)
    k, n = contraction.extent(contraction.k), contraction.extent(contraction.n)
    if contraction.inner or contraction.batch or left.casts or not left.contiguous(contraction.k):
        return False
    if contraction.extent(contraction.m) < costs.NARROW_ROWS or n >= lanes:
        return False
    return n * (costs.ROW_READS * k / lanes + costs.SUM_ACROSS) < k
