func.func @sums() {
  %a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %rows = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  %all = stablehlo.reduce(%a init: %seven) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<i32>
  %most = stablehlo.reduce(%a init: %seven) applies stablehlo.maximum across dimensions = [0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<3xi32>
  %products = stablehlo.reduce(%a init: %seven) applies stablehlo.multiply across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  %bits = stablehlo.reduce(%a init: %zero) applies stablehlo.xor across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  check.expect_eq_const %rows, dense<[6, 15]> : tensor<2xi32>
  check.expect_eq_const %all, dense<28> : tensor<i32>
  check.expect_eq_const %most, dense<7> : tensor<3xi32>
  check.expect_eq_const %products, dense<[42, 840]> : tensor<2xi32>
  check.expect_eq_const %bits, dense<[0, 7]> : tensor<2xi32>
  func.return
}

// -----

func.func @truths() {
  %a = stablehlo.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %all = stablehlo.reduce(%a init: %yes) applies stablehlo.and across dimensions = [1] : (tensor<2x2xi1>, tensor<i1>) -> tensor<2xi1>
  %any = stablehlo.reduce(%a init: %no) applies stablehlo.or across dimensions = [0] : (tensor<2x2xi1>, tensor<i1>) -> tensor<2xi1>
  check.expect_eq_const %all, dense<[false, true]> : tensor<2xi1>
  check.expect_eq_const %any, dense<[true, true]> : tensor<2xi1>
  func.return
}

// -----

// A region of several operations, on two values at once: the greatest element and the first place of it.
func.func @argmax() {
  %a = stablehlo.constant dense<[[3.0, 9.0, 9.0, 1.0], [2.0, 2.0, 0.0, 1.0]]> : tensor<2x4xf32>
  %at = stablehlo.iota dim = 1 : tensor<2x4xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %most, %place = stablehlo.reduce(%a init: %least), (%at init: %zero) across dimensions = [1] : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
    reducer(%x: tensor<f32>, %y: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %more = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %same = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %before = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %first = stablehlo.and %same, %before : tensor<i1>
      %keep = stablehlo.or %more, %first : tensor<i1>
      %value = stablehlo.select %keep, %x, %y : tensor<i1>, tensor<f32>
      %index = stablehlo.select %keep, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %value, %index : tensor<f32>, tensor<i32>
    }
  check.expect_eq_const %most, dense<[9.0, 2.0]> : tensor<2xf32>
  check.expect_eq_const %place, dense<[1, 0]> : tensor<2xi32>
  func.return
}

// -----

func.func @windows() {
  %a = stablehlo.constant dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %sums = "stablehlo.reduce_window"(%a, %zero) ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %sum = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %sum : tensor<i32>
  }) {
    window_dimensions = array<i64: 3>, window_strides = array<i64: 2>,
    window_dilations = array<i64: 2>, padding = dense<[[1, 2]]> : tensor<1x2xi64>
  } : (tensor<6xi32>, tensor<i32>) -> tensor<3xi32>
  %totals = "stablehlo.reduce_window"(%a, %zero) ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %sum = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %sum : tensor<i32>
  }) {
    window_dimensions = array<i64: 6>, padding = dense<[[5, 0]]> : tensor<1x2xi64>
  } : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
  check.expect_eq_const %sums, dense<[6, 12, 10]> : tensor<3xi32>
  check.expect_eq_const %totals, dense<[1, 3, 6, 10, 15, 21]> : tensor<6xi32>
  func.return
}

// -----

