// Loops, branches and calls go through our passes one by one, as they do in the compiler.
//
// RUN: mind-opt %s --convert-mind-to-linalg | FileCheck %s
// RUN: mind-opt %s --convert-mind-to-linalg --mind-schedule --mind-bufferize --mind-to-llvm | FileCheck %s --check-prefix=LLVM
// RUN: not mind-opt %S/Inputs/indexed.mlir --convert-mind-to-linalg 2>&1 | FileCheck %s --check-prefix=INDEXED

func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  %r = scf.if %c -> (tensor<4xf32>) {
    %n = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = "mind.add"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// CHECK:     func.func private @twice
// CHECK:       linalg.add
// CHECK:     func.func @main
// CHECK:       scf.if
// CHECK:         call @twice

// LLVM: llvm.func @main
// LLVM: llvm.cond_br

// INDEXED: [E7002] pass 'convert-mind-to-linalg' expects 'tensor.extract' of tensors of rank 0 alone
