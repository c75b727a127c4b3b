"""Truth values in memory: what only moves and joins them stays bytes, and what computes them does not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from guarded import call_executable

import mind_mlir


def compiled(*lines: str) -> mind_mlir.Executable:
    executable: mind_mlir.Executable = mind_mlir.compile(mind_mlir.parse("\n".join([*lines, ""])))
    return executable


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (33, 47), (70, 16)])
def test_a_transposition_moves_bytes(shape: tuple[int, int]) -> None:
    rows, columns = shape
    program = compiled(
        f'%0 = Input {{name="x"}} : tensor<i1[{rows}, {columns}]>',
        f"%1 = Transpose (%0) {{permutation=[1, 0]}} : tensor<i1[{columns}, {rows}]>",
        "outputs: %1",
    )
    assert not re.search(r"shufflevector .*xi1>|trunc .*xi1>", program.as_text("llvm"))
    x = np.random.default_rng(0).integers(0, 2, shape).astype(np.bool_)
    (found,) = call_executable(program, {"x": x})
    np.testing.assert_array_equal(found, x.T)


def test_what_is_joined_with_a_comparison_is_a_mask() -> None:
    program = compiled(
        '%0 = Input {name="x"} : tensor<i1[131]>',
        '%1 = Input {name="y"} : tensor<i1[131]>',
        '%2 = Input {name="z"} : tensor<i32[131]>',
        "%3 = Compare (%2, %2) {op=NotEqual} : tensor<i1[131]>",
        "%4 = Or (%0, %1) : tensor<i1[131]>",
        "%5 = Or (%4, %3) : tensor<i1[131]>",
        "%6 = Xor (%0, %1) : tensor<i1[131]>",
        "outputs: %4, %5, %6",
    )
    rng = np.random.default_rng(1)
    x, y = (rng.integers(0, 2, 131).astype(np.bool_) for _ in range(2))
    either, both, differ = call_executable(program, {"x": x, "y": y, "z": np.arange(131, dtype=np.int32)})
    np.testing.assert_array_equal(either, x | y)
    np.testing.assert_array_equal(both, x | y)
    np.testing.assert_array_equal(differ, x ^ y)


def test_a_short_row_of_one_truth_value_is_bytes() -> None:
    program = compiled(
        '%0 = Input {name="x"} : tensor<i1[7, 1]>',
        "%1 = BroadcastTo (%0) {result_shape=[2, 7, 5]} : tensor<i1[2, 7, 5]>",
        "outputs: %1",
    )
    x = np.array([[True], [False], [False], [True], [True], [False], [True]])
    (found,) = call_executable(program, {"x": x})
    np.testing.assert_array_equal(found, np.broadcast_to(x, (2, 7, 5)))


@pytest.mark.parametrize("dtype", ["i32", "f64"])
def test_numbers_are_made_of_the_bytes(dtype: str) -> None:
    program = compiled(
        '%0 = Input {name="x"} : tensor<i1[131]>',
        f"%1 = Cast (%0) {{dtype={dtype}}} : tensor<{dtype}[131]>",
        f"%2 = Sum (%1) {{axes=[], keepdims=false}} : tensor<{dtype}[]>",
        "outputs: %1, %2",
    )
    assert not re.search(r"trunc .*xi1>", program.as_text("llvm"))
    x = np.random.default_rng(2).integers(0, 2, 131).astype(np.bool_)
    numbers, total = call_executable(program, {"x": x})
    np.testing.assert_array_equal(numbers, x.astype(numbers.dtype))
    assert total == x.sum()
