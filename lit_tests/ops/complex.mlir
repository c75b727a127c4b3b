// RUN: %mind-mlir compile %s --disable-pass=all --emit=linalg | FileCheck %s --check-prefix=LINALG
// RUN: %mind-mlir compile %s --disable-pass=all --emit=mind | torch-mlir-opt --irdl-file=%irdl | FileCheck %s --check-prefix=MIND

// Makes complex numbers of their parts elementwise.

func.func @main(%z: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<3xcomplex<f32>> {
  %0 = stablehlo.complex %z, %w : tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}

// MIND:        func.func @main(%arg0: tensor<3xf32> {mind.name = "arg0"}, %arg1: tensor<3xf32> {mind.name = "arg1"}) -> tensor<3xcomplex<f32>> attributes {mind.profile = "ptir-v0.4"} {
// MIND-NEXT:     %0 = "mind.complex"(%arg0, %arg1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xcomplex<f32>>
// MIND-NEXT:     return %0 : tensor<3xcomplex<f32>>

// LINALG:      %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg0, %arg1 : tensor<3xf32>, tensor<3xf32>) outs(%0 : tensor<3xcomplex<f32>>) {
// LINALG-NEXT: ^bb0(%in: f32, %in_0: f32, %out: complex<f32>):
// LINALG-NEXT: %2 = complex.create %in, %in_0 : complex<f32>
// LINALG-NEXT: linalg.yield %2 : complex<f32>
