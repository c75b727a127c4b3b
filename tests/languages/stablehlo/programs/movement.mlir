func.func @slices() {
  %a = stablehlo.iota dim = 0 : tensor<10xi64>
  %part = stablehlo.slice %a [1:9:3] : (tensor<10xi64>) -> tensor<3xi64>
  %turned = stablehlo.reverse %part, dims = [0] : tensor<3xi64>
  %late = stablehlo.constant dense<20> : tensor<i32>
  %last = stablehlo.dynamic_slice %a, %late, sizes = [4] : (tensor<10xi64>, tensor<i32>) -> tensor<4xi64>
  %early = stablehlo.constant dense<-5> : tensor<i32>
  %changed = stablehlo.dynamic_update_slice %a, %part, %early : (tensor<10xi64>, tensor<3xi64>, tensor<i32>) -> tensor<10xi64>
  check.expect_eq_const %part, dense<[1, 4, 7]> : tensor<3xi64>
  check.expect_eq_const %turned, dense<[7, 4, 1]> : tensor<3xi64>
  check.expect_eq_const %last, dense<[6, 7, 8, 9]> : tensor<4xi64>
  check.expect_eq_const %changed, dense<[1, 4, 7, 3, 4, 5, 6, 7, 8, 9]> : tensor<10xi64>
  func.return
}

// -----

// Dimensions of an operand may go anywhere, also in another order, and be stretched.
func.func @broadcasts() {
  %a = stablehlo.constant dense<[[1, 2, 3]]> : tensor<1x3xi32>
  %b = stablehlo.broadcast_in_dim %a, dims = [2, 0] : (tensor<1x3xi32>) -> tensor<3x2x2xi32>
  %c = stablehlo.transpose %b, dims = [1, 2, 0] : (tensor<3x2x2xi32>) -> tensor<2x2x3xi32>
  %d = stablehlo.reshape %c : (tensor<2x2x3xi32>) -> tensor<4x3xi32>
  check.expect_eq_const %d, dense<[[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]> : tensor<4x3xi32>
  func.return
}

// -----

// Padding between elements, and below zero, which takes elements away.
func.func @pads() {
  %a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %b = stablehlo.pad %a, %zero, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<4x4xi32>
  %c = stablehlo.pad %a, %zero, low = [0, -1], high = [0, -1], interior = [0, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  check.expect_eq_const %b, dense<[[0, 0, 0, 0], [2, 3, 0, 0], [0, 0, 0, 0], [5, 6, 0, 0]]> : tensor<4x4xi32>
  check.expect_eq_const %c, dense<[[0, 2, 0], [0, 5, 0]]> : tensor<2x3xi32>
  func.return
}

// -----

func.func @pad_with_what_is_computed() {
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %root = stablehlo.sqrt %a : tensor<2xf32>
  %one = stablehlo.slice %root [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %scalar = stablehlo.reshape %one : (tensor<1xf32>) -> tensor<f32>
  %b = stablehlo.pad %a, %scalar, low = [1], high = [1], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  check.expect_eq_const %b, dense<[1.0, 1.0, 2.0, 1.0]> : tensor<4xf32>
  func.return
}

// -----

func.func @parts_of_four_bits() {
  %a = stablehlo.constant dense<[[7, -8], [1, 2]]> : tensor<2x2xi4>
  %b = stablehlo.constant dense<[[-1], [3]]> : tensor<2x1xi4>
  %c = stablehlo.concatenate %a, %b, dim = 1 : (tensor<2x2xi4>, tensor<2x1xi4>) -> tensor<2x3xi4>
  %d = stablehlo.add %c, %c : tensor<2x3xi4>
  check.expect_eq_const %d, dense<[[-2, 0, -2], [2, 4, 6]]> : tensor<2x3xi4>
  func.return
}

// -----

func.func @nothing() {
  %a = stablehlo.constant dense<> : tensor<0x3xf32>
  %b = stablehlo.exponential %a : tensor<0x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
  check.expect_eq_const %b, dense<> : tensor<0x3xf32>
  check.expect_eq_const %c, dense<0.0> : tensor<3xf32>
  func.return
}

// -----

// Rows by their numbers; numbers out of range are moved into it.
func.func @gather_rows() {
  %a = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %rows = stablehlo.constant dense<[2, 0, 9]> : tensor<3xi64>
  %b = "stablehlo.gather"(%a, %rows) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 2>
  } : (tensor<3x2xi32>, tensor<3xi64>) -> tensor<3x2xi32>
  check.expect_eq_const %b, dense<[[5, 6], [1, 2], [5, 6]]> : tensor<3x2xi32>
  func.return
}

// -----

// Windows of two by two, at places of two numbers each, whose dimensions come first in the result.
func.func @gather_windows() {
  %n = stablehlo.iota dim = 0 : tensor<12xi32>
  %a = stablehlo.reshape %n : (tensor<12xi32>) -> tensor<3x4xi32>
  %at = stablehlo.constant dense<[[0, 1], [5, 2]]> : tensor<2x2xi32>
  %b = "stablehlo.gather"(%a, %at) {
    dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 0>,
    slice_sizes = array<i64: 2, 2>
  } : (tensor<3x4xi32>, tensor<2x2xi32>) -> tensor<2x2x2xi32>
  check.expect_eq_const %b, dense<[[[4, 5], [5, 6]], [[8, 9], [9, 10]]]> : tensor<2x2x2xi32>
  func.return
}

// -----

// Places out of range are left out; those named twice are added to twice.
func.func @scatter_rows() {
  %a = stablehlo.constant dense<0> : tensor<3x2xi32>
  %rows = stablehlo.constant dense<[[1], [1], [7]]> : tensor<3x1xi64>
  %new = stablehlo.constant dense<[[1, 2], [10, 20], [100, 200]]> : tensor<3x2xi32>
  %b = "stablehlo.scatter"(%a, %rows, %new) ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %sum = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %sum : tensor<i32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<3x2xi32>, tensor<3x1xi64>, tensor<3x2xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %b, dense<[[0, 0], [11, 22], [0, 0]]> : tensor<3x2xi32>
  func.return
}

// -----

func.func @scatter_greatest() {
  %a = stablehlo.constant dense<[5.0, 1.0, 3.0]> : tensor<3xf32>
  %at = stablehlo.constant dense<[[0], [1], [2], [1]]> : tensor<4x1xi32>
  %new = stablehlo.constant dense<[4.0, 2.0, 9.0, 7.0]> : tensor<4xf32>
  %b = "stablehlo.scatter"(%a, %at, %new) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %most = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %most : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<3xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<3xf32>
  check.expect_eq_const %b, dense<[5.0, 7.0, 9.0]> : tensor<3xf32>
  func.return
}
