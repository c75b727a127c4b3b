"""Products of narrow factors by instructions that multiply several terms at once."""

from __future__ import annotations

import dataclasses

import guarded
import ml_dtypes
import numpy as np
import pytest
from native_code import native_function, put_on_memory
from schedule_harness import Array, function, lowered, run, tensor_type

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

NUMPY = {"bf16": ml_dtypes.bfloat16, "i8": np.int8, "u8": np.uint8, "i16": np.int16}
SHAPES = [(32, 16, 16), (33, 65, 517), (131, 47, 37), (97, 131, 1031)]
LAYOUTS = ("nn", "nt", "tn", "tt")
SHAPED = pytest.mark.parametrize("shape", SHAPES, ids=str)
LAID_OUT = pytest.mark.parametrize("layout", LAYOUTS)


def product(m: int, n: int, k: int, dtype: str, layout: str = "nn") -> str:
    """Return a product into f32 or i32; ``layout`` tells for each factor whether it is stored transposed."""
    element = dtype.replace("u", "i")
    left = tensor_type((k, m) if layout[0] == "t" else (m, k), element)
    right = tensor_type((n, k) if layout[1] == "t" else (k, n), element)
    wide, zero = ("f32", "0.0") if dtype == "bf16" else ("i32", "0")
    out = tensor_type((m, n), wide)
    maps = (
        f"indexing_maps = [affine_map<(m, n, k) -> ({'k, m' if layout[0] == 't' else 'm, k'})>,"
        f"affine_map<(m, n, k) -> ({'n, k' if layout[1] == 't' else 'k, n'})>,"
        "affine_map<(m, n, k) -> (m, n)>]"
    )
    cast = "{cast = #linalg.type_fn<cast_unsigned>}" if dtype == "u8" else ""
    body = f"""
    %zero = arith.constant {zero} : {wide}
    %empty = tensor.empty() : {out}
    %fill = linalg.fill ins(%zero : {wide}) outs(%empty : {out}) -> {out}
    %r = linalg.matmul {maps} {cast} ins(%a0, %a1 : {left}, {right}) outs(%fill : {out}) -> {out}"""
    return function([left, right], [out], body, ["%r"])


def integers(shape: tuple[int, int], dtype: str, seed: int) -> Array:
    bounds = np.iinfo(NUMPY[dtype])
    found = np.random.default_rng(seed).integers(bounds.min, bounds.max + 1, shape)
    return found.astype(NUMPY[dtype])


def floats(shape: tuple[int, int], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def multiplied(left: Array, right: Array, dtype: str, layout: str, target: Target) -> Array:
    """Return what compiled code, between guard pages, makes of the two factors."""
    stored = [
        np.ascontiguousarray(x.T if t == "t" else x) for x, t in zip((left, right), layout, strict=True)
    ]
    (m, k), n = left.shape, right.shape[1]
    out: Array = np.full((m, n), 7, np.float32 if dtype == "bf16" else np.int32)
    run(product(m, n, k, dtype, layout), stored, [out], target)
    return out


@needs_integers
@SHAPED
@LAID_OUT
def test_integers_are_exact(shape: tuple[int, int, int], layout: str) -> None:
    m, n, k = shape
    for dtype in ("i8", "u8", "i16"):
        left, right = integers((m, k), dtype, 1), integers((k, n), dtype, 2)
        exact = left.astype(np.int32) @ right.astype(np.int32)  # wraps around, as sums of i16 may
        for target in (DOTS, SMALL):
            np.testing.assert_array_equal(multiplied(left, right, dtype, layout, target), exact)


@needs_integers
def test_extreme_bytes_do_not_saturate() -> None:
    for low, high in ((-128, -128), (-128, 127), (127, 127)):
        left, right = np.full((40, 1000), low, np.int8), np.full((1000, 20), high, np.int8)
        found = multiplied(left, right, "i8", "nn", DOTS)
        np.testing.assert_array_equal(found, np.full((40, 20), 1000 * low * high))


@needs_bf16
@SHAPED
@LAID_OUT
def test_sums_are_within_the_bound(shape: tuple[int, int, int], layout: str) -> None:
    m, n, k = shape
    left, right = floats((m, k), 1), floats((k, n), 2)
    wide = [factor.astype(np.float64) for factor in (left, right)]
    error = roundings(k) * 2**-24 * (np.abs(wide[0]) @ np.abs(wide[1]))
    for target in (DOTS, SMALL):
        found = multiplied(left, right, "bf16", layout, target)
        assert np.all(np.abs(found - wide[0] @ wide[1]) <= error)


@needs_bf16
@LAID_OUT
def test_subnormal_factors_change_no_other_result(layout: str) -> None:
    """A row or column with a subnormal number has all be computed by conversion: to the same bits."""
    left, right = floats((70, 301), 1), floats((301, 50), 2)
    expected = multiplied(left, right, "bf16", layout, DOTS)
    left[69, 300] = right[0, 49] = 1e-39
    found = multiplied(left, right, "bf16", layout, DOTS)
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
    np.testing.assert_array_equal(multiplied(left, right, "bf16", layout, target), expected)


@needs_bf16
def test_what_cancels_is_not_flushed() -> None:
    """Factors are normal, and so are products; their difference is not."""
    left, right = (np.zeros((32, 16), ml_dtypes.bfloat16), np.zeros((16, 16), ml_dtypes.bfloat16))
    left[:, 0], left[:, 1] = 2.0**-60 * (1 + 2**-7), -(2.0**-60)
    right[:2] = 2.0**-64
    found = multiplied(left, right, "bf16", "nn", DOTS)
    np.testing.assert_array_equal(found, np.full((32, 16), 2.0**-131, np.float32))


@needs_bf16
@LAID_OUT
def test_infinities_and_nan(layout: str) -> None:
    left, right = floats((40, 33), 1), floats((33, 40), 2)
    left[3, 32], left[5, 1], right[0, 7] = np.inf, np.nan, -np.inf
    left[9, 0] = 0
    with np.errstate(invalid="ignore"):
        expected = left.astype(np.float32) @ right.astype(np.float32)
    found = multiplied(left, right, "bf16", layout, DOTS)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found) * np.sign(found), np.isinf(expected) * np.sign(expected))


