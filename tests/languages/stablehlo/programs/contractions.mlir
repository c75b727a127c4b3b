func.func @products() {
  %a = stablehlo.constant dense<[[[1, 2, 3]], [[4, 5, 6]]]> : tensor<2x1x3xi32>
  %b = stablehlo.constant dense<[[[1, 0], [0, 1], [1, 1]], [[2, 0], [0, 2], [0, 0]]]> : tensor<2x3x2xi32>
  %c = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x1x3xi32>, tensor<2x3x2xi32>) -> tensor<2x1x2xi32>
  check.expect_eq_const %c, dense<[[[4, 5]], [[8, 10]]]> : tensor<2x1x2xi32>
  func.return
}

// -----

// Products of numbers of 8 bits, summed in 32.
func.func @wide_sums() {
  %a = stablehlo.constant dense<[[100, 100]]> : tensor<1x2xi8>
  %b = stablehlo.constant dense<[[100], [-1]]> : tensor<2x1xi8>
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1x2xi8>, tensor<2x1xi8>) -> tensor<1x1xi32>
  check.expect_eq_const %c, dense<9900> : tensor<1x1xi32>
  func.return
}

// -----

// Strides, padding on one side, and filters whose elements lie two apart.
func.func @convolution() {
  %image = stablehlo.constant dense<[[[[1.0], [2.0], [3.0], [4.0]], [[5.0], [6.0], [7.0], [8.0]], [[9.0], [10.0], [11.0], [12.0]]]]> : tensor<1x3x4x1xf32>
  %filter = stablehlo.constant dense<[[[[1.0]], [[10.0]]]]> : tensor<1x2x1x1xf32>
  %b = stablehlo.convolution(%image, %filter) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[0, 0], [1, 0]], rhs_dilate = [1, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x4x1xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x3x1xf32>
  check.expect_eq_const %b, dense<[[[[20.0], [31.0], [42.0]], [[100.0], [119.0], [130.0]]]]> : tensor<1x2x3x1xf32>
  func.return
}

// -----

// Each half of the features has filters of its own, along one dimension that is spread out.
func.func @convolution_in_groups() {
  %a = stablehlo.constant dense<[[[1.0, 2.0], [3.0, 4.0]]]> : tensor<1x2x2xf32>
  %filter = stablehlo.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %b = stablehlo.convolution(%a, %filter) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {pad = [[1, 1]], lhs_dilate = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x2x2xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
  check.expect_eq_const %b, dense<[[[2.0, 1.0, 4.0, 2.0], [12.0, 9.0, 16.0, 12.0]]]> : tensor<1x2x4xf32>
  func.return
}

// -----

func.func @normalized() {
  %x = stablehlo.constant dense<[[1.0, 10.0], [3.0, 30.0]]> : tensor<2x2xf32>
  %scale = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %offset = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %y, %mean, %variance = "stablehlo.batch_norm_training"(%x, %scale, %offset) {epsilon = 0.0 : f32, feature_index = 1 : i64}
    : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  check.expect_almost_eq_const %y, dense<[[-1.0, -1.0], [1.0, 3.0]]> : tensor<2x2xf32>
  check.expect_almost_eq_const %mean, dense<[2.0, 20.0]> : tensor<2xf32>
  check.expect_almost_eq_const %variance, dense<[1.0, 100.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @normalized_with_what_is_known() {
  %x = stablehlo.constant dense<[[1.0, 10.0], [3.0, 30.0]]> : tensor<2x2xf32>
  %scale = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %mean = stablehlo.constant dense<[0.0, 10.0]> : tensor<2xf32>
  %variance = stablehlo.constant dense<[3.0, 99.0]> : tensor<2xf32>
  %y = "stablehlo.batch_norm_inference"(%x, %scale, %scale, %mean, %variance) {epsilon = 1.0 : f32, feature_index = 0 : i64}
    : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  check.expect_almost_eq_const %y, dense<[[1.5, 6.0], [0.6, 6.0]]> : tensor<2x2xf32>
  func.return
}

// -----

// What the gradient has in common with the normalized values is taken out of it.
func.func @gradient_of_normalized() {
  %x = stablehlo.constant dense<[[1.0], [3.0], [1.0], [3.0]]> : tensor<4x1xf32>
  %scale = stablehlo.constant dense<2.0> : tensor<1xf32>
  %mean = stablehlo.constant dense<2.0> : tensor<1xf32>
  %variance = stablehlo.constant dense<1.0> : tensor<1xf32>
  %dy = stablehlo.constant dense<[[1.0], [2.0], [3.0], [6.0]]> : tensor<4x1xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy) {epsilon = 0.0 : f32, feature_index = 1 : i64}
    : (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<4x1xf32>) -> (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>)
  check.expect_almost_eq_const %dx, dense<[[-2.0], [-4.0], [2.0], [4.0]]> : tensor<4x1xf32>
  check.expect_almost_eq_const %dscale, dense<4.0> : tensor<1xf32>
  check.expect_almost_eq_const %doffset, dense<12.0> : tensor<1xf32>
  func.return
}
