"""Products by tiles of AMX, by vector code in the place of its instructions, against a model of these."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re

import ml_dtypes
import numpy as np
import pytest
from native_code import assembly, put_on_memory
from product_harness import (
    LAID_OUT,
    LAYOUTS,
    check_batches,
    exact,
    floats,
    integers,
    multiplied,
    planned,
    product,
    with_constant,
)
from schedule_harness import Array, lowered
from tile_model import AMX, SMALL, TILES, by_tiles

from mind_mlir.lowering.schedule.contraction import emission
from mind_mlir.lowering.schedule.driver import schedule
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import Value, arith, ir, new_context
from mind_mlir.ops.accumulation import roundings
from mind_mlir.target import Target, host_target

pytestmark = pytest.mark.skipif(not host_target().masks, reason="the machine has no masks")

#: Rows, columns and terms: the least that is packed, one less and more than tiles, primes, several of all.
SHAPES = [(8, 16, 16), (15, 17, 31), (33, 65, 97), (17, 32, 64), (37, 131, 257), (47, 64, 520), (70, 16, 520)]


by_tile_kernel = functools.partial(multiplied, layout="nn", target=TILES, strategy="tiles")


def expected(left: Array, right: Array, target: Target, *, flushes: bool = False) -> Array:
    """Return the bits of a product with ``target``, whose schedule says how long blocks are."""
    text = product(left.shape[0], right.shape[1], left.shape[1], ("bf16", "bf16"))
    (block,) = re.findall(r"kc = (\d+)", planned(text, target))
    with np.errstate(all="ignore"):
        return by_tiles(left, right, int(block), flushes=flushes)


@pytest.mark.parametrize("types", list(itertools.product(("i8", "u8"), repeat=2)), ids="".join)
def test_bytes_of_any_signs_are_exact(types: tuple[str, str]) -> None:
    for number, (m, n, k) in list(enumerate(SHAPES))[types[0] == types[1] :: 2]:
        left, right = integers((m, k), types[0], 1), integers((k, n), types[1], 2)
        result = left.astype(np.int32) @ right.astype(np.int32)
        found = multiplied(left, right, LAYOUTS[number % 4], (TILES, SMALL)[number // 2 % 2], "tiles")
        np.testing.assert_array_equal(found, result, str((m, n, k)))


@pytest.mark.skipif(not host_target().integer_dots, reason="the machine has no instruction for bytes")
@LAID_OUT
@pytest.mark.parametrize("types", [("i8", "u8"), ("u8", "i8")], ids="".join)
def test_vectors_take_bytes_of_unlike_signs(types: tuple[str, str], layout: str) -> None:
    for number, (m, n, k) in enumerate([(33, 65, 97), (37, 131, 257)]):
        left, right = integers((m, k), types[0], 1), integers((k, n), types[1], 2)
        target = dataclasses.replace((TILES, SMALL)[number], integer_tiles=False)
        found = multiplied(left, right, layout, target, "words")
        np.testing.assert_array_equal(found, left.astype(np.int32) @ right.astype(np.int32))


def test_the_greatest_and_the_least_bytes_do_not_saturate() -> None:
    for one, other in ((np.int8(-128), np.int8(-128)), (np.uint8(255), np.int8(-128)), (255, 255)):
        left, right = (np.full(shape, each) for shape, each in (((40, 1000), one), ((1000, 20), other)))
        left, right = (x.astype(np.uint8) if x.dtype == np.int64 else x for x in (left, right))
        total = np.full((40, 20), 1000 * int(one) * int(other))
        np.testing.assert_array_equal(by_tile_kernel(left, right), total)


@LAID_OUT
def test_sums_of_bf16_are_those_of_the_instruction_bit_for_bit(layout: str) -> None:
    first = LAYOUTS.index(layout)
    for number, (m, n, k) in list(enumerate(SHAPES))[first % 2 :: 2]:
        left, right = floats((m, k), 1), floats((k, n), 2)
        result, magnitudes = exact(left, right)
        target = (TILES, SMALL)[(number + first) // 2 % 2]
        found = multiplied(left, right, layout, target, "tiles")
        np.testing.assert_array_equal(found, expected(left, right, target), str((m, n, k)))
        assert np.all(np.abs(found - result) <= roundings(k) * 2**-24 * magnitudes)


def test_long_sums_keep_to_the_bound() -> None:
    left, right = floats((8, 70_000), 1), floats((70_000, 16), 2)
    result, magnitudes = exact(left, right)
    assert np.all(np.abs(by_tile_kernel(left, right) - result) <= roundings(70_000) * 2**-24 * magnitudes)


@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize(
    ("first", "second"), [(1e-39, 1e30), (1e-20, 1e-20), (2.0**-126, 1.0), (1.5 * 2.0**-63, 1.5 * 2.0**-63)]
)
def test_subnormal_numbers_are_not_flushed(first: float, second: float, layout: str) -> None:
    """They are on the way here, so that code without the instruction computes the product."""
    left, right = np.zeros((2, 37, 37), ml_dtypes.bfloat16)
    left[np.arange(37), np.arange(37)[::-1]] = first
    right[5, :] = right[:, 3] = second
    result = left.astype(np.float32) @ right.astype(np.float32)
    assert np.any(result != 0)
    np.testing.assert_array_equal(by_tile_kernel(left, right, layout=layout), result)


def test_a_subnormal_number_changes_no_other_result() -> None:
    left, right = floats((70, 301), 1), floats((301, 50), 2)
    before = by_tile_kernel(left, right)
    left[69, 300] = right[0, 49] = 1e-39
    found = by_tile_kernel(left, right)
    np.testing.assert_array_equal(found[:69, :49], before[:69, :49])
    np.testing.assert_array_equal(found, expected(left, right, TILES))


def test_what_the_instruction_flushes_is_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is called in spite of subnormal numbers, which it never is, it takes these for zeros."""

    def always(left: Value, _: Value) -> Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, left, left).result

    monkeypatch.setattr(emission, "are_normal", always)
    left, right = floats((33, 70), 1), floats((70, 18), 2)
    left[:, ::3] *= ml_dtypes.bfloat16(1e-39)
    right[::4] *= ml_dtypes.bfloat16(1e-37)
    left[5] = 1e-38
    found, model = by_tile_kernel(left, right), expected(left, right, TILES, flushes=True)
    np.testing.assert_array_equal(found.view(np.int32), model.view(np.int32))
    assert np.any(found != expected(left, right, TILES))