// The gradient of a pooling: what a window has goes to its first greatest element.
func.func @select_and_scatter() {
  %a = stablehlo.constant dense<[[1.0, 5.0, 2.0, 4.0], [5.0, 3.0, 4.0, 0.0]]> : tensor<2x4xf32>
  %share = stablehlo.constant dense<[[10.0, 20.0]]> : tensor<1x2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %b = "stablehlo.select_and_scatter"(%a, %share, %zero) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %keep = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %keep : tensor<i1>
  }, {
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
  }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>} : (tensor<2x4xf32>, tensor<1x2xf32>, tensor<f32>) -> tensor<2x4xf32>
  check.expect_eq_const %b, dense<[[0.0, 10.0, 0.0, 20.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<2x4xf32>
  func.return
}

// -----

// Equal keys keep their order; what stands beside them goes with them.
func.func @sort() {
  %keys = stablehlo.constant dense<[3, 1, 2, 1]> : tensor<4xi32>
  %at = stablehlo.iota dim = 0 : tensor<4xi32>
  %sorted, %places = "stablehlo.sort"(%keys, %at) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>, %i: tensor<i32>, %j: tensor<i32>):
      %less = stablehlo.compare LT, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
  }) : (tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  check.expect_eq_const %sorted, dense<[1, 1, 2, 3]> : tensor<4xi32>
  check.expect_eq_const %places, dense<[1, 3, 2, 0]> : tensor<4xi32>
  func.return
}

// -----

// Where the first keys are equal, the second ones decide, the greatest first.
func.func @sort_by_two_keys() {
  %first = stablehlo.constant dense<[3, 1, 3, 1, 3]> : tensor<5xi32>
  %second = stablehlo.constant dense<[1.0, 2.0, 9.0, 7.0, 9.0]> : tensor<5xf32>
  %at = stablehlo.iota dim = 0 : tensor<5xi32>
  %a, %b, %places = "stablehlo.sort"(%first, %second, %at) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>, %s: tensor<f32>, %t: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
      %less = stablehlo.compare LT, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %same = stablehlo.compare EQ, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %then = stablehlo.compare LT, %t, %s : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %both = stablehlo.and %same, %then : tensor<i1>
      %is = stablehlo.or %less, %both : tensor<i1>
      stablehlo.return %is : tensor<i1>
  }) : (tensor<5xi32>, tensor<5xf32>, tensor<5xi32>) -> (tensor<5xi32>, tensor<5xf32>, tensor<5xi32>)
  check.expect_eq_const %a, dense<[1, 1, 3, 3, 3]> : tensor<5xi32>
  check.expect_eq_const %b, dense<[7.0, 2.0, 9.0, 9.0, 1.0]> : tensor<5xf32>
  check.expect_eq_const %places, dense<[3, 1, 2, 4, 0]> : tensor<5xi32>
  func.return
}

// -----

// Three keys in one direction, chosen by a select; the keys are not the first operands.
func.func @sort_by_three_keys() {
  %at = stablehlo.iota dim = 0 : tensor<4xi32>
  %first = stablehlo.constant dense<[1, 0, 1, 1]> : tensor<4xi32>
  %second = stablehlo.constant dense<[5, 9, 4, 5]> : tensor<4xi32>
  %third = stablehlo.constant dense<[8, 8, 8, 7]> : tensor<4xi32>
  %places, %a, %b, %c = "stablehlo.sort"(%at, %first, %second, %third) <{dimension = 0 : i64}> ({
    ^bb0(%i: tensor<i32>, %j: tensor<i32>, %p: tensor<i32>, %q: tensor<i32>,
         %r: tensor<i32>, %s: tensor<i32>, %t: tensor<i32>, %u: tensor<i32>):
      %0 = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %1 = stablehlo.compare EQ, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %2 = stablehlo.compare LT, %r, %s : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %3 = stablehlo.compare EQ, %s, %r : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %4 = stablehlo.compare LT, %t, %u : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %5 = stablehlo.select %3, %4, %2 : tensor<i1>, tensor<i1>
      %6 = stablehlo.select %1, %5, %0 : tensor<i1>, tensor<i1>
      stablehlo.return %6 : tensor<i1>
  }) : (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>)
  check.expect_eq_const %places, dense<[1, 2, 3, 0]> : tensor<4xi32>
  func.return
}

// -----

func.func @map() {
  %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %b = "stablehlo.map"(%a, %a) ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %two = stablehlo.constant dense<2> : tensor<i32>
      %twice = stablehlo.multiply %x, %two : tensor<i32>
      %sum = stablehlo.add %twice, %y : tensor<i32>
      stablehlo.return %sum : tensor<i32>
  }) {dimensions = array<i64: 0>} : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  check.expect_eq_const %b, dense<[3, 6, 9]> : tensor<3xi32>
  func.return
}
