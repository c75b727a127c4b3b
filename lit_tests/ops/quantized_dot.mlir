// RUN: not mind-opt %s --split-input-file --convert-mind-to-linalg >%t.out 2>%t.err
// RUN: FileCheck %s --check-prefix=LINALG --input-file %t.out
// RUN: FileCheck %s --check-prefix=ERROR --input-file %t.err
// RUN: not mind-opt %s --split-input-file | torch-mlir-opt --irdl-file=%irdl | FileCheck %s --check-prefix=MIND
//
// Multiplies activations with weights of few bits, as they lie in memory: the scheduling stage sees the mark.

func.func @main(%x: tensor<2x64xf32> {mind.name = "x"}, %w: tensor<5x2x18xui8> {mind.name = "w"}) -> tensor<2x5xf32> attributes {mind.profile = "ptir-v0.4"} {
  %0 = "mind.quantized_dot"(%x, %w) {activations = "int8", format = "q4_0"} : (tensor<2x64xf32>, tensor<5x2x18xui8>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// MIND:      func.func @main
// MIND-NEXT:   %0 = "mind.quantized_dot"(%arg0, %arg1) {activations = "int8", format = "q4_0"} : (tensor<2x64xf32>, tensor<5x2x18xui8>) -> tensor<2x5xf32>

// LINALG:      #map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2)>
// LINALG-NEXT: #map1 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>
// LINALG-NEXT: #map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>
// LINALG:        func.func @main(%arg0: tensor<2x64xf32> {mind.name = "x"}, %arg1: tensor<5x2x18xi8> {mind.name = "w"}) -> tensor<2x5xf32> {
// LINALG-NEXT:     %0 = tensor.empty() : tensor<2x5xf32>
// LINALG-NEXT:     %1 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%arg0, %arg1 : tensor<2x64xf32>, tensor<5x2x18xi8>) outs(%0 : tensor<2x5xf32>) attrs =  {mind.activations = "int8", mind.quantized = "q4_0"} {
// LINALG-NEXT:     ^bb0(%in: f32, %in_0: i8, %out: f32):
// LINALG-NEXT:       %2 = arith.remf %out, %in : f32
// LINALG-NEXT:       %3 = arith.uitofp %in_0 : i8 to f32
// LINALG-NEXT:       %4 = arith.remf %2, %3 : f32
// LINALG-NEXT:       linalg.yield %4 : f32
// LINALG-NEXT:     } -> tensor<2x5xf32>
// LINALG-NEXT:     return %1 : tensor<2x5xf32>

// -----

func.func @other_format(%x: tensor<2x64xf32>, %w: tensor<5x2x18xui8>) -> tensor<2x5xf32> {
  // ERROR: error: [E3003] a block of format q8_0 has 34 bytes, found tensor<ui8[5, 2, 18]>
  %0 = "mind.quantized_dot"(%x, %w) {activations = "float", format = "q8_0"} : (tensor<2x64xf32>, tensor<5x2x18xui8>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

func.func @no_scales(%x: tensor<2x64xf32>, %w: tensor<5x64xsi8>) -> tensor<2x5xf32> {
  // ERROR: error: [E2007] QuantizedDot takes scales, and zero points where there are any, after weights of format int8, found 0 tensors
  %0 = "mind.quantized_dot"(%x, %w) {activations = "float", format = "int8"} : (tensor<2x64xf32>, tensor<5x64xsi8>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}
