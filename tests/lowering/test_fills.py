"""Padded tensors: their margins as vectors, their insides as runs of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_harness import lowered, run

from mind_mlir.lowering.llvm_hints import SCALAR_ATTRIBUTE

#: Shapes with less than a vector, with a remainder, with rows of many vectors, and large ones in chunks.
SHAPES = [(1,), (3, 5), (2, 3, 19), (4, 6, 130), (61, 40, 67), (5, 0, 3)]
VALUES = {
    "f32": ("7.5", np.float32),
    "f64": ("-0.0", np.float64),
    "i8": ("-3", np.int8),
    "i1": ("true", np.bool_),
}


def padded(shape: tuple[int, ...], dtype: str) -> str:
    """A function that puts 1 row before and 2 behind, in each dimension but the last of several."""
    low = [1] * (len(shape) - 1) + [0 if len(shape) > 1 else 1]
    high = [2 * each for each in low]
    result = [extent + 3 * each for extent, each in zip(shape, low, strict=True)]
    given, wanted = ("x".join([*map(str, each), dtype]) for each in (shape, result))
    places = ", ".join(f"%i{axis}: index" for axis in range(len(shape)))
    return f"""
    func.func @main(%a: tensor<{given}>) -> tensor<{wanted}> {{
      %c = arith.constant {VALUES[dtype][0]}{"" if dtype == "i1" else f" : {dtype}"}
      %r = tensor.pad %a low{low} high{high} {{
      ^bb0({places}):
        tensor.yield %c : {dtype}
      }} : tensor<{given}> to tensor<{wanted}>
      return %r : tensor<{wanted}>
    }}"""


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_padded_tensors_are_those_of_numpy(shape: tuple[int, ...], dtype: str) -> None:
    text, numpy_dtype = VALUES[dtype]
    value = True if dtype == "i1" else numpy_dtype(float(text))
    a: np.ndarray[Any, Any] = (
        np.random.default_rng(3).integers(0, 2 if dtype == "i1" else 100, shape).astype(numpy_dtype)
    )
    margins = [(1, 2) if axis < len(shape) - 1 or len(shape) == 1 else (0, 0) for axis in range(len(shape))]
    expected = np.pad(a, margins, constant_values=value)
    (found,) = run(padded(shape, dtype), [a], (expected.shape, numpy_dtype))
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(2, 3, 64), (61, 40, 67)], ids=str)
def test_padding_has_no_loops_over_scalars(shape: tuple[int, ...]) -> None:
    text = str(lowered(padded(shape, "f32")))
    assert "llvm.intr.memcpy" in text
    assert SCALAR_ATTRIBUTE not in text
    assert SCALAR_ATTRIBUTE in str(lowered(padded(shape, "i1")))  # a vector of i1 is packed, a buffer is not
