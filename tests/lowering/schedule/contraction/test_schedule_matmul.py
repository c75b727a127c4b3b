from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from schedule_harness import DTYPES, Array, bufferized, function, run, scheduled, tensor_type

from mind_mlir.lowering.schedule.contraction.case import ProductCase
from mind_mlir.lowering.schedule.contraction.choice import choose_schedule
from mind_mlir.lowering.schedule.contraction.geometry import Geometry, Loop
from mind_mlir.target import Target, host_target

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.schedule import MatmulSchedule

AVX2 = Target(vector_bytes=32, vector_registers=16, fma=True)
SSE = Target()
SHAPES = [
    (1, 1, 1),
    (1, 7, 13),
    (7, 1, 13),
    (13, 31, 1),
    (1, 1, 31),
    (1, 300, 200),
    (300, 1, 200),
    (2, 64, 64),
    (16, 8, 4),
    (31, 13, 7),
    (64, 10, 64),
    (33, 65, 517),
    (100, 37, 700),
    (9, 600, 1030),
    (257, 33, 129),
    (1000, 3, 5),
]


def matmul(m: int, n: int, k: int, dtype: str, layout: str = "nn") -> str:
    """C = A @ B; ``layout`` tells for each factor whether it is stored transposed (t) or not (n)."""
    left = tensor_type((k, m) if layout[0] == "t" else (m, k), dtype)
    right = tensor_type((n, k) if layout[1] == "t" else (k, n), dtype)
    out = tensor_type((m, n), dtype)
    maps = (
        f"indexing_maps = [affine_map<(m, n, k) -> ({'k, m' if layout[0] == 't' else 'm, k'})>,"
        f"affine_map<(m, n, k) -> ({'n, k' if layout[1] == 't' else 'k, n'})>,"
        "affine_map<(m, n, k) -> (m, n)>]"
    )
    body = f"""
    %zero = arith.constant {"0.0" if dtype[0] == "f" else "0"} : {dtype}
    %empty = tensor.empty() : {out}
    %fill = linalg.fill ins(%zero : {dtype}) outs(%empty : {out}) -> {out}
    %r = linalg.matmul {maps} ins(%a0, %a1 : {left}, {right}) outs(%fill : {out}) -> {out}"""
    return function([left, right], [out], body, ["%r"])


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    if dtype[0] == "f":
        return generator.standard_normal(shape).astype(DTYPES[dtype])
    return generator.integers(-1000, 1000, shape).astype(DTYPES[dtype])


def check(m: int, n: int, k: int, dtype: str, layout: str = "nn", target: Target | None = None) -> None:
    left, right = random((m, k), dtype, 1), random((k, n), dtype, 2)
    stored = [
        np.ascontiguousarray(x.T if t == "t" else x) for x, t in zip((left, right), layout, strict=True)
    ]
    out: Array = np.full((m, n), 7, DTYPES[dtype])
    run(matmul(m, n, k, dtype, layout), stored, [out], target)
    if dtype[0] == "i":
        np.testing.assert_array_equal(out, left @ right)
        return
    exact = left.astype(np.float64) @ right.astype(np.float64)
    bound = np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64)
    assert np.all(np.abs(out - exact) <= (k + 1) * np.finfo(DTYPES[dtype]).eps * bound)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_matmul(shape: tuple[int, int, int], dtype: str) -> None:
    check(*shape, dtype)


@pytest.mark.parametrize("shape", [(31, 13, 7), (100, 37, 700), (65, 130, 50)], ids=str)
@pytest.mark.parametrize("dtype", ["f64", "i64"])
def test_matmul_of_eight_bytes(shape: tuple[int, int, int], dtype: str) -> None:
    check(*shape, dtype)


