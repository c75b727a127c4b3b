// A branch of a chunk that chooses among vector code: no function gains by LLVM's passes.
//
// RUN: mind-opt %s --mind-to-llvm | FileCheck %s

func.func @main(%a: memref<8x16xf32>, %o: memref<8x16xf32>, %scratch: memref<0xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %early = arith.cmpi ult, %i, %c4 : index
    scf.if %early {
      %x = vector.load %a[%i, %c0] : memref<8x16xf32>, vector<16xf32>
      vector.store %x, %o[%i, %c0] : memref<8x16xf32>, vector<16xf32>
    } else {
      %x = vector.load %a[%c0, %c0] : memref<8x16xf32>, vector<16xf32>
      vector.store %x, %o[%i, %c0] : memref<8x16xf32>, vector<16xf32>
    }
  } {mind.parallel}
  return
}

// CHECK-NOT:  mind.scalar
// CHECK:      llvm.func internal @main_chunk_0(
// CHECK-NOT:  mind.scalar
// CHECK:      llvm.func @main(
