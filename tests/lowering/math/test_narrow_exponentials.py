"""Exponentials of bf16 and f16: all of them, and where functions of these formats take the place of f32's."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from schedule_harness import Array, function, lowered, run

from mind_mlir.target import TARGETS, named_target, runs_here

RUNNABLE = [name for name in TARGETS if runs_here(named_target(name))]
NUMPY = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


def exponentials(extent: int, source: str, result: str, body: str = "%r = math.exp %x : f32") -> str:
    """Return a function of ``%x``, an f32 of ``source``, whose ``%r`` is rounded to ``result``."""
    types = [f"tensor<{extent}x{each}>" for each in (source, result)]
    text = f"""
    %e = tensor.empty() : {types[1]}
    %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]}}
      ins(%a0 : {types[0]}) outs(%e : {types[1]}) {{
      ^bb0(%a: {source}, %o: {result}):
        %x = arith.extf %a : {source} to f32
        {body}
        %n = arith.truncf %r : f32 to {result}
        linalg.yield %n : {result}
    }} -> {types[1]}"""
    return function(types[:1], types[1:], text, ["%r"])


def every(dtype: str) -> Array:
    """Return all numbers of a format, in the order of their bits."""
    found: Array = np.arange(1 << 16, dtype=np.uint16).view(NUMPY[dtype])
    return found


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("dtype", NUMPY)
def test_all_exponentials_are_those_of_f32_rounded(dtype: str, target: str) -> None:
    numbers, out = every(dtype), np.empty(1 << 16, NUMPY[dtype])
    run(exponentials(numbers.size, dtype, dtype), [numbers], [out], named_target(target))
    with np.errstate(all="ignore"):
        exact = np.exp(numbers.astype(np.float64))
        expected = exact.astype(np.float32).astype(NUMPY[dtype])
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(out), is_nan)
    np.testing.assert_array_equal(out.view(np.uint16)[~is_nan], expected.view(np.uint16)[~is_nan])


@pytest.mark.parametrize("extent", [1, 7, 31, 33, 97])
def test_single_numbers_have_the_bits_of_vectors(extent: int) -> None:
    numbers = np.linspace(-9, 9, extent).astype(NUMPY["bf16"])
    out = np.empty(extent, NUMPY["bf16"])
    run(exponentials(extent, "bf16", "bf16"), [numbers], [out])
    expected = np.exp(numbers.astype(np.float64)).astype(NUMPY["bf16"])
    np.testing.assert_array_equal(out.view(np.uint16), expected.view(np.uint16))


def test_only_what_is_narrow_before_and_after_is_narrow_within() -> None:
    target = named_target("avx2")
    assert "mind.exp.bf16." in lowered(exponentials(64, "bf16", "bf16"), target)
    assert "mind.exp.f16." in lowered(exponentials(64, "f16", "f16"), target)
    sums = "%s = arith.addf %x, %x : f32\n %r = math.exp %s : f32"
    used = "%y = math.exp %x : f32\n %r = arith.addf %y, %y : f32"
    for text in (
        exponentials(64, "bf16", "f16"),
        exponentials(64, "f16", "bf16"),
        exponentials(64, "bf16", "bf16", sums),
        exponentials(64, "bf16", "bf16", used),
    ):
        assert "mind.exp.vector" not in lowered(text, target)
        assert "mind.exp." in lowered(text, target)
        assert "mind.exp.bf16" not in lowered(text, target)
        assert "mind.exp.f16" not in lowered(text, target)