@pytest.mark.parametrize(
    "shape",
    [
        (1, 7, 13),
        (7, 1, 13),
        (1, 40, 70),
        (40, 1, 70),
        (70, 3, 131),
        (70, 33, 45),
        (64, 64, 64),
        (40, 530, 520),
    ],
    ids=str,
)
@pytest.mark.parametrize("layout", ["nt", "tn", "tt"])
def test_transposed_factors(shape: tuple[int, int, int], layout: str) -> None:
    check(*shape, "f32", layout)
    check(*shape, "i64", layout)


@pytest.mark.parametrize("target", [AVX2, SSE], ids=["avx2", "sse"])
@pytest.mark.parametrize("shape", [(1, 7, 13), (33, 65, 517), (64, 64, 64), (50, 200, 300)], ids=str)
@pytest.mark.parametrize("layout", ["nn", "nt"])
def test_other_targets(shape: tuple[int, int, int], layout: str, target: Target) -> None:
    check(*shape, "f32", layout, target)


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize(
    "shape",
    [(48, 64, 40), (49, 65, 41), (50, 79, 70), (61, 530, 64), (100, 33, 17), (96, 96, 300), (650, 33, 40)],
    ids=str,
)
@pytest.mark.parametrize("layout", ["nn", "nt"])
def test_packed_right_factors(shape: tuple[int, int, int], layout: str, width: int) -> None:
    """Small caches make small products pack or copy, and give them several blocks each way."""
    registers = 16 if width < 64 else 32
    target = Target(width, registers, fma=width > 16, masks=width == 64, l1_bytes=1024, l2_bytes=4096)
    schedule = chosen(*shape, target, strided_right=layout[1] == "t")
    assert schedule.pack or schedule.strategy == "copied" or schedule.columns >= 32, (
        "wide panels are read in place"
    )
    check(*shape, "f32", layout, target)


@pytest.mark.skipif(host_target().vector_bytes < 32, reason="so short vectors are few lines")
@pytest.mark.parametrize(("latency", "steps"), [(0.3, 2), (0.6, 4)])
def test_panels_that_come_late_are_asked_for_in_several_steps(latency: float, steps: int) -> None:
    """Hints change no results, whatever they say of panels beyond the last one and of odd steps."""
    rates = dataclasses.replace(host_target().rates, multiply_add_ns=0.001, l3_latency_ns=latency)
    target = dataclasses.replace(host_target(), l2_bytes=4 << 20, rates=rates)
    assert chosen(641, 331, 171, target, strided_right=True).fetch_steps == steps
    check(641, 331, 171, "f32", "nt", target)


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_extent_zero(shape: tuple[int, int, int], dtype: str) -> None:
    check(*shape, dtype)


@pytest.mark.parametrize(
    "shape", [(3, 5, 7, 9), (2, 64, 64, 64), (2, 40, 70, 130), (1, 1, 1, 1), (5, 1, 20, 1)], ids=str
)
def test_batch_matmul(shape: tuple[int, int, int, int]) -> None:
    b, m, n, k = shape
    left, right, out = ((b, m, k), (b, k, n), (b, m, n))
    types = [tensor_type(s, "f32") for s in (left, right, out)]
    body = f"""
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : {types[2]}
    %fill = linalg.fill ins(%zero : f32) outs(%empty : {types[2]}) -> {types[2]}
    %r = linalg.batch_matmul ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%fill : {types[2]}) -> {types[2]}"""
    a, c, result = random(left, "f32", 1), random(right, "f32", 2), np.full(out, 7, np.float32)
    run(function(types[:2], types[2:], body, ["%r"]), [a, c], [result])
    np.testing.assert_allclose(result, a @ c, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [30, 1500])
