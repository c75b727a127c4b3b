// Arithmetic of integers wraps around, and has a result for every divisor.
func.func @integers() {
  %a = stablehlo.constant dense<[127, -128, 7, -7, 5]> : tensor<5xi8>
  %b = stablehlo.constant dense<[1, -1, 2, 2, 0]> : tensor<5xi8>
  %sum = stablehlo.add %a, %b : tensor<5xi8>
  %quotient = stablehlo.divide %a, %b : tensor<5xi8>
  %rest = stablehlo.remainder %a, %b : tensor<5xi8>
  check.expect_eq_const %sum, dense<[-128, 127, 9, -5, 5]> : tensor<5xi8>
  check.expect_eq_const %quotient, dense<[127, -128, 3, -3, -1]> : tensor<5xi8>
  check.expect_eq_const %rest, dense<[0, 0, 1, -1, 5]> : tensor<5xi8>
  func.return
}

// -----

// Truth values: sums are or, products and.
func.func @truths() {
  %a = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
  %b = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
  %sum = stablehlo.add %a, %b : tensor<4xi1>
  %product = stablehlo.multiply %a, %b : tensor<4xi1>
  %xor = stablehlo.xor %a, %b : tensor<4xi1>
  %not = stablehlo.not %a : tensor<4xi1>
  %less = stablehlo.compare LT, %a, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  check.expect_eq_const %sum, dense<[true, true, true, false]> : tensor<4xi1>
  check.expect_eq_const %product, dense<[true, false, false, false]> : tensor<4xi1>
  check.expect_eq_const %xor, dense<[false, true, true, false]> : tensor<4xi1>
  check.expect_eq_const %not, dense<[false, false, true, true]> : tensor<4xi1>
  check.expect_eq_const %less, dense<[false, false, true, false]> : tensor<4xi1>
  func.return
}

// -----

// Shifts by as many bits as there are, or more, leave nothing but the sign.
func.func @bits() {
  %a = stablehlo.constant dense<[-1, 64, -128, 3]> : tensor<4xi8>
  %b = stablehlo.constant dense<[1, 2, 8, 9]> : tensor<4xi8>
  %left = stablehlo.shift_left %a, %b : tensor<4xi8>
  %arithmetic = stablehlo.shift_right_arithmetic %a, %b : tensor<4xi8>
  %logical = stablehlo.shift_right_logical %a, %b : tensor<4xi8>
  %count = stablehlo.popcnt %a : tensor<4xi8>
  %zeros = stablehlo.count_leading_zeros %a : tensor<4xi8>
  check.expect_eq_const %left, dense<[-2, 0, 0, 0]> : tensor<4xi8>
  check.expect_eq_const %arithmetic, dense<[-1, 16, -1, 0]> : tensor<4xi8>
  check.expect_eq_const %logical, dense<[127, 16, 0, 0]> : tensor<4xi8>
  check.expect_eq_const %count, dense<[8, 1, 1, 2]> : tensor<4xi8>
  check.expect_eq_const %zeros, dense<[0, 1, 0, 6]> : tensor<4xi8>
  func.return
}

// -----

// NaN, infinities and the two zeros: -0 is less than +0, and a NaN equal to itself, in the total order alone.
func.func @orders() {
  %a = stablehlo.constant dense<[-0.0, 0x7FC00000, 0x7F800000, 1.0]> : tensor<4xf32>
  %b = stablehlo.constant dense<[0.0, 0x7FC00000, 0x7FC00000, 2.0]> : tensor<4xf32>
  %plain = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %total = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %same = stablehlo.compare EQ, %a, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %finite = stablehlo.is_finite %a : (tensor<4xf32>) -> tensor<4xi1>
  %most = stablehlo.maximum %a, %b : tensor<4xf32>
  check.expect_eq_const %plain, dense<[false, false, false, true]> : tensor<4xi1>
  check.expect_eq_const %total, dense<[true, false, true, true]> : tensor<4xi1>
  check.expect_eq_const %same, dense<[false, true, false, false]> : tensor<4xi1>
  check.expect_eq_const %finite, dense<[true, false, false, true]> : tensor<4xi1>
  check.expect_eq_const %most, dense<[0.0, 0x7FC00000, 0x7FC00000, 2.0]> : tensor<4xf32>
  func.return
}

