"""Arithmetic in bf16: what is rounded where, and quotients that are computed as products."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from schedule_harness import Array, function, lowered, run

from mind_mlir.target import TARGETS, named_target, runs_here

RUNNABLE = [name for name in TARGETS if runs_here(named_target(name))]


def numbers(exponents: tuple[int, ...]) -> Array:
    """Return all numbers of bf16 with some exponents, as stored, of which one is negative."""
    bits = np.array(exponents, np.uint16)[:, None] << 7 | np.arange(128, dtype=np.uint16)
    bits[0] |= 0x8000
    found: Array = bits.reshape(-1).view(ml_dtypes.bfloat16)
    return found


def division(rows: int, columns: int) -> str:
    """Return a division of each row by a number of its own."""
    types = [f"tensor<{shape}xbf16>" for shape in (f"{rows}x{columns}", str(rows))]
    body = f"""
    %e = tensor.empty() : {types[0]}
    %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%e : {types[0]}) {{
      ^bb0(%x: bf16, %d: bf16, %o: bf16):
        %wide = arith.extf %x : bf16 to f32
        %by = arith.extf %d : bf16 to f32
        %q = arith.divf %wide, %by : f32
        %n = arith.truncf %q : f32 to bf16
        linalg.yield %n : bf16
    }} -> {types[0]}"""
    return function(types, types[:1], body, ["%r"])


@pytest.mark.parametrize("target", RUNNABLE)
def test_quotients_by_rows_are_those_of_divisions(target: str) -> None:
    """All significands, with exponents that meet each way to scale; subnormal quotients are ties, too."""
    dividends = numbers((0, 1, 2, 8, 60, 127, 190, 253, 254, 255))
    divisors = numbers((0, 1, 2, 3, 63, 126, 127, 128, 134, 191, 251, 252, 254, 255))
    left = np.ascontiguousarray(np.broadcast_to(dividends, (len(divisors), len(dividends))))
    out = np.empty_like(left)
    run(division(*left.shape), [left, divisors], [out], named_target(target))
    with np.errstate(all="ignore"):
        expected = left.astype(np.float32) / divisors.astype(np.float32)[:, None]
        rounded = expected.astype(ml_dtypes.bfloat16)
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(out.astype(np.float32)), is_nan)
    np.testing.assert_array_equal(out.view(np.uint16)[~is_nan], rounded.view(np.uint16)[~is_nan])


def test_a_loop_does_not_divide_by_the_same_number_again_and_again() -> None:
    text = lowered(division(64, 256), named_target("avx2"))
    assert len(re.findall(r"llvm\.fdiv", text)) == 1
    assert "1.000000e+00" in text


def chain(body: str) -> str:
    """Return an elementwise function of ``%x`` and ``%y``, f32 of bf16, that gives ``%r``."""
    type_ = "tensor<256xbf16>"
    text = f"""
    %e = tensor.empty() : {type_}
    %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
        affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%a0, %a1 : {type_}, {type_}) outs(%e : {type_}) {{
      ^bb0(%a: bf16, %b: bf16, %o: bf16):
        %x = arith.extf %a : bf16 to f32
        %y = arith.extf %b : bf16 to f32
        {body}
        %n = arith.truncf %r : f32 to bf16
        linalg.yield %n : bf16
    }} -> {type_}"""
    return function([type_, type_], [type_], text, ["%r"])


def rounds(body: str) -> bool:
    """Return whether ``body`` is rounded: just below half of the last place is added then."""
    return "32767" in lowered(chain(body), named_target("sse"))


def test_choices_among_numbers_of_bf16_are_not_rounded() -> None:
    chosen = "%c = arith.cmpf olt, %x, %y : f32\n %r = arith.select %c, %m, %y : f32"
    assert not rounds("%r = arith.maxnumf %x, %y : f32")
    assert not rounds(f"%m = arith.negf %x : f32\n {chosen}")
    assert rounds(f"%m = arith.addf %x, %x : f32\n {chosen}")


def test_what_is_chosen_keeps_its_bits() -> None:
    left, right = numbers((0, 1)), numbers((127, 255))
    out = np.empty(256, ml_dtypes.bfloat16)
    text = chain("%c = arith.cmpf olt, %x, %y : f32\n %r = arith.select %c, %x, %y : f32")
    run(text, [left, right], [out])
    with np.errstate(invalid="ignore"):
        expected = np.where(left.astype(np.float32) < right.astype(np.float32), left, right)
    np.testing.assert_array_equal(out.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "rsqrt", "sqrt"])
def test_no_nan_is_lost(name: str, target: str) -> None:
    """Sums with NaN, and functions of all numbers: no NaN is rounded to infinity, whatever its bits."""
    numpy = {"erf": np.tanh, "rsqrt": np.sqrt}.get(name) or getattr(np, name)
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    out = np.empty_like(every)
    body = f"%s = arith.addf %x, %y : f32\n %r = math.{name} %s : f32"
    run(chain(body).replace("256x", "65536x"), [every, np.zeros_like(every)], [out], named_target(target))
    with np.errstate(all="ignore"):
        expected = np.isnan(numpy(every.astype(np.float32)))
    np.testing.assert_array_equal(np.isnan(out.astype(np.float32)), expected)


def test_whole_registers_are_taken_apart_and_put_together_by_moving_words() -> None:
    """As many numbers as fill a register of words; fewer, and other targets, shift each number."""
    total = chain("%r = arith.addf %x, %y : f32")
    text = lowered(total, named_target("avx512"))
    assert len(re.findall(r"shufflevector .*\[32, 0, 32, 1, .* : vector<32xi16>", text)) == 2
    assert len(re.findall(r"shufflevector .*\[1, 3, 5, 7, .* : vector<64xi16>", text)) == 1
    assert "llvm.zext" not in text
    for few, target in ((total.replace("256x", "16x"), "avx512"), (total, "avx2")):
        assert "llvm.shufflevector" not in lowered(few, named_target(target))


@pytest.mark.parametrize("extent", [1, 15, 31, 32, 33, 63, 64, 65, 97, 128])
def test_sums_of_any_extent_are_rounded_to_nearest_even(extent: int) -> None:
    left = np.resize(numbers((0, 1, 127, 200, 254, 255)), extent)
    right = np.resize(numbers((120, 126, 0, 255, 254)), extent)
    out = np.empty_like(left)
    run(chain("%r = arith.addf %x, %y : f32").replace("256x", f"{extent}x"), [left, right], [out])
    with np.errstate(all="ignore"):
        total = left.astype(np.float32) + right.astype(np.float32)
        expected = total.astype(ml_dtypes.bfloat16)
    is_nan = np.isnan(total)
    np.testing.assert_array_equal(np.isnan(out.astype(np.float32)), is_nan)
    np.testing.assert_array_equal(out.view(np.uint16)[~is_nan], expected.view(np.uint16)[~is_nan])