def test_init_that_is_no_constant_is_added_to(k: int) -> None:
    types = [tensor_type(s, "f32") for s in ((20, k), (k, 50), (20, 50))]
    body = f"%r = linalg.matmul ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%a2 : {types[2]}) -> {types[2]}"
    a, b, c = random((20, k), "f32", 1), random((k, 50), "f32", 2), random((20, 50), "f32", 3)
    before, out = c.copy(), np.empty((20, 50), np.float32)
    run(function(types, types[2:], body, ["%r"]), [a, b, c], [out])
    np.testing.assert_allclose(out, a @ b + c, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(c, before)


def test_infinities_and_nans_stay_in_their_rows() -> None:
    a, b = random((5, 6), "f32", 1), random((6, 7), "f32", 2)
    a[1, 2], a[3, 4] = np.inf, np.nan
    out = np.empty((5, 7), np.float32)
    run(matmul(5, 7, 6, "f32"), [a, b], [out])
    with np.errstate(invalid="ignore"):  # inf - inf, which some kernels of numpy's library flag
        expected = a @ b
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_scheduled_module_is_deterministic() -> None:
    assert scheduled(matmul(100, 70, 600, "f32", "nt")) == scheduled(matmul(100, 70, 600, "f32", "nt"))


@pytest.mark.parametrize("shape", [(512, 512, 512), (100, 37, 700), (5, 6, 7)], ids=str)
def test_bufferizes_without_copies(shape: tuple[int, int, int]) -> None:
    text = bufferized(matmul(*shape, "f32"))
    assert "memref.copy" not in text
    assert "linalg." not in text
    assert "memref.alloc" not in text


def chosen(
    m: int, n: int, k: int, target: Target, *, strided_left: bool = False, strided_right: bool = False
) -> MatmulSchedule:
    """Return the schedule of a product of f32 matrices."""
    left = (1, m) if strided_left else (k, 1)
    columns = Loop(n, 0, k if strided_right else 1, 1)
    depth = Loop(k, left[1], 1 if strided_right else n, 0)
    loops = Geometry(columns, (Loop(m, left[0], 0, n),), (), (depth,), (0, 0, 0))
    return choose_schedule(ProductCase(loops, 32, target))


AVX512 = Target(64, 32, fma=True, masks=True, l2_bytes=2 << 20)


def test_small_products_do_not_pack() -> None:
    for m, n, k in [(64, 10, 64), (16, 8, 4), (64, 64, 64), (1, 4096, 4096)]:
        assert not chosen(m, n, k, AVX512).pack
    assert chosen(2048, 2048, 2048, AVX512).pack


@pytest.mark.parametrize(
    ("m", "n", "k"), [(9, 3072, 768), (13, 2048, 2048), (26, 4096, 1024), (37, 3072, 768)]
)
def test_a_far_right_factor_is_not_read_for_two_rows_at_a_time(m: int, n: int, k: int) -> None:
    """Tiles of 2 x 64 waste fewest rows of such results, and take up to twice as long."""
    assert chosen(m, n, k, AVX512).rows >= 4


def test_a_far_right_factor_is_read_by_one_tile_of_few_rows() -> None:
    for m in (5, 6, 7, 8):
        assert chosen(m, 4096, 4096, AVX512).rows >= m
    check(
        5,
        96,
        2100,
        "f32",
        target=dataclasses.replace(AVX512, l2_bytes=1 << 12) if host_target().masks else None,
    )


def test_a_large_transposed_factor_is_packed_by_the_pieces_that_read_it() -> None:
    m, n, k = 33, 3000, 700
    assert chosen(m, n, k, AVX512, strided_right=True).strategy == "own panels"
    assert chosen(1000, n, k, AVX512, strided_right=True).strategy != "own panels", "read by many pieces"
    assert chosen(m, n, 3000, AVX512, strided_right=True).strategy != "own panels", "no room for a panel"
    text = bufferized(matmul(m, n, k, "f32", "nt"), AVX512)
    own = [int(size) for size in re.findall(r"memref\.view.* to memref<(\d+)xf32>", text)]
    assert max(own) < k * n // 8


def test_edges_without_masks_are_packed() -> None:
    assert chosen(64, 10, 64, AVX2).pack
    assert not chosen(64, 64, 64, AVX2).pack


@pytest.mark.parametrize("target", [AVX2, SSE, AVX512])
def test_tiles_fit_the_registers(target: Target) -> None:
    for m in (1, 2, 3, 7, 8, 13, 64, 1000):
        for n in (1, 5, 16, 33, 48, 512):
            schedule = chosen(m, n, 100, target)
            assert schedule.rows * schedule.vectors + schedule.vectors + 1 <= target.vector_registers
            assert schedule.nc % schedule.columns == 0
            assert schedule.mc <= m


@pytest.mark.parametrize("target", [AVX2, SSE, AVX512])
def test_large_products_have_pieces_for_many_threads(target: Target) -> None:
    for m, n, k in [(512, 512, 512), (2048, 2048, 2048), (4096, 4096, 64), (64, 4096, 4096)]:
        schedule = chosen(m, n, k, target)
        macro_tiles = -(-m // schedule.mc) * -(-n // schedule.nc)
        assert macro_tiles // schedule.macro_tiles >= 16
    schedule = chosen(20, 20, 20, target)
    assert (schedule.mc, schedule.macro_tiles, schedule.packings) == (20, 1, 20)


def test_choices_say_what_and_why() -> None:
    found = {choice.name: choice for choice in chosen(2048, 2048, 2048, AVX512).choices()}
    assert found["tile"].value == "6 x 64"
    assert found["right"].value == "panels of 64 columns"
    assert all(choice.reason for choice in found.values())


@pytest.mark.parametrize(
    ("target", "shape", "tile", "strategy"),
    [
        # Six rows of four vectors fill the registers of AVX-512, six of two those of AVX2.
        (AVX512, (1024, 1024, 1024), (6, 4), "panels"),
        (AVX512, (1000, 1000, 1000), (8, 3), "panels"),
        (AVX512, (2048, 2048, 2048), (6, 4), "panels"),
        (AVX512, (512, 512, 512), (6, 4), "in place"),
        # Rows that are near each other are read in place, however few vectors of them at once.
        (AVX512, (128, 512, 784), (8, 2), "in place"),
        (AVX512, (64, 768, 3072), (8, 3), "in place"),
        (AVX512, (128, 1024, 1024), (6, 4), "in place"),
        (AVX512, (32, 2304, 768), (8, 3), "copied"),
        # Sums that one block holds.
        (AVX512, (6272, 256, 256), (6, 4), "panels"),
        (AVX512, (64, 64, 64), (6, 4), "in place"),
        (AVX512, (100, 10, 50), (8, 1), "in place"),
        # Few rows: the right factor is read once, rows of it side by side, in wide tiles.
        (AVX512, (6, 4096, 4096), (6, 4), "strips"),
        (AVX2, (1000, 1000, 1000), (6, 2), "panels"),
        (AVX512, (128, 2304, 768), (6, 4), "in place"),
        (SSE, (512, 512, 512), (6, 2), "copied"),
    ],
)
def test_schedules_of_well_known_products(
    target: Target, shape: tuple[int, int, int], tile: tuple[int, int], strategy: str
) -> None:
    """What the model chooses; whoever changes it has measured, with `make bench`, that it is better."""
    schedule = chosen(*shape, target)
    assert (schedule.rows, schedule.vectors) == tile
    assert schedule.strategy == strategy
    assert not schedule.pack_left
    assert schedule.kc == (16 if shape[0] == 6 else 256 if shape[2] == 256 else 160)


@pytest.mark.parametrize("shape", [(1030, 300, 2060), (1025, 257, 2049)], ids=str)
def test_a_large_transposed_left_factor_is_packed(shape: tuple[int, int, int]) -> None:
    target = Target(64, 32, fma=True, masks=True, l2_bytes=1 << 20) if host_target().masks else host_target()
    assert chosen(*shape, target, strided_left=True).pack_left or not target.masks
    check(*shape, "f32", "tn", target)
