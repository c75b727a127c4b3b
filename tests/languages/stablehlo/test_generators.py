"""Bits of XLA's generators, as jax gives them, and numbers read as others of another width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import UnsupportedError

STATE = np.array([1 | 2 << 32, 3 | 4 << 32], np.uint64)
THREEFRY = [1576285164, 2249660814, 740599976, 2425682526, 2436392515, 1497962777]
PHILOX = [512747620, 1298009047, 1267190206, 761827841, 1383286907, 1639995030]


def drawn(algorithm: str, shape: str, state: Any = STATE) -> tuple[Any, Any]:
    held, drawn = f"tensor<{len(state)}xui64>", f"tensor<{shape}>"
    text = f"""
func.func @main(%s: {held}) -> ({held}, {drawn}) {{
  %after, %bits = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({held}) -> ({held}, {drawn})
  return %after, %bits : {held}, {drawn}
}}"""
    after, bits = mind_mlir.interpret(mind_mlir.from_stablehlo(text), {"arg0": state})
    return after, bits


@pytest.mark.parametrize(
    ("algorithm", "words", "blocks"), [("THREE_FRY", THREEFRY, 3), ("DEFAULT", PHILOX, 2)]
)
def test_bits_are_those_of_xla(algorithm: str, words: list[int], blocks: int) -> None:
    after, bits = drawn(algorithm, "3x2xui32")
    np.testing.assert_array_equal(after, STATE + np.array([0, blocks], np.uint64))
    np.testing.assert_array_equal(bits.reshape(-1), words)
    np.testing.assert_array_equal(drawn(algorithm, "6xui8")[1], np.array(words, np.uint32).astype(np.uint8))
    wide = np.array(words, np.uint64)
    wide = wide[::2] | wide[1::2] << np.uint64(32)
    np.testing.assert_array_equal(drawn(algorithm, "2xui64")[1], wide[:2])


def test_a_counter_goes_on_in_its_upper_half() -> None:
    state = np.array([7, 2**64 - 1, 5], np.uint64)
    after, bits = drawn("PHILOX", "8xui32", state)
    np.testing.assert_array_equal(after, np.array([7, 1, 6], np.uint64))
    following = drawn("PHILOX", "4xui32", np.array([7, 0, 6], np.uint64))[1]
    np.testing.assert_array_equal(bits[4:], following)


def test_bits_as_narrower_and_wider_numbers() -> None:
    text = """
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3x4xui8>, tensor<2x3xf32>) {
  %0 = stablehlo.bitcast_convert %x : (tensor<2x3xf32>) -> tensor<2x3x4xui8>
  %1 = stablehlo.bitcast_convert %0 : (tensor<2x3x4xui8>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3x4xui8>, tensor<2x3xf32>
}"""
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    bits, same = mind_mlir.interpret(mind_mlir.from_stablehlo(text), {"arg0": x})
    np.testing.assert_array_equal(bits, x.view(np.uint8).reshape(2, 3, 4))
    np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize(("given", "made"), [("2x2xcomplex<f32>", "2xcomplex<f64>"), ("2x8xi1", "2xui8")])
def test_bits_that_are_not_read(given: str, made: str) -> None:
    text = f"""
func.func @main(%x: tensor<{given}>) -> tensor<{made}> {{
  %0 = stablehlo.bitcast_convert %x : (tensor<{given}>) -> tensor<{made}>
  return %0 : tensor<{made}>
}}"""
    with pytest.raises(UnsupportedError, match="bits of"):
        mind_mlir.from_stablehlo(text)
