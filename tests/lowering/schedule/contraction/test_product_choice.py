"""The table of strategies: what the page shows, and shapes that take each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mind_mlir
from mind_mlir.lowering.schedule.contraction.case import ProductCase
from mind_mlir.lowering.schedule.contraction.choice import STRATEGIES, choose_schedule, table
from mind_mlir.lowering.schedule.contraction.geometry import Geometry, Loop
from mind_mlir.lowering.schedule.contraction.words import Words
from mind_mlir.target import Target

PAGE = Path(__file__).parents[4] / "docs" / "schedule.md"
AVX512 = Target(64, 32, fma=True, masks=True, l2_bytes=2 << 20)


def case(
    m: int, n: int, k: int, *, transposed: bool = False, words: Words | None = None, constant: bool = False
) -> ProductCase:
    right = (k, 1) if transposed else (1, n)
    loops = Geometry(Loop(n, 0, right[0], 1), (Loop(m, k, 0, n),), (), (Loop(k, 1, right[1], 0),), (0, 0, 0))
    return ProductCase(loops, 32, AVX512, words=words, constant_right=constant)


def test_the_page_shows_the_table() -> None:
    assert table() in PAGE.read_text()


@pytest.mark.parametrize(
    ("m", "n", "tile"),
    [
        (512, 512, (32, 2)),
        (1000, 1000, (32, 2)),
        (64, 70, (32, 2)),
        (16, 512, (16, 4)),
        (48, 64, (16, 4)),
        (8, 33, (16, 4)),
        (512, 16, (64, 1)),
        (17, 17, (32, 2)),
    ],
)
def test_tiles_leave_little_unused_and_read_little(m: int, n: int, tile: tuple[int, int]) -> None:
    words = Words("", 2, ("i16", "i16"), types=("bf16", "bf16"))
    product = case(m, n, 512, words=words)
    assert product.tile == tile
    schedule = choose_schedule(product)
    assert (schedule.strategy, schedule.pack_left, schedule.kc % 16) == ("tiles", True, 0)
    assert schedule.kc * schedule.columns * 4 <= AVX512.l1_bytes // 2


def test_strategies_have_names_of_their_own() -> None:
    assert len({strategy.name for strategy in STRATEGIES}) == len(STRATEGIES)


@pytest.mark.parametrize(
    ("product", "name"),
    [
        (case(8, 768, 3072, transposed=True), "dots"),
        (case(4, 768, 3072), "sweep"),
        (case(64, 512, 512, words=Words("bf16", 2, ("i16", "i16"))), "words"),
        (case(4, 768, 3072, constant=True), "sweep"),
        (case(64, 512, 512, constant=True), "constant panels"),
        (case(33, 3000, 700, transposed=True), "own panels"),
        (case(1000, 3000, 700, transposed=True), "panels"),
        (case(2048, 2048, 2048), "panels"),
        (case(32, 2304, 768), "copied"),
        (case(6, 4096, 4096), "strips"),
        (case(512, 512, 512), "in place"),
    ],
    ids=lambda each: each if isinstance(each, str) else f"{each.m}x{each.n}x{each.k}",
)
def test_a_shape_takes_the_first_strategy_that_is_for_it(product: ProductCase, name: str) -> None:
    names = [each.name for each in STRATEGIES]
    schedules = [each.schedule(product) for each in STRATEGIES[: names.index(name) + 1]]
    assert schedules[-1] == choose_schedule(product)
    assert schedules[-1] is not None
    assert schedules[-1].strategy == name
    assert schedules[:-1] == [None] * names.index(name)


@pytest.mark.parametrize(
    ("count", "extents", "kind"),
    [
        (16, (6, 6, 6), "fused"),
        (16, (6, 7, 6), "product"),
        (15, (4, 4, 4), "product"),
        (40, (3, 5, 7), "fused"),
    ],
)
def test_many_tiny_products_are_loops(count: int, extents: tuple[int, int, int], kind: str) -> None:
    m, k, n = extents
    random = np.random.default_rng(1)
    for dtype in ("f4", "f8", "i4", "i1"):
        left, right = (random.integers(-3, 4, (count, *each)).astype(dtype) for each in ((m, k), (k, n)))
        product = mind_mlir.jit(lambda a, b: a @ b)
        np.testing.assert_array_equal(product(left, right), left @ right)
    assert f"1. {kind}" in product.lower(left, right).compile().as_text("schedule")
