"""Products of f32 and f16 by tiles of bf16, as sums of these, against a model of the instructions."""

from __future__ import annotations

import dataclasses
import functools
import re

import numpy as np
import pytest
from native_code import assembly, put_on_memory
from product_harness import (
    LAID_OUT,
    check_batches,
    constant_product,
    exact,
    floats,
    multiplied,
    product,
    with_constant,
)
from schedule_harness import Array, compiled, lowered, scheduled
from tile_model import AMX, SMALL, TILES, by_tiles

from mind_mlir.lowering.schedule.contraction import emission, words
from mind_mlir.lowering.schedule.driver import schedule
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import Value, arith, ir, new_context
from mind_mlir.ops.accumulation import roundings
from mind_mlir.runtime import threads
from mind_mlir.target import Target, host_target

pytestmark = pytest.mark.skipif(not host_target().masks, reason="the machine has no masks")

SUMMANDS = {np.dtype(np.float32): 3, np.dtype(np.float16): 2}
GREATEST = float(np.finfo(np.float32).max)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products go through tiles, too."""
    monkeypatch.setattr(words, "_is_faster", lambda *_: True)


used = pytest.mark.usefixtures("always")
by_summands = functools.partial(multiplied, layout="nn", target=TILES, strategy="tiles")


def expected(left: Array, right: Array, target: Target = TILES, *, flushes: bool = False) -> Array:
    """Return the bits of a product with ``target``, whose schedule says how long blocks are."""
    name = "f32" if left.dtype == np.float32 else "f16"
    text = scheduled(product(left.shape[0], right.shape[1], left.shape[1], (name, name)), target)
    (block,) = re.findall(r"kc = (\d+)", text)
    with np.errstate(all="ignore"):
        return by_tiles(left, right, int(block), flushes=flushes, summands=SUMMANDS[left.dtype])


def check_bound(found: Array, left: Array, right: Array) -> None:
    result, magnitudes = exact(left, right)
    assert np.all(np.abs(found - result) <= roundings(left.shape[1]) * 2**-24 * magnitudes)


@used
@LAID_OUT
@pytest.mark.parametrize(
    ("shape", "dtype", "target"),
    [
        *(((15, 17, 31), "f32", TILES), ((33, 65, 97), "f32", SMALL), ((41, 16, 420), "f32", TILES)),
        *(((15, 17, 31), "f16", TILES), ((35, 21, 97), "f16", SMALL)),
    ],
    ids=["edges", "pieces", "blocks", "edges of f16", "pieces of f16"],
)
def test_sums_are_those_of_the_instruction_bit_for_bit(
    shape: tuple[int, int, int], dtype: str, target: Target, layout: str
) -> None:
    m, n, k = shape
    left, right = floats((m, k), 1, dtype), floats((k, n), 2, dtype)
    found = multiplied(left, right, layout, target, "tiles")
    np.testing.assert_array_equal(found, expected(left, right, target))
    check_bound(found, left, right)


@used
@pytest.mark.parametrize("spread", [8, 30])
def test_exponents_may_be_spread(spread: int) -> None:
    rng = np.random.default_rng(spread)
    left, right = (
        np.ldexp(floats((40, 40), seed, "f32"), rng.integers(-spread, spread, (40, 40))) for seed in (1, 2)
    )
    left[rng.random(left.shape) < 0.5] = 0
    found = by_summands(left, right)
    np.testing.assert_array_equal(found, expected(left, right))
    check_bound(found, left, right)


@used
def test_what_is_left_out_is_within_the_bound() -> None:
    """Summands as large as they can be, all of one sign, and the fewest terms there are."""
    number = np.float32(1 + 2.0**-8 - 2.0**-16 + 2.0**-17 - 2.0**-23)
    left, right = np.full((16, 16), number), np.full((16, 16), number)
    check_bound(by_summands(left, right), left, right)


@used
@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        *((1e-39, 1e30), (1e-45, GREATEST), (2.0**-126, 1.0), (1.7e-30, 1.3)),
        *((1e-18, 1e-20), (GREATEST, 0.5), (1.7e38, 1.3), (1e20, 1e20), (1.3e15, 1.1e15)),
    ],
)
def test_other_code_multiplies_what_tiles_would_lose(first: float, second: float, layout: str) -> None:
    """Each result is one product of numbers that tiles are not given, rounded once."""
    left, right = np.zeros((2, 37, 37), np.float32)
    left[np.arange(37), np.arange(37)[::-1]] = first
    right[5, :] = right[:, 3] = second
    with np.errstate(over="ignore"):
        result = left[:, ::-1].diagonal()[:, None] * right[::-1]
    assert np.any(result != 0)
    np.testing.assert_array_equal(by_summands(left, right, layout=layout), result)


@used
@LAID_OUT
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_not_finite_numbers(layout: str, dtype: str) -> None:
    left, right = floats((40, 33), 1, dtype), floats((33, 40), 2, dtype)
    left[3, 32], left[5, 1], right[0, 7], left[9, 0] = np.inf, np.nan, -np.inf, 0
    found = by_summands(left, right, layout=layout)
    with np.errstate(invalid="ignore"):
        result = left.astype(np.float64) @ right.astype(np.float64)
    is_finite = np.isfinite(result)
    np.testing.assert_array_equal(found[~is_finite], result[~is_finite])
    np.testing.assert_allclose(found[is_finite], result[is_finite], rtol=0, atol=1e-4)


@used
@pytest.mark.parametrize(
    ("side", "layout", "dtype"),
    [
        *((0, "nn", "f32"), (0, "tt", "f32"), (1, "nn", "f32"), (1, "tt", "f32")),
        (0, "tt", "f16"),
        (1, "nn", "f16"),
    ],
)
def test_packed_constants_have_the_same_bits(side: int, layout: str, dtype: str) -> None:
    left, right = floats((17, 33), 1, dtype), floats((33, 20), 2, dtype)
    for special in (False, True):
        if special:
            (left, right)[1 - side][[0, 3, 9], [0, 7, 1]] = np.inf, np.nan, 1e-44
        found = with_constant(left, right, side, layout, TILES)
        np.testing.assert_array_equal(found, by_summands(left, right, layout=layout))


@used
@pytest.mark.parametrize("special", [1e-30, 1e-44, np.inf, np.nan, 3e38])
def test_vectors_multiply_constants_that_tiles_cannot(special: float) -> None:
    left, right = floats((17, 33), 1, "f32"), floats((33, 20), 2, "f32")
    right[3, 5] = special
    text = constant_product(left, right, 1, "nn")
    assert 'strategy = "tiles"' not in scheduled(text, TILES)
    right[3, 5] = 0
    assert 'strategy = "tiles"' in scheduled(constant_product(left, right, 1, "nn"), TILES)


@used
def test_zeros_have_the_sign_that_sums_give_them() -> None:
    for left in (np.full((16, 32), -0.0, np.float32), np.full((16, 32), 0.0, np.float32)):
        found = by_summands(left, np.ones((32, 16), np.float32))
        np.testing.assert_array_equal(found.view(np.int32), np.zeros((16, 16), np.int32))


@used
def test_what_the_instruction_flushes_is_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is called in spite of small numbers, which it never is, it takes these for zeros."""

    def near(left: list[Value], _: list[Value]) -> Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, left[0], left[0]).result

    monkeypatch.setattr(emission, "are_near", near)
    left, right = floats((33, 70), 1, "f32"), floats((70, 18), 2, "f32")
    left[:, ::3] *= np.float32(2.0**-70)
    right[::3] *= np.float32(2.0**-55)
    found, model = by_summands(left, right), expected(left, right, flushes=True)
    np.testing.assert_array_equal(found.view(np.int32), model.view(np.int32))


