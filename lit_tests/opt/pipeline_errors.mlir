// RUN: not mind-opt %s --pass-pipeline='builtin.module(func.func(mind-schedule))' 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: not mind-opt %s --pass-pipeline='builtin.module(mind-schedule{threads=2})' 2>&1 | FileCheck %s --check-prefix=OPTIONS
// RUN: not mind-opt %s --pass-pipeline='builtin.module(cse,no-such-pass)' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not mind-opt %s --pass-pipeline='builtin.module(func.func(cse)' 2>&1 | FileCheck %s --check-prefix=BRACKETS
// RUN: not mind-opt %s --pass-pipeline='builtin.module(cse)' --cse 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not mind-opt %s --one-shot-bufferize 2>&1 | FileCheck %s --check-prefix=FAILED
// RUN: not mind-opt %s --mind-bufferize --convert-mind-to-linalg 2>&1 | FileCheck %s --check-prefix=ORDER

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "mind.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// NESTED: Error: pass 'mind-schedule' runs on a whole builtin.module, found it in 'func.func(...)'
// OPTIONS: Error: pass 'mind-schedule' takes no options, found '{threads=2}'
// UNKNOWN: Error: 'no-such-pass' does not refer to a registered pass or pass pipeline
// BRACKETS: Error: missing ')' in pass pipeline
// BOTH: Error: give --pass-pipeline or single passes (cse), not both
// FAILED: pipeline_errors.mlir:10:8: error: op was not bufferized
// FAILED-NEXT: %0 = "mind.exp"(%x)
// ORDER: pipeline_errors.mlir:10:8: error: [E7002] pass 'mind-bufferize' expects linalg on tensors, found 'mind.exp': run convert-mind-to-linalg first
// ORDER-NEXT: %0 = "mind.exp"(%x)
