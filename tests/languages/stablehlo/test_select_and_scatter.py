"""What windows choose goes back by sums, products, and greatest and least numbers."""

from __future__ import annotations

import numpy as np
import pytest

import mind_mlir

FUNCTIONS = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "multiply": np.multiply}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_windows_that_overlap(name: str) -> None:
    text = f"""
func.func @main(%x: tensor<4x6xf32>, %s: tensor<2x2xf32>, %i: tensor<f32>) -> tensor<4x6xf32> {{
  %0 = "stablehlo.select_and_scatter"(%x, %s, %i) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.{name} %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }}) {{window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 1, 3>}}
    : (tensor<4x6xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}"""
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    source = np.array([[1, 2], [3, 4]], np.float32)
    expected = np.full((4, 6), 2, np.float32)
    for row, column in np.ndindex(2, 2):
        window = x[row : row + 3, 3 * column : 3 * column + 3]
        down, across = np.unravel_index(window.argmax(), window.shape)
        place = row + down, 3 * column + across
        expected[place] = FUNCTIONS[name](expected[place], source[row, column])
    module = mind_mlir.from_stablehlo(text)
    (found,) = mind_mlir.compile(module)(x, source, np.float32(2))
    np.testing.assert_array_equal(found, expected)
    (again,) = mind_mlir.interpret(module, {"arg0": x, "arg1": source, "arg2": np.float32(2)})
    np.testing.assert_array_equal(again, expected)
