// A loop that threads may share, in the LLVM dialect: a frame, a call of the pool, and the function of a chunk.
//
// RUN: mind-opt %s --mind-to-llvm | FileCheck %s

func.func @main(%a: memref<8x64xf32>, %o: memref<8x64xf32>, %scratch: memref<0xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %s = memref.load %a[%c0, %c0] : memref<8x64xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %x = memref.load %a[%i, %j] : memref<8x64xf32>
      %y = arith.mulf %x, %s : f32
      memref.store %y, %o[%i, %j] : memref<8x64xf32>
    }
  } {mind.parallel}
  return
}

// CHECK:      llvm.func @mind_parallel(!llvm.ptr, !llvm.ptr, i64, i64)
// CHECK:      llvm.func internal @main_chunk_0_thunk(%[[DATA:.*]]: !llvm.ptr, %[[CHUNK:.*]]: i64, %{{.*}}: !llvm.ptr)
// CHECK-NEXT:   %[[P0:.*]] = llvm.getelementptr %[[DATA]][0, 0] : {{.*}}, !llvm.struct<(ptr, f32, ptr)>
// CHECK-NEXT:   %[[A:.*]] = llvm.load %[[P0]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:   %[[P1:.*]] = llvm.getelementptr %[[DATA]][0, 1]
// CHECK-NEXT:   %[[S:.*]] = llvm.load %[[P1]] : !llvm.ptr -> f32
// CHECK-NEXT:   %[[P2:.*]] = llvm.getelementptr %[[DATA]][0, 2]
// CHECK-NEXT:   %[[O:.*]] = llvm.load %[[P2]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:   llvm.call @main_chunk_0(%[[CHUNK]], %[[A]], %[[S]], %[[O]])
// CHECK-NEXT:   llvm.return
// CHECK:      llvm.func internal @main_chunk_0(%{{.*}}: i64, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: f32, %{{.*}}: !llvm.ptr {llvm.noalias})
// CHECK-SAME:   mind.scalar, no_inline, prefer_vector_width
// CHECK:        llvm.br ^{{.*}} {loop_annotation = #loop_annotation}
// CHECK:      llvm.func internal @main_chunk_0_launch(%[[COUNT:.*]]: i64, %[[A:.*]]: !llvm.ptr, %[[S:.*]]: f32, %[[O:.*]]: !llvm.ptr)
// CHECK:        %[[FRAME:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, f32, ptr)> : (i64) -> !llvm.ptr
// CHECK:        llvm.store %[[A]], %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK:        llvm.store %[[S]], %{{.*}} : f32, !llvm.ptr
// CHECK:        llvm.store %[[O]], %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK:        %[[BODY:.*]] = llvm.mlir.addressof @main_chunk_0_thunk : !llvm.ptr
// CHECK:        llvm.call @mind_parallel(%[[BODY]], %[[FRAME]], %[[COUNT]], %{{.*}})
// CHECK:      llvm.func @main(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}})
// CHECK:        llvm.call @main_chunk_0_launch(
