// RUN: mind-opt %s --pass-pipeline='builtin.module(convert-mind-to-linalg,func.func(canonicalize{max-iterations=3},cse))' | FileCheck %s --check-prefix=LINALG
// RUN: mind-opt %s --pass-pipeline='builtin.module(convert-mind-to-linalg,canonicalize,cse,mind-schedule,mind-tile,mind-bufferize,mind-to-llvm)' | FileCheck %s --check-prefix=LLVM
// RUN: mind-opt %s --convert-mind-to-linalg --linalg-generalize-named-ops --canonicalize=max-iterations=2 | FileCheck %s --check-prefix=FLAGS
// RUN: mind-opt --convert-mind-to-linalg --mlir-print-debuginfo %s | FileCheck %s --check-prefix=LOCATIONS
// RUN: mind-opt --convert-mind-to-linalg --cse --mlir-print-ir-after-all %s -o %t.mlir 2>&1 | FileCheck %s --check-prefix=AFTER-ALL
// RUN: mind-opt --list-passes | FileCheck %s --check-prefix=LIST

func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = "mind.sub"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("%7"("model.ir":3:1))
  %1 = "mind.sub"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// LINALG:      func.func @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
// LINALG-NEXT:   %0 = tensor.empty() : tensor<2x3xf32>
// LINALG-NEXT:   %1 = linalg.sub ins(%arg0, %arg1 : tensor<2x3xf32>, tensor<2x3xf32>) outs(%0 : tensor<2x3xf32>) -> tensor<2x3xf32>
// LINALG-NEXT:   return %1, %1 : tensor<2x3xf32>, tensor<2x3xf32>

// LLVM: llvm.func @main(%arg0: !llvm.ptr {llvm.noalias}, %arg1: !llvm.ptr {llvm.noalias}, %arg2: !llvm.ptr {llvm.noalias}, %arg3: !llvm.ptr {llvm.noalias}, %arg4: !llvm.ptr {llvm.noalias})
// LLVM: llvm.fsub

// FLAGS:     func.func @main
// FLAGS-NOT: linalg.sub
// FLAGS:     linalg.generic
// FLAGS:       arith.subf

// LOCATIONS: linalg.sub {{.+}} loc([[AT:#loc[0-9]*]])
// LOCATIONS: [[FILE:#loc[0-9]*]] = loc("model.ir":3:1)
// LOCATIONS: [[AT]] = loc("%7"([[FILE]]))

// AFTER-ALL: // -----// IR Dump After convert-mind-to-linalg //----- //
// AFTER-ALL: linalg.sub
// AFTER-ALL: linalg.sub
// AFTER-ALL: // -----// IR Dump After cse //----- //
// AFTER-ALL: linalg.sub
// AFTER-ALL-NOT: linalg.sub

// LIST:      --convert-mind-to-linalg {{.+}}
// LIST-NEXT: --mind-schedule {{.+}}
// LIST-NEXT: --mind-tile {{.+}}
// LIST-NEXT: --mind-bufferize {{.+}}
// LIST-NEXT: --mind-to-llvm {{.+}}