@LAID_OUT
def test_infinities_and_nans(layout: str) -> None:
    left, right = floats((40, 33), 1), floats((33, 40), 2)
    left[3, 32], left[5, 1], right[0, 7], left[9, 0] = np.inf, np.nan, -np.inf, 0
    found, model = by_tile_kernel(left, right, layout=layout), expected(left, right, TILES)
    assert np.isnan(model).any()
    np.testing.assert_array_equal(found, model)


def test_zeros_have_the_sign_that_sums_give_them() -> None:
    left, right = np.full((16, 32), -0.0, ml_dtypes.bfloat16), np.ones((32, 16), ml_dtypes.bfloat16)
    found = by_tile_kernel(left, right)
    np.testing.assert_array_equal(found.view(np.int32), np.zeros((16, 16), np.int32))


@pytest.mark.parametrize("n", [80, 83], ids=["aligned", "unaligned"])
def test_large_results_go_past_the_cache(n: int) -> None:
    assert "nontemporal" in lowered(product(70, n, 32, ("bf16", "bf16")), SMALL)
    left, right = floats((70, 32), 1), floats((32, n), 2)
    np.testing.assert_array_equal(by_tile_kernel(left, right, target=SMALL), expected(left, right, SMALL))


@pytest.mark.parametrize("element", ["bf16", "i8"])
@pytest.mark.parametrize("target", [TILES, SMALL], ids=["tiles", "small"])
def test_batches(element: str, target: Target) -> None:
    check_batches(element, target)


@LAID_OUT
@pytest.mark.parametrize("side", [0, 1])
def test_constants_are_packed_to_the_same_bits(side: int, layout: str) -> None:
    left, right = floats((35, 101), 1), floats((101, 70), 2)
    found = with_constant(left, right, side, layout, TILES)
    np.testing.assert_array_equal(found, expected(left, right, TILES))


@pytest.mark.parametrize(
    ("types", "name"),
    [
        (("bf16", "bf16"), "tdpbf16ps"),
        (("i8", "i8"), "tdpbssd"),
        (("i8", "u8"), "tdpbsud"),
        (("u8", "i8"), "tdpbusd"),
        (("u8", "u8"), "tdpbuud"),
    ],
)
def test_code_for_amx_has_its_instructions(types: tuple[str, str], name: str) -> None:
    text = product(64, 64, 64, types)
    found = lowered(text, AMX)
    assert found.count(f"llvm.x86.{name}") == found.count("llvm.x86.tilezero") == 4
    assert found.count("llvm.x86.ldtilecfg") == found.count("llvm.x86.tilerelease") == 1
    assert "llvm.x86" not in lowered(text, TILES)
    is_float = "bf16" in types
    without = dataclasses.replace(AMX, bf16_tiles=not is_float, integer_tiles=is_float)
    assert name not in lowered(text, without)
    assert name not in lowered(product(7, 64, 64, types), AMX), "few rows do not pay for packing"


@pytest.mark.parametrize("shape", [(64, 64), (16, 64), (64, 16)], ids=str)
def test_machine_code_is_made_for_amx_on_any_machine(shape: tuple[int, int]) -> None:
    """Four tiles of sums, and those of factors that are read: as few as can be."""
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(product(*shape, 64, ("bf16", "bf16")))
        schedule(module, AMX)
        put_on_memory(module)
        to_llvm(module, AMX)
        text = assembly(module, opt_level=0)
    loads = 4 if shape == (64, 64) else 5
    for name, count in (("ldtilecfg", 1), ("tdpbf16ps", 4), ("tileloadd", loads), ("tilestored", 4)):
        assert len(re.findall(rf"^ +{name} ", text, re.MULTILINE)) == count, name
    assert re.search(r"tdpbf16ps tmm0, tmm\d, tmm\d", text)
    assert "tilerelease" in text
    assert ".byte" not in text
