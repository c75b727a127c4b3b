// What is printed before and after passes: ours as well as MLIR's, on modules as well as functions.
//
// RUN: mind-opt %s -convert-mind-to-linalg -cse -mlir-print-ir-before-all -o %t 2>&1 | FileCheck %s --check-prefix=BEFORE-ALL
// RUN: mind-opt %s --convert-mind-to-linalg --cse --mlir-print-ir-before=cse -o %t 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: mind-opt %s --convert-mind-to-linalg --cse --mlir-print-ir-after=convert-mind-to-linalg,sccp -o %t 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: mind-opt %s --pass-pipeline='builtin.module(convert-mind-to-linalg,func.func(cse,sccp),cse)' --mlir-print-ir-after-all -o %t 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: mind-opt %s --pass-pipeline='builtin.module(convert-mind-to-linalg,func.func(cse,sccp),cse)' --mlir-print-ir-after-all --mlir-print-ir-after-change -o %t 2>&1 | FileCheck %s --check-prefix=CHANGE
// RUN: mind-opt %s --pass-pipeline='builtin.module(convert-mind-to-linalg,func.func(cse))' --mlir-print-ir-after=cse --mlir-print-ir-module-scope -o %t 2>&1 | FileCheck %s --check-prefix=MODULE
// RUN: not mind-opt %s --cse --mind-schedule --mlir-print-ir-after-failure 2>&1 | FileCheck %s --check-prefix=FAILURE
// RUN: not mind-opt %s --one-shot-bufferize --mlir-print-ir-after-all 2>&1 | FileCheck %s --check-prefix=FAILURE-MLIR
// RUN: mind-opt %s --convert-mind-to-linalg --cse --mlir-print-ir-after=cse --mlir-print-local-scope --mlir-print-debuginfo -o %t 2>&1 | FileCheck %s --check-prefix=LOCAL
//
// A dump is the same in every run.
// RUN: mind-opt %s --convert-mind-to-linalg --mind-schedule --canonicalize --mlir-print-ir-after-all -o %t 2>%t.1
// RUN: mind-opt %s --convert-mind-to-linalg --mind-schedule --canonicalize --mlir-print-ir-after-all -o %t 2>%t.2
// RUN: diff %t.1 %t.2

func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "mind.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "mind.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

func.func @g(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

// BEFORE-ALL:     // -----// IR Dump Before convert-mind-to-linalg //----- //
// BEFORE-ALL:     mind.neg
// BEFORE-ALL:     // -----// IR Dump Before cse //----- //
// BEFORE-ALL:     linalg.negf
// BEFORE-ALL-NOT: IR Dump

// BEFORE-NOT: convert-mind-to-linalg
// BEFORE:     // -----// IR Dump Before cse //----- //
// BEFORE-NEXT: module {
// BEFORE-NOT: mind.neg
// BEFORE:     linalg.negf
// BEFORE-NOT: IR Dump

// AFTER-NOT: cse
// AFTER:     // -----// IR Dump After convert-mind-to-linalg //----- //
// AFTER:     linalg.negf
// AFTER-NOT: IR Dump

// NESTED:      IR Dump After convert-mind-to-linalg //
// NESTED:      IR Dump After cse //
// NESTED-NEXT: {{^}}func.func @f
// NESTED:      IR Dump After sccp //
// NESTED-NEXT: {{^}}func.func @f
// NESTED:      IR Dump After cse //
// NESTED-NEXT: {{^}}func.func @g
// NESTED:      IR Dump After sccp //
// NESTED-NEXT: {{^}}func.func @g
// NESTED:      IR Dump After cse //
// NESTED-NEXT: module {
// NESTED-NOT:  IR Dump

// CHANGE:      IR Dump After convert-mind-to-linalg //
// CHANGE:      IR Dump After cse //
// CHANGE-NEXT: {{^}}func.func @f
// CHANGE-NOT:  IR Dump

// MODULE:      // -----// IR Dump After cse ('func.func' operation: @f) //----- //
// MODULE-NEXT: module {
// MODULE:        func.func @g
// MODULE:      // -----// IR Dump After cse ('func.func' operation: @g) //----- //
// MODULE-NEXT: module {
// MODULE:        func.func @f

// FAILURE-NOT:  After cse
// FAILURE:      error: [E7002] pass 'mind-schedule' expects linalg on tensors, found 'mind.neg': run convert-mind-to-linalg first
// FAILURE:      // -----// IR Dump After mind-schedule Failed //----- //
// FAILURE-NEXT: module {

// FAILURE-MLIR: error: op was not bufferized
// FAILURE-MLIR: // -----// IR Dump After one-shot-bufferize{{.*}} Failed //----- //

// LOCAL:     linalg.negf {{.+}} loc("{{.*}}dumps.mlir":[[# @LINE - 60]]:8)
// LOCAL-NOT: #loc
