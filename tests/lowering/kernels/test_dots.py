"""Products of narrow factors by instructions that multiply several terms at once."""

from __future__ import annotations

import dataclasses

import guarded
import ml_dtypes
import numpy as np
import pytest
from native_code import native_function, put_on_memory
from product_harness import LAID_OUT, check_batches, exact, floats, integers, laid_out, multiplied, product
from schedule_harness import lowered

from mind_mlir.lowering.schedule.driver import schedule
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.ops.accumulation import roundings
from mind_mlir.target import TARGETS, Target, host_target, named_target, runs_here

HOST = host_target()
DOTS = Target(64, 32, fma=True, half=True, masks=True, bf16_dots=True, integer_dots=True, l2_bytes=1 << 20)
#: Small caches give small products several blocks and pieces each way.
SMALL = dataclasses.replace(DOTS, l1_bytes=1024, l2_bytes=4096)
PLAIN = dataclasses.replace(DOTS, bf16_dots=False, integer_dots=False)
CACHES = pytest.mark.parametrize("target", [DOTS, SMALL], ids=["dots", "small"])

needs_bf16 = pytest.mark.skipif(not HOST.bf16_dots, reason="the machine has no instruction for bf16")
needs_integers = pytest.mark.skipif(not HOST.integer_dots, reason="the machine has no instruction for bytes")

SHAPES = [(32, 16, 16), (33, 65, 517), (131, 47, 37), (97, 131, 1031)]
SHAPED = pytest.mark.parametrize("shape", SHAPES, ids=str)


@needs_integers
@SHAPED
@LAID_OUT
def test_integers_are_exact(shape: tuple[int, int, int], layout: str) -> None:
    m, n, k = shape
    for dtype in ("i8", "u8", "i16"):
        left, right = integers((m, k), dtype, 1), integers((k, n), dtype, 2)
        wrapped = left.astype(np.int32) @ right.astype(np.int32)  # as sums of i16 may
        for target in (DOTS, SMALL):
            np.testing.assert_array_equal(multiplied(left, right, layout, target), wrapped)


@needs_integers
def test_extreme_bytes_do_not_saturate() -> None:
    for low, high in ((-128, -128), (-128, 127), (127, 127)):
        left, right = np.full((40, 1000), low, np.int8), np.full((1000, 20), high, np.int8)
        found = multiplied(left, right, "nn", DOTS)
        np.testing.assert_array_equal(found, np.full((40, 20), 1000 * low * high))


@needs_bf16
@SHAPED
@LAID_OUT
def test_sums_are_within_the_bound(shape: tuple[int, int, int], layout: str) -> None:
    m, n, k = shape
    left, right = floats((m, k), 1), floats((k, n), 2)
    result, magnitudes = exact(left, right)
    for target in (DOTS, SMALL):
        found = multiplied(left, right, layout, target)
        assert np.all(np.abs(found - result) <= roundings(k) * 2**-24 * magnitudes)


@needs_bf16
@LAID_OUT
def test_subnormal_factors_change_no_other_result(layout: str) -> None:
    """A row or column with a subnormal number has all be computed by conversion: to the same bits."""
    left, right = floats((70, 301), 1), floats((301, 50), 2)
    expected = multiplied(left, right, layout, DOTS)
    left[69, 300] = right[0, 49] = 1e-39
    found = multiplied(left, right, layout, DOTS)
    np.testing.assert_array_equal(found[:69, :49], expected[:69, :49])


@needs_bf16
@CACHES
@LAID_OUT
@pytest.mark.parametrize(
    ("first", "second"),
    [(1e-39, 1e30), (1e30, -1e-40), (1e-20, 1e-20), (2.0**-126, 1.0), (1.5 * 2.0**-63, 1.5 * 2.0**-63)],
)
def test_nothing_is_flushed(first: float, second: float, layout: str, target: Target) -> None:
    """Subnormal numbers, and products that are, with few numbers so that nothing is rounded."""
    left, right = np.zeros((2, 37, 37), ml_dtypes.bfloat16)
    left[np.arange(37), np.arange(37)[::-1]] = first
    right[5, :] = right[:, 3] = second
    expected = left.astype(np.float32) @ right.astype(np.float32)
    assert np.any(expected != 0)
    np.testing.assert_array_equal(multiplied(left, right, layout, target), expected)


@needs_bf16
def test_what_cancels_is_not_flushed() -> None:
    """Factors are normal, and so are products; their difference is not."""
    left, right = (np.zeros((32, 16), ml_dtypes.bfloat16), np.zeros((16, 16), ml_dtypes.bfloat16))
    left[:, 0], left[:, 1] = 2.0**-60 * (1 + 2**-7), -(2.0**-60)
    right[:2] = 2.0**-64
    found = multiplied(left, right, "nn", DOTS)
    np.testing.assert_array_equal(found, np.full((32, 16), 2.0**-131, np.float32))


@needs_bf16
@LAID_OUT
def test_infinities_and_nan(layout: str) -> None:
    left, right = floats((40, 33), 1), floats((33, 40), 2)
    left[3, 32], left[5, 1], right[0, 7] = np.inf, np.nan, -np.inf
    left[9, 0] = 0
    with np.errstate(invalid="ignore"):
        expected = left.astype(np.float32) @ right.astype(np.float32)
    found = multiplied(left, right, layout, DOTS)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found) * np.sign(found), np.isinf(expected) * np.sign(expected))


@needs_bf16
@needs_integers
@CACHES
@pytest.mark.parametrize("element", ["bf16", "i8"])
def test_batches(element: str, target: Target) -> None:
    check_batches(element, target)


@pytest.mark.parametrize("name", [name for name in TARGETS if runs_here(named_target(name))])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_targets_without_instructions_convert(dtype: str, name: str) -> None:
    """Code is made for each target, with factors large enough to be packed, edges, and few rows."""
    machine = named_target(name)
    for (m, n, k), layout in (((129, 130, 131), "nn"), ((129, 70, 131), "nt"), ((5, 70, 33), "nn")):
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(product(m, n, k, (dtype, dtype), layout))
            schedule(module, machine)
            put_on_memory(module)
            to_llvm(module, machine)
            native = native_function(module, opt_level=0)
        made = [
            np.random.default_rng(seed).integers(-9, 9, shape) for seed, shape in ((1, (m, k)), (2, (k, n)))
        ]
        left, right = (each.astype(ml_dtypes.bfloat16 if dtype == "bf16" else np.float16) for each in made)
        left[0], right[:, 0] = 0, 0
        left[0, 0], right[0, 0] = (2.0**-130, 2.0**20) if dtype == "bf16" else (2.0**-20, 2.0**10)
        out = np.full((m, n), 7, np.float32)
        guarded.call(native, laid_out((left, right), layout), [out])
        result, _ = exact(left, right)
        np.testing.assert_array_equal(out, result)  # whole numbers, and one product of a subnormal one


def test_instructions_are_those_of_the_target() -> None:
    for dtype, name in (("bf16", "dpbf16ps"), ("i8", "vpdpbusd"), ("u8", "vpdpwssd"), ("i16", "vpdpwssd")):
        text = product(64, 64, 64, (dtype, dtype))
        assert name in lowered(text, DOTS)
        assert name not in lowered(text, PLAIN)
        assert name not in lowered(product(7, 64, 64, (dtype, dtype)), DOTS), (
            "few rows do not pay for packing"
        )
