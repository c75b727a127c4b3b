// RUN: %mind-mlir compile %s --disable-pass=all --emit=linalg | FileCheck %s --check-prefix=LINALG
// RUN: %mind-mlir compile %s --disable-pass=all --emit=mind | torch-mlir-opt --irdl-file=%irdl | FileCheck %s --check-prefix=MIND

// Takes the real parts of complex numbers elementwise.

func.func @main(%z: tensor<3xcomplex<f32>>) -> tensor<3xf32> {
  %0 = stablehlo.real %z : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// MIND:        func.func @main(%arg0: tensor<3xcomplex<f32>> {mind.name = "arg0"}) -> tensor<3xf32> attributes {mind.profile = "ptir-v0.4"} {
// MIND-NEXT:     %0 = "mind.real"(%arg0) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
// MIND-NEXT:     return %0 : tensor<3xf32>

// LINALG:      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : tensor<3xcomplex<f32>>) outs(%0 : tensor<3xf32>) {
// LINALG-NEXT: ^bb0(%in: complex<f32>, %out: f32):
// LINALG-NEXT: %2 = complex.re %in : complex<f32>
// LINALG-NEXT: linalg.yield %2 : f32
