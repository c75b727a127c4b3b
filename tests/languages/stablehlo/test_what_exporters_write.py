"""What exporters write around StableHLO: `arith`, shapes as values, tuples, tokens, data apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Sequence

X = np.arange(1, 25, dtype=np.float32).reshape(4, 6)
#: Programs, arguments and results.
CASES: dict[str, tuple[str, Sequence[Any], Sequence[Any]]] = {
    "constants of arith": (
        """
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<f32>) {
  %c = arith.constant dense<[1.0,2.0]> : tensor<2xf32>
  %d = arith.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.add %x, %c : tensor<2xf32>
  return %0, %d : tensor<2xf32>, tensor<f32>
}
""",
        [X[0, :2]],
        [X[0, :2] + X[0, :2], np.float32(2)],
    ),
    "a shape that is a constant": (
        """
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
  %c = arith.constant dense<4> : tensor<1xi64>
  %0 = stablehlo.dynamic_iota %c, dim = 0 : (tensor<1xi64>) -> tensor<4xi64>
  %1 = stablehlo.add %x, %0 : tensor<4xi64>
  return %1 : tensor<4xi64>
}
""",
        [np.arange(4)],
        [2 * np.arange(4)],
    ),
    "a shape that the type says": (
        """
func.func @main(%c: tensor<1xi64>) -> tensor<4xi64> {
  %0 = stablehlo.dynamic_iota %c, dim = 0 : (tensor<1xi64>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
""",
        [np.array([4])],
        [np.arange(4)],
    ),
    "types that leave a shape open": (
        """
func.func @main(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %a = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4x6xf32>) -> tensor<i32>
  %b = stablehlo.get_dimension_size %x, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>
  %n = stablehlo.multiply %a, %b : tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<4x6xf32>, tensor<1xi32>) -> tensor<?xf32>
  %1 = stablehlo.negate %0 : tensor<?xf32>
  %2 = stablehlo.reshape %1 : (tensor<?xf32>) -> tensor<24xf32>
  return %2 : tensor<24xf32>
}
""",
        [X],
        [-X.reshape(-1)],
    ),
    "a broadcast whose shape is an argument": (
        """
