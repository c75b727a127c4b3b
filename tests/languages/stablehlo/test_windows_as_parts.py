"""Gathers and scatters whose windows are one part of the operand are slices and updates; results stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir.ir.analysis.call_graph import operations_of

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

X = np.arange(30, dtype=np.float32).reshape(5, 6)
_XLA = "attributes {mhlo.num_partitions = 1 : i32}"


def opcodes(module: mind_mlir.Module) -> set[str]:
    return {operation.opcode for each in module.functions for operation in operations_of(each.blocks)}


def run(text: str, *arguments: Array) -> tuple[Array, set[str]]:
    module = mind_mlir.from_stablehlo(text)
    (found,) = mind_mlir.compile(module)(*arguments)
    given = {f"arg{number}": each for number, each in enumerate(arguments)}
    np.testing.assert_array_equal(mind_mlir.interpret(module, given)[0], found)
    return found, opcodes(module)


def scatter(indices: str, updates: str, numbers: str, body: str, *, xla: bool = True) -> str:
    """Return a program that scatters ``%u`` to ``%x``; ``indices`` is what gives ``%i``, with its type."""
    given, type_ = indices.split(" : ")
    argument = "" if given else f", %i: {type_}"
    constant = f"%i = stablehlo.constant {given} : {type_}" if given else ""
    return f"""
module @m {_XLA if xla else ""} {{
  func.func public @main(%x: tensor<5x6xf32>, %u: {updates}{argument}) -> tensor<5x6xf32> {{
    {constant}
    %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return {"%c" if body == "add" else "%b"} : tensor<f32>
    }}) : (tensor<5x6xf32>, {type_}, {updates}) -> tensor<5x6xf32>
    return %0 : tensor<5x6xf32>
  }}
}}"""


_ROWS = "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0]"
_ROW = "update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"


@pytest.mark.parametrize("body", ["add", "set"])
def test_one_window_at_a_known_place_is_an_update(body: str) -> None:
    update = X[:3] + 100
    found, used = run(scatter("dense<1> : tensor<1xi32>", "tensor<3x6xf32>", _ROWS, body), X, update)
    expected = X.copy()
    expected[1:4] = update + expected[1:4] if body == "add" else update
    np.testing.assert_array_equal(found, expected)
    assert "DynamicUpdateSlice" in used
    assert "ScatterWindows" not in used


@pytest.mark.parametrize("place", [-7, -1, 0, 2, 4, 5])
@pytest.mark.parametrize("body", ["add", "set"])
def test_one_row_somewhere_is_an_update_unless_it_is_outside(place: int, body: str) -> None:
    update, at = X[0] + 100, np.array([place], np.int32)
    found, used = run(scatter(" : tensor<1xi32>", "tensor<6xf32>", _ROW, body, xla=False), X, update, at)
    expected = X.copy()
    if 0 <= place < 5:
        expected[place] = update + expected[place] if body == "add" else update
    np.testing.assert_array_equal(found, expected)
    assert "DynamicUpdateSlice" in used
    assert "ScatterWindows" not in used


@pytest.mark.parametrize("place", [-1, 2, 3])
@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_a_window_that_is_partly_outside(place: int, *, xla: bool, known: bool) -> None:
    """StableHLO writes what of it is inside, and XLA nothing."""
    update = X[:3] + 100
    indices = f"dense<{place}> : tensor<1xi32>" if known else " : tensor<1xi32>"
    at = [] if known else [np.array([place], np.int32)]
    found, _ = run(scatter(indices, "tensor<3x6xf32>", _ROWS, "set", xla=xla), X, update, *at)
    expected = X.copy()
    for row in range(3):
        if 0 <= place + row < 5 and (not xla or place == 2):
            expected[place + row] = update[row]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "indices", ["[[0], [2], [4]]", "[[1], [2], [3]]", "[[0], [1], [4]]", "[[3], [2], [1]]"]
)
@pytest.mark.parametrize("body", ["add", "set"])
def test_windows_at_equal_distances_are_a_part(indices: str, body: str) -> None:
    numbers = _ROW.replace("window_dims = [0],", "window_dims = [1],", 1) + ", index_vector_dim = 1"
    update = X[:3] + 100
    found, used = run(
        scatter(f"dense<{indices}> : tensor<3x1xi32>", "tensor<3x6xf32>", numbers, body), X, update
    )
    expected = X.copy()
    for row, (place,) in enumerate(eval(indices)):  # noqa: S307 -- a literal of this file
        expected[place] = update[row] + expected[place] if body == "add" else update[row]
    np.testing.assert_array_equal(found, expected)
    assert ("ScatterWindows" in used) == (indices in ("[[0], [1], [4]]", "[[3], [2], [1]]"))


@pytest.mark.parametrize(
    "indices", ["[[0, 1], [2, 1], [4, 1]]", "[[1, 9], [2, 9], [3, 9]]", "[[0, 0], [1, 1], [2, 2]]"]
)
def test_gathers_of_equal_distances_are_slices(indices: str) -> None:
    text = f"""
