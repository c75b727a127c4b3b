"""Conversions of floats narrower than f32: all of their numbers, and those of f32 and f64 that decide."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import guarded
import ml_dtypes
import numpy as np
import pytest
from native_code import imports, native_function, put_on_memory

from mind_mlir.lowering.schedule.driver import schedule
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.target import TARGETS, named_target, runs_here

if TYPE_CHECKING:
    from mind_mlir.runtime.native import NativeFunction

Array = np.ndarray[Any, np.dtype[Any]]

NUMPY: dict[str, Any] = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
NARROW = ("f8E4M3FN", "f8E5M2", "bf16", "f16")
WIDE = ("f32", "f64")
RUNNABLE = [name for name in TARGETS if runs_here(named_target(name))]
#: Scalars, which LLVM makes vectors of or not, and vectors of ours.
CODE = ("scalars", "vectors")

SOURCE = """
func.func @main(%a: tensor<{extent}x{source}>) -> tensor<{extent}x{target}> {{
  %e = tensor.empty() : tensor<{extent}x{target}>
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}}
      ins(%a : tensor<{extent}x{source}>) outs(%e : tensor<{extent}x{target}>) {{
  ^bb0(%x: {source}, %o: {target}):
    {body}
    linalg.yield %y : {target}
  }} -> tensor<{extent}x{target}>
  return %r : tensor<{extent}x{target}>
}}"""


def bits_of(array: Array) -> Array:
    """Return the bits of each element as an unsigned integer."""
    return array.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize])


def width(name: str) -> int:
    """Return the width of a format in bits."""
    return 8 * int(np.dtype(NUMPY[name]).itemsize)


def every(name: str) -> Array:
    """Return all numbers of a narrow format, in the order of their bits."""
    unsigned = np.uint8 if width(name) == 8 else np.uint16
    numbers: Array = np.arange(1 << width(name), dtype=unsigned).view(NUMPY[name])
    return numbers


@functools.cache
def finite(name: str) -> Array:
    """Return the finite numbers of a narrow format that are not negative, ascending, as f64."""
    with np.errstate(invalid="ignore"):
        values = every(name)[: 1 << (width(name) - 1)].astype(np.float64)
    return values[np.isfinite(values)]


@functools.cache
def halfway(name: str) -> Array:
    """Return the points halfway between these, and behind the last one, which f64 and f32 hold exactly."""
    values = finite(name)
    following = 2 * values[-1] - values[-2]  # what would follow, were the format not at its end
    points: Array = (values + np.append(values[1:], following)) / 2
    return points


def compiled(
    extent: int, source: str, target: str, machine: str, code: str, body: str | None = None
) -> NativeFunction:
    """Compile a conversion of ``extent`` numbers, or ``body`` from ``%x`` to ``%y``."""
    op = "extf" if width(target) > width(source) else "truncf"
    body = body or f"%y = arith.{op} %x : {source} to {target}"
    with new_context():
        module = ir.Module.parse(SOURCE.format(extent=extent, source=source, target=target, body=body))
        if code == "vectors":
            schedule(module, named_target(machine))
        put_on_memory(module, verify=True)
        to_llvm(module, named_target(machine), verify=True)
        return native_function(module, opt_level=0 if code == "scalars" else 3)


def convert(array: Array, source: str, target: str, machine: str, code: str) -> Array:
    """Return ``array`` as numbers of ``target``, as compiled code converts them."""
    result = np.empty(len(array), NUMPY[target])
    guarded.call(compiled(len(array), source, target, machine, code), [array], [result])
    return result


def nearest(wide: Array, name: str) -> Array:
    """Return the numbers of a narrow format nearest to ``wide``, found among all that it has.

    They are compared in f64, which holds each point halfway between two of them, and f64 itself, exactly.
    """
    points, count = halfway(name), len(finite(name))
    with np.errstate(invalid="ignore"):
        wide = wide.astype(np.float64)
    magnitude = np.abs(wide)
    found = np.searchsorted(points, magnitude, side="left")
    found = found + (
        (points[np.minimum(found, count - 1)] == magnitude) & (found % 2 == 1)
    )  # ties go to even bits
    limit = (1 << (width(name) - 1)) - 1 if name == "f8E4M3FN" else count
    bits = np.where(found < count, found, limit)
    bits = np.where(np.isnan(wide), (1 << (width(name) - 1)) - 1, bits)
    bits = bits | np.signbit(wide).astype(np.int64) << (width(name) - 1)
    numbers: Array = bits.astype(bits_of(every(name)).dtype).view(NUMPY[name])
    return numbers


@functools.cache
def about_to_round(source: str, name: str) -> Array:
    """Return the numbers of a wide format at which rounding to a narrow one is decided, and random ones."""
    points = np.concatenate([finite(name), halfway(name)])
    dtype = NUMPY[source]
    exact = points.astype(dtype)
    assert np.array_equal(exact.astype(np.float64), points)
    up, down = np.nextafter(exact, dtype(np.inf)), np.nextafter(exact, dtype(-np.inf))
    rng = np.random.default_rng(20261122)
    anything = rng.integers(0, 1 << width(source), 1 << 18, dtype=bits_of(exact).dtype, endpoint=False)
    # Random bits are mostly far out of range: others have the exponents that the format has.
    scaled = rng.standard_normal(1 << 18) * 2.0 ** rng.uniform(-30, 18, 1 << 18)
    special = np.array([np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal, 0], dtype)
    positive = np.concatenate([exact, up, down, special])
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([positive, -positive, anything.view(dtype), scaled.astype(dtype)])


def assert_same(actual: Array, expected: Array) -> None:
    """Check that all numbers are the same bits, and NaNs quiet ones of the same sign."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), nan)
    np.testing.assert_array_equal(bits_of(actual)[~nan], bits_of(expected)[~nan])
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