@needs_bf16
@needs_integers
@CACHES
@pytest.mark.parametrize("element", ["bf16", "i8"])
def test_batches(element: str, target: Target) -> None:
    left, right, out = (3, 35, 67), (3, 67, 21), (3, 35, 21)
    wide, zero = ("f32", "0.0") if element == "bf16" else ("i32", "0")
    types = [tensor_type(left, element), tensor_type(right, element), tensor_type(out, wide)]
    body = f"""
    %zero = arith.constant {zero} : {wide}
    %empty = tensor.empty() : {types[2]}
    %fill = linalg.fill ins(%zero : {wide}) outs(%empty : {types[2]}) -> {types[2]}
    %r = linalg.batch_matmul ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%fill : {types[2]}) -> {types[2]}"""
    made = [np.random.default_rng(seed).integers(-100, 100, shape) for seed, shape in ((1, left), (2, right))]
    factors = [each.astype(NUMPY[element]) for each in made]
    result = np.full(out, 7, np.float32 if element == "bf16" else np.int32)
    run(function(types[:2], types[2:], body, ["%r"]), factors, [result], target)
    np.testing.assert_array_equal(result, made[0] @ made[1])  # whole numbers this small are exact


@pytest.mark.parametrize("name", [name for name in TARGETS if runs_here(named_target(name))])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_targets_without_instructions_convert(dtype: str, name: str) -> None:
    """Code is made for each target, with factors large enough to be packed, edges, and few rows."""
    machine = named_target(name)
    for (m, n, k), layout in (((129, 130, 131), "nn"), ((129, 70, 131), "nt"), ((5, 70, 33), "nn")):
        with new_context(), ir.Location.unknown():
            text = product(m, n, k, "bf16", layout).replace("bf16", dtype)
            module = ir.Module.parse(text)
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
        stored = [left, np.ascontiguousarray(right.T) if layout[1] == "t" else right]
        guarded.call(native, stored, [out])
        exact = left.astype(np.float64) @ right.astype(np.float64)
        np.testing.assert_array_equal(out, exact)  # whole numbers, and one product of a subnormal one


def test_instructions_are_those_of_the_target() -> None:
    for dtype, name in (("bf16", "dpbf16ps"), ("i8", "vpdpbusd"), ("u8", "vpdpwssd"), ("i16", "vpdpwssd")):
        text = product(64, 64, 64, dtype)
        assert name in lowered(text, DOTS)
        assert name not in lowered(text, PLAIN)
        assert name not in lowered(product(7, 64, 64, dtype), DOTS), "few rows do not pay for packing"