// -----

func.func @roundings() {
  %a = stablehlo.constant dense<[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]> : tensor<6xf64>
  %even = stablehlo.round_nearest_even %a : tensor<6xf64>
  %away = stablehlo.round_nearest_afz %a : tensor<6xf64>
  %down = stablehlo.floor %a : tensor<6xf64>
  %up = stablehlo.ceil %a : tensor<6xf64>
  %sign = stablehlo.sign %a : tensor<6xf64>
  check.expect_eq_const %even, dense<[-2.0, -2.0, -0.0, 0.0, 2.0, 2.0]> : tensor<6xf64>
  check.expect_eq_const %away, dense<[-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]> : tensor<6xf64>
  check.expect_eq_const %down, dense<[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]> : tensor<6xf64>
  check.expect_eq_const %up, dense<[-2.0, -1.0, -0.0, 1.0, 2.0, 3.0]> : tensor<6xf64>
  check.expect_eq_const %sign, dense<[-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]> : tensor<6xf64>
  func.return
}

// -----

// Integers that do not fit keep their lowest bits; a truth value is whether a number is not zero.
func.func @conversions() {
  %a = stablehlo.constant dense<[300, -1, 128, 0]> : tensor<4xi32>
  %narrow = stablehlo.convert %a : (tensor<4xi32>) -> tensor<4xi8>
  %unsigned = stablehlo.convert %a : (tensor<4xi32>) -> tensor<4xui8>
  %truth = stablehlo.convert %a : (tensor<4xi32>) -> tensor<4xi1>
  %half = stablehlo.convert %a : (tensor<4xi32>) -> tensor<4xbf16>
  %wide = stablehlo.convert %narrow : (tensor<4xi8>) -> tensor<4xui32>
  %number = stablehlo.convert %truth : (tensor<4xi1>) -> tensor<4xf32>
  check.expect_eq_const %narrow, dense<[44, -1, -128, 0]> : tensor<4xi8>
  check.expect_eq_const %unsigned, dense<[44, 255, 128, 0]> : tensor<4xui8>
  check.expect_eq_const %truth, dense<[true, true, true, false]> : tensor<4xi1>
  check.expect_eq_const %half, dense<[300.0, -1.0, 128.0, 0.0]> : tensor<4xbf16>
  check.expect_eq_const %wide, dense<[44, 4294967295, 4294967168, 0]> : tensor<4xui32>
  check.expect_eq_const %number, dense<[1.0, 1.0, 1.0, 0.0]> : tensor<4xf32>
  func.return
}

// -----

// A scalar chooses for all elements; bounds may be scalars.
func.func @choices() {
  %a = stablehlo.constant dense<[1.0, -2.0, 9.0]> : tensor<3xf16>
  %b = stablehlo.constant dense<0.5> : tensor<3xf16>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %low = stablehlo.constant dense<-1.0> : tensor<f16>
  %high = stablehlo.constant dense<[2.0, 2.0, 3.0]> : tensor<3xf16>
  %chosen = stablehlo.select %yes, %a, %b : tensor<i1>, tensor<3xf16>
  %top = stablehlo.constant dense<4.0> : tensor<f16>
  %between = stablehlo.clamp %low, %chosen, %top : (tensor<f16>, tensor<3xf16>, tensor<f16>) -> tensor<3xf16>
  check.expect_eq_const %between, dense<[1.0, -1.0, 4.0]> : tensor<3xf16>
  func.return
}

// -----