func.func @main(%x: tensor<4xf32>, %s: tensor<2xi32>) -> tensor<3x4xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1]
      : (tensor<4xf32>, tensor<2xi32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
""",
        [X[0, :4], np.array([3, 4], np.int32)],
        [np.broadcast_to(X[0, :4], (3, 4))],
    ),
    "the shape of a value": (
        """
func.func @main(%x: tensor<4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %s = shape.shape_of %y : tensor<3x4xf32> -> tensor<2xindex>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1]
      : (tensor<4xf32>, tensor<2xindex>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
""",
        [X[0, :4], X[:3, :4]],
        [np.broadcast_to(X[0, :4], (3, 4))],
    ),
    "slices between values": (
        """
func.func @main(%x: tensor<9xf32>, %i: tensor<1xi32>) -> (tensor<3xf32>, tensor<2xf32>) {
  %c0 = arith.constant dense<1> : tensor<1xi32>
  %c1 = arith.constant dense<7> : tensor<1xi32>
  %c2 = arith.constant dense<2> : tensor<1xi32>
  %0 = stablehlo.real_dynamic_slice %x, %c0, %c1, %c2
      : (tensor<9xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xf32>
  %e = stablehlo.add %i, %c2 : tensor<1xi32>
  %1 = stablehlo.real_dynamic_slice %x, %i, %e, %c0
      : (tensor<9xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
  return %0, %1 : tensor<3xf32>, tensor<2xf32>
}
""",
        [X.reshape(-1)[:9], np.array([4], np.int32)],
        [X.reshape(-1)[1:7:2], X.reshape(-1)[4:6]],
    ),
    "padding by values": (
        """
func.func @main(%x: tensor<3xf32>) -> tensor<8xf32> {
  %z = arith.constant dense<0.0> : tensor<f32>
  %c0 = arith.constant dense<1> : tensor<1xi32>
  %c1 = stablehlo.add %c0, %c0 : tensor<1xi32>
  %0 = stablehlo.dynamic_pad %x, %z, %c0, %c1, %c0
      : (tensor<3xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
""",
        [X[0, :3]],
        [np.array([0, 1, 0, 2, 0, 3, 0, 0], np.float32)],
    ),
    "sizes of windows as values": (
        """
func.func @main(%x: tensor<3x4xf32>, %i: tensor<2x1xi32>) -> tensor<2x4xf32> {
  %c0 = arith.constant dense<[1,4]> : tensor<2xi32>
  %0 = "stablehlo.dynamic_gather"(%x, %i, %c0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
          : (tensor<3x4xf32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
""",
        [X[:3, :4], np.array([[2], [9]], np.int32)],
        [X[[2, 2], :4]],
    ),
    "data apart": (
        """
module { func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<3xi64>) {
  %c = stablehlo.constant dense_resource<w.1> : tensor<2x2xf32>
  %d = arith.constant dense_resource<b> : tensor<3xi64>
  %0 = stablehlo.add %x, %c : tensor<2x2xf32>
  return %0, %d : tensor<2x2xf32>, tensor<3xi64>
}}
{-#
  dialect_resources: {
    builtin: {
      w.1: "0x040000000000803F000000400000404000008040",
      b: "0x08000000010000000000000002000000000000000300000000000000"
    }
  }
#-}
""",
        [X[:2, :2]],
        [X[:2, :2] + np.array([[1, 2], [3, 4]]), np.array([1, 2, 3])],
    ),
    "tuples": (
        """
func.func private @f(%t: tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>)
    -> tuple<tensor<2xf32>, tensor<i32>> {
  %0 = stablehlo.get_tuple_element %t[0]
      : (tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>) -> tensor<2xf32>
  %1 = stablehlo.get_tuple_element %t[1]
      : (tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>) -> tuple<tensor<i32>, !stablehlo.token>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<i32>, !stablehlo.token>) -> tensor<i32>
  %3 = stablehlo.tuple %0, %2 : tuple<tensor<2xf32>, tensor<i32>>
  return %3 : tuple<tensor<2xf32>, tensor<i32>>
}
func.func @main(%x: tensor<2xf32>, %n: tensor<i32>) -> tuple<tensor<2xf32>, tensor<i32>> {
  %k = stablehlo.create_token : !stablehlo.token
  %k2 = stablehlo.after_all %k, %k : !stablehlo.token
  %a = stablehlo.tuple %n, %k2 : tuple<tensor<i32>, !stablehlo.token>
  %t = stablehlo.tuple %x, %a : tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>
  %b:2 = stablehlo.optimization_barrier %x, %k2 : tensor<2xf32>, !stablehlo.token
  %r = call @f(%t) : (tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>)
      -> tuple<tensor<2xf32>, tensor<i32>>
  return %r : tuple<tensor<2xf32>, tensor<i32>>
}
""",
        [X[0, :2], np.int32(7)],
        [X[0, :2], np.int32(7)],
    ),
    "a token in a loop": (
        """
func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %k = stablehlo.create_token : !stablehlo.token
  %r:2 = stablehlo.while(%i = %x, %t = %k) : tensor<i32>, !stablehlo.token
   cond { %c = stablehlo.constant dense<10> : tensor<i32>
          %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1> }
   do { %c = stablehlo.constant dense<3> : tensor<i32>
        %j = stablehlo.add %i, %c : tensor<i32>
        %u = stablehlo.after_all %t : !stablehlo.token
        stablehlo.return %j, %u : tensor<i32>, !stablehlo.token }
  return %r#0 : tensor<i32>
}
""",
        [np.int32(2)],
        [np.int32(11)],
    ),
    "branches without results": (
        """
func.func @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %r = "stablehlo.case"(%i) ({ stablehlo.return %x : tensor<f32> }, { %a = stablehlo.negate %x : tensor<f32>
   stablehlo.return %a : tensor<f32> }) : (tensor<i32>) -> tensor<f32>
  "stablehlo.case"(%i) ({ stablehlo.return }, { stablehlo.return }) : (tensor<i32>) -> ()
  %p = stablehlo.constant dense<true> : tensor<i1>
  "stablehlo.if"(%p) ({ stablehlo.return }, { stablehlo.return }) : (tensor<i1>) -> ()
  return %r : tensor<f32>
}
""",
        [np.int32(9), np.float32(2)],
        [np.float32(-2)],
    ),
    "calls that do nothing": (
        """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = "{replicated}"}
      : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.custom_call @annotate_device_placement(%0)
      {backend_config = "", has_side_effect = true} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = stablehlo.custom_call @LayoutConstraint(%1) : (tensor<2xf32>) -> tensor<2xf32>
  %p = stablehlo.constant dense<true> : tensor<i1>
  stablehlo.custom_call @shape_assertion(%p) {has_side_effect = true} : (tensor<i1>) -> ()
  return %2 : tensor<2xf32>
}
""",
        [X[0, :2]],
        [X[0, :2]],
    ),
    "numbers of arith": (
        """
func.func @main(%x: tensor<f32>) -> tensor<4xi64> {
  %c = arith.constant 4 : i64
  %t = tensor.from_elements %c : tensor<1xi64>
  %0 = stablehlo.dynamic_iota %t, dim = 0 : (tensor<1xi64>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
""",
        [np.float32(2)],
        [np.arange(4)],
    ),
    "functions without results": (
        """
func.func private @f(%x: tensor<f32>) { return }
func.func private @g() { call @g2() : () -> ()
return }
func.func private @g2() { return }
func.func @main(%x: tensor<f32>) -> tensor<f32> { call @f(%x) : (tensor<f32>) -> ()
 call @g() : () -> ()
 return %x : tensor<f32> }
func.func @none(%x: tensor<f32>) { return }
""",
        [np.float32(2)],
        [np.float32(2)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_read(name: str) -> None:
    text, arguments, expected = CASES[name]
    module = mind_mlir.from_stablehlo(text)
    found = mind_mlir.compile(module, function="main")(*arguments)
    named = {f"arg{number}": each for number, each in enumerate(arguments)}
    again = mind_mlir.interpret(module, named, function="main")
    for one, two, other in zip(found, again, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(two, other)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("w.1: ", "other: "), "data that the program does not hold"),
        (("803F", ""), "bytes as the data of"),
        (("0x04", "0x0"), "data that the program does not hold"),
    ],
)
def test_data_that_does_not_fit_is_a_finding(change: tuple[str, str], reason: str) -> None:
    text = CASES["data apart"][0].replace(*change)
    with pytest.raises((mind_mlir.UnsupportedError, mind_mlir.ParseError), match=rf"{reason}|syntax error"):
        mind_mlir.from_stablehlo(text)


def test_where_values_are_to_be_does_not_matter() -> None:
    """jax writes operations of a dialect that the bindings lack, also for its typed random keys."""
    text = """
module @m attributes {mhlo.num_partitions = 1 : i32} {
  sdy.mesh @mesh = <["x"=1]> {stablehlo.mesh = {axes = [{name = "x", size = 1 : i64}]}}
  func.func public @main(%x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<2xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<2xf32>
    %1 = stablehlo.add %0, %0 : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}"""
    (found,) = mind_mlir.compile(mind_mlir.from_stablehlo(text))(X[0, :2])
    np.testing.assert_array_equal(found, 2 * X[0, :2])


def test_assertions_that_may_fail_are_refused() -> None:
    text = CASES["calls that do nothing"][0].replace("dense<true>", "dense<false>")
    with pytest.raises(mind_mlir.UnsupportedError, match="an assertion that is not known to hold"):
        mind_mlir.from_stablehlo(text)


def test_numbers_that_have_to_be_known_are_named() -> None:
    text = """
func.func @main(%x: tensor<3xf32>, %z: tensor<f32>, %n: tensor<1xi32>) -> tensor<8xf32> {
  %0 = stablehlo.dynamic_pad %x, %z, %n, %n, %n
    : (tensor<3xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    with pytest.raises(
        mind_mlir.UnsupportedError, match="numbers that are not known before the program runs"
    ):
        mind_mlir.from_stablehlo(text)
