// The pool of threads (`threads.mlir`) as a part of a library for C: started by the first loop that is shared.
//
// Loops call `mind_parallel`, which is defined here; what `threads.mlir` calls so has another name then.

llvm.mlir.global internal @once(0 : i64) {alignment = 8 : i64} : i64
llvm.mlir.global internal @is_started(0 : i32) {alignment = 4 : i64} : i32
llvm.mlir.global internal @cores(1 : i64) {alignment = 8 : i64} : i64

llvm.func @pthread_atfork(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
llvm.func @pthread_once(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @sched_getaffinity(i32, i64, !llvm.ptr) -> i32

// What runs loops: the pool here, unless whoever loads the library has one and puts it in this place.
llvm.mlir.global internal @runner() {alignment = 8 : i64, externally_initialized} : !llvm.ptr {
  %own = llvm.mlir.addressof @run_here : !llvm.ptr
  llvm.return %own : !llvm.ptr
}

// Runs a loop as the pool does (see `threads.mlir`).
llvm.func internal @mind_parallel(%body: !llvm.ptr, %data: !llvm.ptr, %chunks: i64, %limit: i64) attributes {no_inline} {
  %runner_at = llvm.mlir.addressof @runner : !llvm.ptr
  %runner = llvm.load %runner_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  llvm.call %runner(%body, %data, %chunks, %limit) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  llvm.return
}

llvm.func internal @run_here(%body: !llvm.ptr, %data: !llvm.ptr, %chunks: i64, %limit: i64) {
  llvm.call @ensure_started() : () -> ()
  llvm.call @parallel(%body, %data, %chunks, %limit) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  llvm.return
}

llvm.func internal @ensure_started() attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %is_started_at = llvm.mlir.addressof @is_started : !llvm.ptr
  %started = llvm.load %is_started_at atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
  %is_started = llvm.icmp "ne" %started, %zero : i32
  llvm.cond_br %is_started, ^end, ^start
^start:
  // The first to come starts, and others wait until that is done.
  %once_at = llvm.mlir.addressof @once : !llvm.ptr
  %start_at = llvm.mlir.addressof @start : !llvm.ptr
  %status = llvm.call @pthread_once(%once_at, %start_at) : (!llvm.ptr, !llvm.ptr) -> i32
  llvm.br ^end
^end:
  llvm.return
}

llvm.func internal @start() {
  %one = llvm.mlir.constant(1 : i32) : i32
  %nothing = llvm.mlir.zero : !llvm.ptr
  %is_started_at = llvm.mlir.addressof @is_started : !llvm.ptr
  %cores_at = llvm.mlir.addressof @cores : !llvm.ptr
  %forked = llvm.mlir.addressof @mind_threads_forked : !llvm.ptr
  %cores = llvm.call @usable_cores() : () -> i64
  llvm.store %cores, %cores_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.call @set_threads(%cores) : (i64) -> ()
  // The fourth argument is for __register_atfork, which takes the place of this function where code is loaded
  // by other means than the system's linker; pthread_atfork has three.
  %registered = llvm.call @pthread_atfork(%nothing, %nothing, %forked, %nothing) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.store %one, %is_started_at atomic release {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.return
}

// Returns how many cores the calling thread may run on: 1 where the system does not say.
llvm.func internal @usable_cores() -> i64 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %words = llvm.mlir.constant(1024 : i64) : i64
  %bytes = llvm.mlir.constant(8192 : i64) : i64
  %most = llvm.mlir.constant(1024 : i64) : i64
  %self = llvm.mlir.constant(0 : i32) : i32
  %empty = llvm.mlir.constant(0 : i8) : i8
  %mask = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  "llvm.intr.memset"(%mask, %empty, %bytes) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
  %status = llvm.call @sched_getaffinity(%self, %bytes, %mask) : (i32, i64, !llvm.ptr) -> i32
  %is_told = llvm.icmp "eq" %status, %self : i32
  llvm.cond_br %is_told, ^next(%zero, %zero : i64, i64), ^end(%one : i64)
^next(%word: i64, %sum: i64):
  %at = llvm.getelementptr %mask[%word] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %bits = llvm.load %at : !llvm.ptr -> i64
  %set = llvm.intr.ctpop(%bits) : (i64) -> i64
  %total = llvm.add %sum, %set : i64
  %following = llvm.add %word, %one : i64
  %is_left = llvm.icmp "slt" %following, %words : i64
  llvm.cond_br %is_left, ^next(%following, %total : i64, i64), ^end(%total : i64)
^end(%found: i64):
  %some = llvm.intr.smax(%found, %one) : (i64, i64) -> i64
  %cores = llvm.intr.smin(%some, %most) : (i64, i64) -> i64
  llvm.return %cores : i64
}

// Lets loops use so many threads from now on.
llvm.func internal @set_threads(%threads: i64) {
  %spin_ns = llvm.mlir.constant(200000 : i64) : i64
  %cores_at = llvm.mlir.addressof @cores : !llvm.ptr
  %cores = llvm.load %cores_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_more = llvm.icmp "sgt" %threads, %cores : i64
  %is_crowded = llvm.zext %is_more : i1 to i64
  llvm.call @mind_threads_configure(%threads, %spin_ns, %is_crowded) : (i64, i64, i64) -> ()
  llvm.return
}

// What C calls: 1 to 1024 threads, or as many as the process has cores where the number is below 1.
llvm.func internal @set_num_threads(%threads: i32) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %most = llvm.mlir.constant(1024 : i64) : i64
  llvm.call @ensure_started() : () -> ()
  %cores_at = llvm.mlir.addressof @cores : !llvm.ptr
  %cores = llvm.load %cores_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %wide = llvm.sext %threads : i32 to i64
  %is_number = llvm.icmp "sgt" %wide, %zero : i64
  %few = llvm.intr.smin(%wide, %most) : (i64, i64) -> i64
  %wanted = llvm.select %is_number, %few, %cores : i1, i64
  llvm.call @set_threads(%wanted) : (i64) -> ()
  llvm.return
}