func.func @functions() {
  %a = stablehlo.constant dense<[0.5, 2.0]> : tensor<2xf64>
  %b = stablehlo.constant dense<[-3.0, 0.25]> : tensor<2xf64>
  %power = stablehlo.power %a, %b : tensor<2xf64>
  %angle = stablehlo.atan2 %b, %a : tensor<2xf64>
  %root = stablehlo.cbrt %b : tensor<2xf64>
  %log = stablehlo.log_plus_one %a : tensor<2xf64>
  %exp = stablehlo.exponential_minus_one %b : tensor<2xf64>
  %tangent = stablehlo.tan %a : tensor<2xf64>
  %logistic = stablehlo.logistic %b : tensor<2xf64>
  %rest = stablehlo.remainder %b, %a : tensor<2xf64>
  check.expect_almost_eq_const %power, dense<[8.0, 1.189207115002721]> : tensor<2xf64>
  check.expect_almost_eq_const %angle, dense<[-1.4056476493802699, 0.12435499454676144]> : tensor<2xf64>
  check.expect_almost_eq_const %root, dense<[-1.4422495703074083, 0.6299605249474366]> : tensor<2xf64>
  check.expect_almost_eq_const %log, dense<[0.4054651081081644, 1.0986122886681098]> : tensor<2xf64>
  check.expect_almost_eq_const %exp, dense<[-0.950212931632136, 0.2840254166877415]> : tensor<2xf64>
  check.expect_almost_eq_const %tangent, dense<[0.5463024898437905, -2.185039863261519]> : tensor<2xf64>
  check.expect_almost_eq_const %logistic, dense<[0.04742587317756678, 0.5621765008857981]> : tensor<2xf64>
  check.expect_almost_eq_const %rest, dense<[-0.0, 0.25]> : tensor<2xf64>
  func.return
}

// -----

func.func @bits_of_floats() {
  %a = stablehlo.constant dense<[1.0, -0.0, 0x7F800000]> : tensor<3xf32>
  %bits = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3xi32>
  %b = stablehlo.constant dense<[1.001, 70000.0]> : tensor<2xf32>
  %less = stablehlo.reduce_precision %b, format = e8m7 : tensor<2xf32>
  check.expect_eq_const %bits, dense<[1065353216, -2147483648, 2139095040]> : tensor<3xi32>
  check.expect_eq_const %less, dense<[1.0, 70144.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @complex() {
  %a = stablehlo.constant dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>
  %square = stablehlo.multiply %a, %a : tensor<2xcomplex<f32>>
  %sum = stablehlo.add %square, %a : tensor<2xcomplex<f32>>
  check.expect_eq_const %square, dense<[(-3.0, 4.0), (-7.0, -24.0)]> : tensor<2xcomplex<f32>>
  check.expect_eq_const %sum, dense<[(-2.0, 6.0), (-4.0, -28.0)]> : tensor<2xcomplex<f32>>
  func.return
}

// -----

func.func @chlo() {
  %a = stablehlo.constant dense<[0.5, -0.25]> : tensor<2xf32>
  %erf = chlo.erf %a : tensor<2xf32> -> tensor<2xf32>
  %back = chlo.erf_inv %erf : tensor<2xf32> -> tensor<2xf32>
  %acos = chlo.acos %a : tensor<2xf32> -> tensor<2xf32>
  %b = stablehlo.constant dense<[4.5, 1.0]> : tensor<2xf32>
  %lgamma = chlo.lgamma %b : tensor<2xf32> -> tensor<2xf32>
  check.expect_almost_eq_const %erf, dense<[0.5204999, -0.2763264]> : tensor<2xf32>
  check.expect_almost_eq_const %back, dense<[0.5, -0.25]> : tensor<2xf32>
  check.expect_almost_eq_const %acos, dense<[1.0471976, 1.8234766]> : tensor<2xf32>
  check.expect_almost_eq_const %lgamma, dense<[2.4537365, 0.0]> : tensor<2xf32>
  func.return
}
