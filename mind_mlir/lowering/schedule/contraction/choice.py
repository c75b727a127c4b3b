"""The strategies of products as one table, in order: a product takes the first one that is for it.

A person reads there which one a shape takes: `docs/schedule.md` shows the table, and ``--emit=schedule``
names the strategy of each product. What a strategy is asked about are the facts of `case`; the numbers that
these compare with are in `costs`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

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
    WORDS,
    MatmulSchedule,
    instructions,
)
from mind_mlir.lowering.schedule.contraction.tiling import tiled
from mind_mlir.lowering.schedule.emission.constants import BYTE_NS, GEMV_ROWS, WAKING_NS
from mind_mlir.lowering.schedule.emission.decision import Choice
from mind_mlir.lowering.schedule.emission.split import split

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from mind_mlir.lowering.schedule.contraction.case import ProductCase
    from mind_mlir.lowering.schedule.contraction.match import Contraction
    from mind_mlir.mlir.bindings import Value


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A way to compute products, by how the right factor, which is the large one, is read.

    Attributes:
        name: What it is called.
        takes: Whether a product that no strategy before takes is computed so.
        when: The same in words.
        how: How the right factor is read, in words.
        schedule: What follows for tiles, macro-tiles and chunks.
    """

    name: str
    takes: Callable[[ProductCase], bool]
    when: str
    how: str
    schedule: Callable[[ProductCase], MatmulSchedule]


def _dots(case: ProductCase) -> MatmulSchedule:
    dots = case.dots
    assert dots is not None, "the table asks first"
    nanoseconds = case.loops.steps * case.n * case.size * BYTE_NS
    return MatmulSchedule(
        strategy=DOTS,
        lanes=case.lanes,
        rows=dots.rows,
        vectors=dots.vectors,
        kc=dots.kc,
        mc=case.m,
        nc=split(case.n, nanoseconds, multiple=dots.beside).step,
        brief=nanoseconds < WAKING_NS,
        beside=dots.beside,
        **instructions(case.target),
    )


def _sweep(case: ProductCase) -> MatmulSchedule:
    most = max(costs.SWEPT_BYTES // (case.m * case.size), costs.LONG_BYTES // case.size)
    wide = -(-case.n // -(-case.n // most))  # columns of a macro-tile: as many in each
    return MatmulSchedule(
        strategy=SWEEP,
        lanes=case.lanes,
        rows=case.m,
        vectors=1,
        kc=case.swept_steps,
        mc=case.m,
        nc=-(-wide // case.lanes) * case.lanes,
        **instructions(case.target),
    )


def _in_tiles(name: str, takes: Callable[[ProductCase], bool], when: str, how: str) -> Strategy:
    return Strategy(name, takes, when, how, lambda case: tiled(case, name))


#: All strategies but that of `is_by_rows`, which is no product of this folder, in the order in which they are
#: asked. Each takes what is left.
STRATEGIES = (
    Strategy(
        DOTS,
        lambda case: case.dots is not None,
        f"the right factor is stored transposed, and rows are few: {costs.DOT_ROWS[0]}, or "
        f"{costs.DOT_ROWS[1]} where it comes from memory",
        "some columns after others, as dot products",
        _dots,
    ),
    Strategy(
        SWEEP,
        lambda case: case.is_swept and not case.tiles_as_swept,
        f"the right factor comes from memory for {costs.AXPY_ROWS} rows or fewer",
        "row after row, in parts whose results are added up",
        _sweep,
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
            and not (case.hoist_depth or case.constant_right)
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


def strategy_of(case: ProductCase) -> Strategy:
    """Return the strategy of ``case``: the first that takes it."""
    return next(strategy for strategy in STRATEGIES if strategy.takes(case))


def choose_schedule(case: ProductCase) -> MatmulSchedule:
    """Return the schedule of ``case``."""
    return strategy_of(case).schedule(case)


def table() -> str:
    """Return the strategies as a table of Markdown, as `docs/schedule.md` shows it."""
    rows = [f"| **{each.name}** | {each.when} | {each.how} |" for each in STRATEGIES]
    return "\n".join(("| strategy | where | how the right factor is read |", "|---|---|---|", *rows))


def is_by_rows(contraction: Contraction, constants: Container[Value | None]) -> bool:
    """Return whether a product is rather computed as sums along contiguous rows of both factors, by `fusion`.

    Not so where one of ``constants`` is a factor: that is packed when the program is compiled.
    """
    if constant_of(contraction.right.value) in constants:
        return False
    few = contraction.extent(contraction.m) <= GEMV_ROWS
    rows = contraction.left.contiguous(contraction.k) and contraction.right.contiguous(contraction.k)
    return few and rows and not contraction.inner


def choices_of(schedule: MatmulSchedule) -> tuple[Choice, ...]:
    """Return what was chosen, for people: the strategy, and what follows from it."""
    strategy = next(each for each in STRATEGIES if each.name == schedule.strategy)
    return (Choice("strategy", strategy.name, strategy.when), *schedule.choices())