func.func @main(%x: tensor<5x6xf32>) -> tensor<3x2xf32> {{
  %i = stablehlo.constant dense<{indices}> : tensor<3x2xi32>
  %0 = "stablehlo.gather"(%x, %i) <{{
    dimension_numbers = #stablehlo.gather<
      offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 2>}}> : (tensor<5x6xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}}"""
    found, used = run(text, X)
    places = eval(indices)  # noqa: S307 -- a literal of this file
    expected = [X[row, min(column, 4) : min(column, 4) + 2] for row, column in places]
    np.testing.assert_array_equal(found, expected)
    assert ("GatherWindows" in used) == (indices == "[[0, 0], [1, 1], [2, 2]]")


@pytest.mark.parametrize("place", [-3, 0, 2, 9])
def test_one_window_of_a_gather_is_a_slice(place: int) -> None:
    text = """
func.func @main(%x: tensor<5x6xf32>, %i: tensor<1xi64>) -> tensor<2x5xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{
    dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>,
    slice_sizes = array<i64: 5, 2>}> : (tensor<5x6xf32>, tensor<1xi64>) -> tensor<5x2xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<5x2xf32>) -> tensor<2x5xf32>
  return %1 : tensor<2x5xf32>
}"""
    found, used = run(text, X, np.array([place]))
    first = min(max(place, 0), 4)
    np.testing.assert_array_equal(found, X[:, first : first + 2].T)
    assert "DynamicSlice" in used
    assert "GatherWindows" not in used


def test_one_window_of_a_gather_at_a_known_place_is_a_slice() -> None:
    text = """
func.func @main(%x: tensor<5x6xf32>) -> tensor<5x2xf32> {
  %i = stablehlo.constant dense<9> : tensor<1xi64>
  %0 = "stablehlo.gather"(%x, %i) <{
    dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>,
    slice_sizes = array<i64: 5, 2>}> : (tensor<5x6xf32>, tensor<1xi64>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}"""
    found, used = run(text, X)
    np.testing.assert_array_equal(found, X[:, 4:])
    assert not used & {"DynamicSlice", "GatherWindows"}


def test_several_tensors_are_scattered_at_once() -> None:
    text = """
func.func @main(%x: tensor<5xf32>, %n: tensor<5xi32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>,
    %m: tensor<3xi32>) -> (tensor<5xf32>, tensor<5xi32>) {
  %0:2 = "stablehlo.scatter"(%x, %n, %i, %u, %m) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %sum = stablehlo.add %a, %c : tensor<f32>
    %most = stablehlo.maximum %d, %b : tensor<i32>
    stablehlo.return %sum, %most : tensor<f32>, tensor<i32>
  }) : (tensor<5xf32>, tensor<5xi32>, tensor<3x1xi32>, tensor<3xf32>, tensor<3xi32>)
    -> (tensor<5xf32>, tensor<5xi32>)
  return %0#0, %0#1 : tensor<5xf32>, tensor<5xi32>
}"""
    at = np.array([[3], [0], [3]], np.int32)
    given = X[0, :5], np.zeros(5, np.int32), at, X[1, :3], np.array([4, -1, 7], np.int32)
    sums, most = mind_mlir.compile(mind_mlir.from_stablehlo(text))(*given)
    expected = X[0, :5].copy()
    np.add.at(expected, at[:, 0], X[1, :3])
    np.testing.assert_array_equal(sums, expected)
    np.testing.assert_array_equal(most, [0, 0, 0, 7, 0])