@used
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("target", [TILES, SMALL], ids=["tiles", "small"])
def test_batches_of_sums(dtype: str, target: Target) -> None:
    check_batches(dtype, target)


@used
def test_threads_change_no_bit() -> None:
    m, n, k = 70, 90, 100
    left, right = floats((m, k), 1, "f32"), floats((k, n), 2, "f32")
    native, before = compiled(product(m, n, k, ("f32", "f32")), SMALL), threads.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            threads.set_num_threads(count)
            found.append(np.full((m, n), 7, np.float32))
            native.call([each.ctypes.data for each in (left, right, found[-1])])
    finally:
        threads.set_num_threads(before)
    for each in found:
        np.testing.assert_array_equal(each, by_summands(left, right, target=SMALL))


def schedules(m: int, n: int, k: int, target: Target = AMX, dtype: str = "f32") -> str:
    (strategy,) = re.findall(r'strategy = "([\w ]+)"', scheduled(product(m, n, k, (dtype, dtype)), target))
    return str(strategy)


def test_tiles_multiply_where_they_are_faster() -> None:
    assert schedules(512, 512, 512) == schedules(512, 512, 512, dtype="f16") == "tiles"
    assert schedules(16, 4096, 4096) != "tiles", "memory takes longer to bring three summands"
    assert schedules(64, 64, 64) != "tiles", "packing takes longer than what it saves"
    without = dataclasses.replace(AMX, bf16x6=False)
    assert "tiles" not in {schedules(512, 512, 512, without, dtype) for dtype in ("f32", "f16")}
    assert schedules(512, 512, 512, without, "bf16") == "tiles"


@used
@pytest.mark.parametrize(
    ("shape", "dtype", "loads", "dots"),
    [
        ((64, 64), "f32", 14, 24),
        ((64, 64), "f16", 10, 16),
        ((16, 64), "f32", 23, 24),
        ((64, 16), "f32", 22, 24),
    ],
    ids=str,
)
def test_each_step_loads_few_tiles(shape: tuple[int, int], dtype: str, loads: int, dots: int) -> None:
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(product(*shape, 64, (dtype, dtype)))
        schedule(module, AMX)
        put_on_memory(module)
        to_llvm(module, AMX)
        text = assembly(module, opt_level=0)
    for name, count in (("tdpbf16ps", dots), ("tileloadd", loads), ("tilezero", 4), ("tilestored", 4)):
        assert len(re.findall(rf"^ +{name} ", text, re.MULTILINE)) == count, name
    assert "llvm.x86" not in lowered(product(*shape, 64, (dtype, dtype)), TILES)
