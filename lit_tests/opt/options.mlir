// The options of mlir-opt, in its spellings.
//
// RUN: mind-opt %s -mlir-print-op-generic=true | FileCheck %s --check-prefix=GENERIC
// RUN: mind-opt %s --mlir-print-op-generic --mlir-print-op-generic=0 | FileCheck %s --check-prefix=CUSTOM
// RUN: mind-opt - -o - < %s | FileCheck %s --check-prefix=CUSTOM
// RUN: mind-opt %s --mlir-elide-elementsattrs-if-larger=2 | FileCheck %s --check-prefix=ELIDED
// RUN: mind-opt %s --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOCAL
// RUN: mind-opt %s --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=NAMED
// RUN: mind-opt %s --dump-pass-pipeline --cse --affine-loop-invariant-code-motion --affine-scalrep -o %t 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: mind-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: mind-opt --help | FileCheck %s --check-prefix=HELP
//
// RUN: mind-opt %s -mlir-timing --pass-pipeline='builtin.module(func.func(cse,canonicalize),mind-schedule)' -o %t 2>&1 | FileCheck %s --check-prefix=TREE
// RUN: mind-opt %s -mlir-timing -mlir-timing-display=list --cse --mind-schedule -o %t 2>&1 | FileCheck %s --check-prefix=LIST
//
// What MLIR's own tool prints for the same options, where it knows the dialects.
// RUN: mind-opt %s --cse --mlir-print-local-scope --mlir-print-debuginfo -o %t.ours
// RUN: torch-mlir-opt %s --cse --mlir-print-local-scope --mlir-print-debuginfo -o %t.theirs
// RUN: diff %t.ours %t.theirs

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = linalg.add ins(%x, %c : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32> loc("sum")
  return %0 : tensor<4xf32>
}

// GENERIC: "func.func"()

// CUSTOM: func.func @main(

// ELIDED: dense_resource<__elided__> : tensor<4xf32>

// LOCAL:     linalg.add {{.*}} loc("sum")
// LOCAL:     return %{{.*}} loc("{{.*}}options.mlir":24:3)
// LOCAL-NOT: #loc

// NAMED: %sum = linalg.add

// PIPELINE:      {{^}}builtin.module(
// PIPELINE-NEXT: {{^}}  cse,
// PIPELINE-NEXT: {{^}}  func.func(
// PIPELINE-NEXT: {{^}}    affine-loop-invariant-code-motion,
// PIPELINE-NEXT: {{^}}    affine-scalrep
// PIPELINE-NEXT: {{^}}  )
// PIPELINE-NEXT: {{^}})

// DIALECTS: Available Dialects: {{.*}},linalg,{{.*}},mind,{{.*}},vector,

// HELP:     --mlir-timing-display [list|tree]
// HELP:     Passes of mind-mlir:
// HELP:       --mind-tile
// HELP:       --mind-bufferize
// HELP:     Passes of MLIR
// HELP:       {{ }}canonicalize

// TREE:      ... Execution time report ...
// TREE:        Total Execution Time: {{[0-9.]+}} seconds
// TREE:        ----Wall Time----  ----Name----
// TREE-NEXT:   {{ *[0-9.]+ \( *[0-9.]+%\)}}  Import of MLIR
// TREE:        {{ *[0-9.]+ \( *[0-9.]+%\)}}  Parser
// TREE-NEXT:   {{ *[0-9.]+ \( *[0-9.]+%\)}}  'func.func' Pipeline
// TREE-NEXT:   {{ *[0-9.]+ \( *[0-9.]+%\)}}    cse
// TREE-NEXT:   {{ *[0-9.]+ \( *[0-9.]+%\)}}    canonicalize
// TREE-NEXT:   {{ *[0-9.]+ \( *[0-9.]+%\)}}  mind-schedule
// TREE-NEXT:   {{ *[0-9.]+ \( *[0-9.]+%\)}}  Output
// TREE-NEXT:   {{ *[0-9.]+ \( *[0-9.]+%\)}}  Rest
// TREE-NEXT:   {{ *[0-9.]+ \(100.0%\)}}  Total

// LIST:     ----Wall Time----  ----Name----
// LIST-DAG: )  cse
// LIST-DAG: )  mind-schedule
// LIST-DAG: )  Parser
// LIST:     )  Rest
// LIST-NEXT: (100.0%)  Total
