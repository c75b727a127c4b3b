// What `threads.mlir` needs of an x86-64 processor under Linux.

// Tells the processor that this is a loop that waits.
llvm.func internal @relax() attributes {always_inline} {
  llvm.call_intrinsic "llvm.x86.sse2.pause"() : () -> ()
  llvm.return
}

// Returns how this thread computes with floating-point numbers: MXCSR but for the flags of what has happened.
llvm.func internal @float_mode() -> i64 attributes {always_inline} {
  %one = llvm.mlir.constant(1 : i32) : i32
  %control = llvm.mlir.constant(0xFFC0 : i32) : i32
  %register_at = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%register_at) : (!llvm.ptr) -> ()
  %register = llvm.load %register_at : !llvm.ptr -> i32
  %mode = llvm.and %register, %control : i32
  %wide = llvm.zext %mode : i32 to i64
  llvm.return %wide : i64
}

// Lets this thread compute as another one does; the register is only written where that changes anything.
llvm.func internal @set_float_mode(%mode: i64) attributes {always_inline} {
  %one = llvm.mlir.constant(1 : i32) : i32
  %register_at = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
  %own = llvm.call @float_mode() : () -> i64
  %is_set = llvm.icmp "eq" %own, %mode : i64
  llvm.cond_br %is_set, ^end, ^set
^set:
  %register = llvm.trunc %mode : i64 to i32
  llvm.store %register, %register_at : i32, !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%register_at) : (!llvm.ptr) -> ()
  llvm.br ^end
^end:
  llvm.return
}

llvm.func internal @futex_number() -> i64 attributes {always_inline} {
  %number = llvm.mlir.constant(202 : i64) : i64
  llvm.return %number : i64
}
