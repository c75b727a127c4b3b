// What `threads.mlir` needs of a 64-bit Arm processor under Linux.

// Tells the processor that this is a loop that waits.
llvm.func internal @relax() attributes {always_inline} {
  %yield = llvm.mlir.constant(1 : i32) : i32
  llvm.call_intrinsic "llvm.aarch64.hint"(%yield) : (i32) -> ()
  llvm.return
}

// Returns how this thread computes with floating-point numbers.
llvm.func internal @float_mode() -> i64 attributes {always_inline} {
  %mode = llvm.call_intrinsic "llvm.aarch64.get.fpcr"() : () -> i64
  llvm.return %mode : i64
}

// Lets this thread compute as another one does; the register is only written where that changes anything.
llvm.func internal @set_float_mode(%mode: i64) attributes {always_inline} {
  %own = llvm.call @float_mode() : () -> i64
  %is_set = llvm.icmp "eq" %own, %mode : i64
  llvm.cond_br %is_set, ^end, ^set
^set:
  llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%mode) : (i64) -> ()
  llvm.br ^end
^end:
  llvm.return
}

llvm.func internal @futex_number() -> i64 attributes {always_inline} {
  %number = llvm.mlir.constant(98 : i64) : i64
  llvm.return %number : i64
}
