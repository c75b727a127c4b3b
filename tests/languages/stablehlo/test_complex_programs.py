"""Fourier transforms of any length, the parts of complex numbers, and functions of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.attributes import Array

_SPELLED = {"float32": "f32", "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>"}


def run(text: str, argument: Array, result: Array) -> Array:
    types = [f"tensor<{'x'.join(map(str, (*e.shape, _SPELLED[e.dtype.name])))}>" for e in (argument, result)]
    module = mind_mlir.from_stablehlo(
        f"func.func @main(%x: {types[0]}) -> {types[1]} {{\n  %0 = {text} : ({types[0]}) -> {types[1]}\n"
        f"  return %0 : {types[1]}\n}}"
    )
    (found,) = mind_mlir.compile(module)(argument)
    (again,) = mind_mlir.interpret(module, {"arg0": argument})
    np.testing.assert_allclose(found, again, rtol=1e-3, atol=1e-4)
    assert (found.dtype, found.shape) == (result.dtype, result.shape)
    return np.asarray(found)


def random(shape: tuple[int, ...], dtype: str) -> Array:
    rng = np.random.default_rng(0)
    found = rng.standard_normal(shape)
    if dtype.startswith("c"):
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


@pytest.mark.parametrize("length", [1, 2, 15, 64, 67, 100, 257, 1024, 4489])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_transforms_of_any_length(kind: str, length: int) -> None:
    """Short ones and primes, products of small primes, a long prime, the square of one that is not short."""
    double = length % 2 == 1
    dtype = "float64" if double else "float32"
    part = "complex128" if double else "complex64"
    wide = random((2, length // 2 + 1 if kind == "IRFFT" else length), dtype if kind == "RFFT" else part)
    functions: dict[str, Callable[..., Any]] = {
        "FFT": np.fft.fft,
        "IFFT": np.fft.ifft,
        "RFFT": np.fft.rfft,
        "IRFFT": np.fft.irfft,
    }
    expected = functions[kind](wide, length)
    expected = expected.astype(dtype if kind == "IRFFT" else part)
    found = run(
        f'"stablehlo.fft"(%x) {{fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>}}',
        wide,
        expected,
    )
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=scale * (1e-14 if double else 1e-6))


@pytest.mark.parametrize("kind", ["FFT", "RFFT", "IRFFT"])
def test_transforms_of_three_dimensions(kind: str) -> None:
    x = random(
        (2, 3, 4, 6) if kind != "IRFFT" else (2, 3, 4, 4), "float32" if kind == "RFFT" else "complex64"
    )
    axes = (1, 2, 3)
    function: Any = {"FFT": np.fft.fftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind]
    expected = function(x, axes=axes).astype("float32" if kind == "IRFFT" else "complex64")
    lengths = "array<i64: 3, 4, 6>"
    found = run(
        f'"stablehlo.fft"(%x) {{fft_type = #stablehlo<fft_type {kind}>, fft_length = {lengths}}}', x, expected
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_gradient_goes_through_a_transform_whose_parts_are_taken() -> None:
    module = mind_mlir.from_stablehlo("""
func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.multiply %1, %1 : tensor<5xf32>
  %3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}""")
    x = random((8,), "float32")
    *_, gradient = mind_mlir.compile(mind_mlir.differentiate(module, wrt=["arg0"]).module)(x)
    cosines = np.cos(2 * np.pi / 8 * np.outer(np.arange(5), np.arange(8)))
    np.testing.assert_allclose(gradient, 2 * cosines.T @ (cosines @ x), atol=1e-5)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "cosine": np.cos,
    "exponential_minus_one": np.expm1,
    "imag": np.imag,
    "log_plus_one": np.log1p,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "real": np.real,
    "sign": np.sign,
    "sine": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions_of_complex_numbers(name: str) -> None:
    z = np.concatenate([random((40,), "complex128"), [0, 1, -1, 2j, -2j, 1e-9 + 1e-9j]])
    with np.errstate(divide="ignore"):
        expected = np.asarray(_FUNCTIONS[name](z))
    found = run(f'"stablehlo.{name}"(%x)', z, expected)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-11, atol=1e-12)


def test_absolute_values_do_not_overflow_on_the_way() -> None:
    z = np.array(
        [3e38 + 0j, 1e30 + 1e30j, 1e-30 + 1e-30j, 0, np.inf + 1j, complex(np.nan, np.inf)], "complex64"
    )
    np.testing.assert_allclose(run('"stablehlo.abs"(%x)', z, np.abs(z)), np.abs(z), rtol=1e-6)