def quiet_bit(name: str) -> int:
    return {"bf16": 0x40, "f16": 0x200, "f8E5M2": 0x02, "f8E4M3FN": 0x7F}[name]


@pytest.mark.parametrize("machine", RUNNABLE)
@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("narrow", NARROW)
def test_every_number_widens_exactly(narrow: str, wide: str, code: str, machine: str) -> None:
    numbers = every(narrow)
    with np.errstate(invalid="ignore"):
        expected = numbers.astype(NUMPY[wide])
    assert_same(convert(numbers, narrow, wide, machine, code), expected)


@pytest.mark.parametrize("machine", RUNNABLE)
@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("narrow", NARROW)
def test_narrowing_rounds_once_to_nearest_even(narrow: str, wide: str, code: str, machine: str) -> None:
    numbers = about_to_round(wide, narrow)
    actual = convert(numbers, wide, narrow, machine, code)
    assert_same(actual, nearest(numbers, narrow))
    nan = bits_of(actual)[np.isnan(actual)]
    assert np.all(nan & quiet_bit(narrow) == quiet_bit(narrow))


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(NARROW, 2)))
def test_narrow_formats_become_each_other(source: str, target: str, code: str) -> None:
    numbers = every(source)
    with np.errstate(invalid="ignore"):
        wide = numbers.astype(np.float32)
    body = f"%w = arith.extf %x : {source} to f32\n %y = arith.truncf %w : f32 to {target}"
    result = np.empty(len(numbers), NUMPY[target])
    guarded.call(compiled(len(numbers), source, target, "native", code, body), [numbers], [result])
    assert_same(result, nearest(wide, target))


@pytest.mark.parametrize("narrow", NARROW)
def test_the_reference_is_what_ml_dtypes_does(narrow: str) -> None:
    numbers = about_to_round("f32", narrow)
    with np.errstate(all="ignore"):
        expected = numbers.astype(NUMPY[narrow])
    assert_same(nearest(numbers, narrow), expected)


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("extent", [1, 4096])
@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("narrow", NARROW)
def test_nothing_is_called(narrow: str, wide: str, extent: int, machine: str) -> None:
    for source, target in ((narrow, wide), (wide, narrow)):
        for code in CODE:
            native = compiled(extent, source, target, machine, code)
            assert not any(name.startswith("__") for name in imports(native))


@pytest.mark.parametrize("name", NARROW)
def test_arithmetic_on_narrow_floats_is_done_in_f32(name: str) -> None:
    numbers = every(name)
    result = np.empty(len(numbers), NUMPY[name])
    body = f"%y = arith.mulf %x, %x : {name}"
    guarded.call(compiled(len(numbers), name, name, "native", "scalars", body), [numbers], [result])
    with np.errstate(all="ignore"):
        wide = numbers.astype(np.float32)
        expected = (wide * wide).astype(NUMPY[name])
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), nan)
    np.testing.assert_array_equal(bits_of(result)[~nan], bits_of(expected)[~nan])


PRODUCT = """
func.func @main(%a: tensor<256x256x{source}>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> {left}>, affine_map<(i, j, k) -> {right}>,
                                        affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : tensor<256x256x{source}>, tensor<256x256xf32>) outs(%f : tensor<256x256xf32>) {{
  ^bb0(%x: {source}, %y: f32, %sum: f32):
    %w = arith.extf %x : {source} to f32
    %p = arith.mulf %w, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }} -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}}"""


@pytest.mark.parametrize("machine", RUNNABLE)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("source", ["bf16", "f16"])
def test_kernels_of_products_widen_exactly(source: str, side: str, machine: str) -> None:
    """A product with the identity is the matrix, which has all finite numbers of the format."""
    numbers = every(source).reshape(256, 256)
    with np.errstate(invalid="ignore"):
        wide = numbers.astype(np.float32)
    numbers = np.where(np.isfinite(wide), numbers, NUMPY[source](1))
    left, right = ("(i, k)", "(k, j)") if side == "left" else ("(k, j)", "(i, k)")
    text = PRODUCT.format(source=source, left=left, right=right)
    result = np.empty((256, 256), np.float32)
    with new_context():
        module = ir.Module.parse(text)
        schedule(module, named_target(machine))
        put_on_memory(module, verify=True)
        to_llvm(module, named_target(machine), verify=True)
        native = native_function(module)
    guarded.call(native, [numbers, np.eye(256, dtype=np.float32)], [result])
    np.testing.assert_array_equal(result, np.where(np.isfinite(wide), wide, 1))
