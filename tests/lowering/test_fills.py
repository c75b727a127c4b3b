"""Copies, and padded tensors: their margins and their insides as vectors."""

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


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("shape", [(2, 3, 3000), (61, 40, 67)], ids=str)
def test_padding_has_no_loops_over_scalars(shape: tuple[int, ...], dtype: str) -> None:
    text = str(lowered(padded(shape, dtype)))
    assert SCALAR_ATTRIBUTE not in text
    assert "memcpy" not in text


def copied(extent: int, dtype: str) -> str:
    """A function that returns what it is given."""
    return f"""
    func.func @main(%a: tensor<{extent}x{dtype}>) -> tensor<{extent}x{dtype}> {{
      return %a : tensor<{extent}x{dtype}>
    }}"""


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("extent", [0, 1, 7, 256, 257, 511, 1031, 2048, 2049, 65_537, 200_003])
def test_copies_are_what_they_copy(extent: int, dtype: str) -> None:
    numpy_dtype = VALUES[dtype][1]
    a: np.ndarray[Any, Any] = (
        np.random.default_rng(5).integers(0, 2 if dtype == "i1" else 100, extent).astype(numpy_dtype)
    )
    (found,) = run(copied(extent, dtype), [a], (a.shape, numpy_dtype))
    assert found.tobytes() == a.tobytes()


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize(("first", "count", "columns"), [(3, 5, 1031), (0, 8, 1031), (2, 90, 1009)])
def test_rows_are_copied_from_where_they_lie(first: int, count: int, columns: int, dtype: str) -> None:
    numpy_dtype = VALUES[dtype][1]
    a: np.ndarray[Any, Any] = np.random.default_rng(6).integers(0, 2, (97, columns)).astype(numpy_dtype)
    given, wanted = f"tensor<97x{columns}x{dtype}>", f"tensor<{count}x{columns}x{dtype}>"
    text = f"""
    func.func @main(%a: {given}) -> {wanted} {{
      %r = tensor.extract_slice %a[{first}, 0] [{count}, {columns}] [1, 1] : {given} to {wanted}
      return %r : {wanted}
    }}"""
    (found,) = run(text, [a], ((count, columns), numpy_dtype))
    assert found.tobytes() == a[first : first + count].tobytes()


@pytest.mark.parametrize("dtype", VALUES)
def test_long_copies_are_vectors_and_short_ones_are_left_to_llvm(dtype: str) -> None:
    text = lowered(copied(5003, dtype))
    assert "memcpy" not in text
    assert SCALAR_ATTRIBUTE not in text
    assert "llvm.intr.memcpy" in lowered(copied(16, dtype))
