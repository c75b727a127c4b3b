// Each part is verified on its own: hand-written mind IR gets the findings of Core IR text.
//
// RUN: not mind-opt %s --split-input-file >%t.out 2>%t.err
// RUN: FileCheck %s --check-prefix=ERROR --input-file %t.err
// RUN: FileCheck %s --check-prefix=GOOD --input-file %t.out

func.func @broadcast(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  // ERROR: verify.mlir:[[# @LINE + 1]]:8: error: [E3001] Broadcasting failed at dimension 0: 2 against 3
  %0 = "mind.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  // ERROR-NEXT: %0 = "mind.add"(%x, %y)
  // ERROR-NEXT: {{^ {7}\^}}
  return %0 : tensor<2xf32>
}

// -----

// GOOD:     func.func @good(%arg0: tensor<2xsi32>) -> tensor<2xsi32> {
// GOOD-NEXT: %0 = "mind.neg"(%arg0) : (tensor<2xsi32>) -> tensor<2xsi32>
func.func @good(%x: tensor<2xsi32>) -> tensor<2xsi32> {
  %0 = "mind.neg"(%x) : (tensor<2xsi32>) -> tensor<2xsi32>
  return %0 : tensor<2xsi32>
}

// -----

func.func @result(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  // ERROR: error: [E2001] mind.sum has type tensor<f32[2]>, but tensor<f32[3]> is declared
  %0 = "mind.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<2x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @attribute(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // ERROR: error: {{.*}}attribute{{.*}}new_shape
  %0 = "mind.reshape"(%x) : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

func.func @operands(%x: tensor<2xf32>) -> tensor<2xf32> {
  // ERROR: error: {{.*}}operand
  %0 = "mind.mul"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @signless(%x: tensor<2xi32>) -> tensor<2xi32> {
  // ERROR: error: [E4004] mind.neg takes and returns tensors of a known dtype and static shape
  %0 = "mind.neg"(%x) : (tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

func.func @unknown(%x: tensor<2xf32>) -> tensor<2xf32> {
  // ERROR: error: {{.*}}mind.nope
  %0 = "mind.nope"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// ERROR: error: use of undeclared SSA value name
func.func @syntax(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %y : tensor<2xf32>
}
