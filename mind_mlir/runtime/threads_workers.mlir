// The workers of the pool (`threads.mlir`): their lives, how they are started, woken and counted.
//
// An idle worker spins for a while, then sleeps on the futex `wake`. Nobody is missed: a worker counts itself
// among the sleepers before it looks at the ticket for the last time, an owner changes the ticket before it
// looks for sleepers, and both orders are sequentially consistent.
//
// There are at most `setting` threads, callers among them: an idle worker that is one too many ends, and whoever
// lowers the setting wakes those that sleep.

llvm.mlir.global internal @refused(0 : i64) : i64
llvm.mlir.global internal @spin_ns(0 : i64) : i64
llvm.mlir.global internal @crowded(0 : i64) : i64
llvm.mlir.global internal constant @thread_name("mind-mlir\00") : !llvm.array<10 x i8>

llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr
llvm.func @clock_gettime(i32, !llvm.ptr) -> i32
llvm.func @free(!llvm.ptr)
llvm.func @prctl(i32, ...) -> i32
llvm.func @pthread_create(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
llvm.func @pthread_detach(i64) -> i32
llvm.func @pthread_sigmask(i32, !llvm.ptr, !llvm.ptr) -> i32
llvm.func @sigdelset(!llvm.ptr, i32) -> i32
llvm.func @sigfillset(!llvm.ptr) -> i32
llvm.func @syscall(i64, ...) -> i64

// What a worker does until it is one too many, with memory of its own for the chunks that it runs.
llvm.func internal @worker(%own: !llvm.ptr) -> !llvm.ptr {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %polls_a_look = llvm.mlir.constant(63 : i64) : i64
  %remaining_mask = llvm.mlir.constant(0x3FFFF : i64) : i64
  %set_name = llvm.mlir.constant(15 : i32) : i32
  %wait_private = llvm.mlir.constant(128 : i32) : i32
  %for_ever = llvm.mlir.zero : !llvm.ptr
  %ticket_at = llvm.mlir.addressof @ticket : !llvm.ptr
  %helping_at = llvm.mlir.addressof @helping : !llvm.ptr
  %sleepers_at = llvm.mlir.addressof @sleepers : !llvm.ptr
  %wake_at = llvm.mlir.addressof @wake : !llvm.ptr
  %workers_at = llvm.mlir.addressof @workers : !llvm.ptr
  %setting_at = llvm.mlir.addressof @setting : !llvm.ptr
  %spin_ns_at = llvm.mlir.addressof @spin_ns : !llvm.ptr
  %crowded_at = llvm.mlir.addressof @crowded : !llvm.ptr
  %name_at = llvm.mlir.addressof @thread_name : !llvm.ptr
  %futex = llvm.call @futex_number() : () -> i64
  %named = llvm.call @prctl(%set_name, %name_at) vararg(!llvm.func<i32 (i32, ...)>) : (i32, !llvm.ptr) -> i32
  llvm.br ^busy
^busy:
  %start = llvm.call @nanoseconds() : () -> i64
  llvm.br ^poll(%one : i64)
^poll(%polls: i64):
  %ticket = llvm.load %ticket_at atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %remaining = llvm.and %ticket, %remaining_mask : i64
  %is_work = llvm.icmp "ne" %remaining, %zero : i64
  llvm.cond_br %is_work, ^work, ^pause
^work:
  %ran = llvm.call @help(%own) : (!llvm.ptr) -> i64
  %has_worked = llvm.icmp "ne" %ran, %zero : i64
  llvm.cond_br %has_worked, ^busy, ^pause
^pause:
  llvm.call @relax() : () -> ()
  %one_more = llvm.add %polls, %one : i64
  %phase = llvm.and %polls, %polls_a_look : i64
  %is_look = llvm.icmp "eq" %phase, %zero : i64
  llvm.cond_br %is_look, ^look, ^poll(%one_more : i64)
^look:
  // With more threads than cores, a spinning one may keep one that works from its core.
  %crowded = llvm.load %crowded_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_crowded = llvm.icmp "ne" %crowded, %zero : i64
  llvm.cond_br %is_crowded, ^give_way, ^judge
^give_way:
  %yielded = llvm.call @sched_yield() : () -> i32
  llvm.br ^judge
^judge:
  %spin_ns = llvm.load %spin_ns_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %now = llvm.call @nanoseconds() : () -> i64
  %idle = llvm.sub %now, %start : i64
  %is_idle = llvm.icmp "sgt" %idle, %spin_ns : i64
  llvm.cond_br %is_idle, ^lie_down, ^poll(%one_more : i64)
^lie_down:
  // Read first: who lowers the setting after it has been looked at changes this.
  %seen = llvm.load %wake_at atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
  %known = llvm.load %workers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  llvm.br ^consider(%known : i64)
^consider(%workers: i64):
  %setting = llvm.load %setting_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_wanted = llvm.icmp "slt" %workers, %setting : i64
  llvm.cond_br %is_wanted, ^count_in, ^resign
^resign:
  %fewer = llvm.add %workers, %minus_one : i64
  %exchange = llvm.cmpxchg %workers_at, %workers, %fewer acq_rel monotonic {alignment = 8 : i64} : !llvm.ptr, i64
  %found = llvm.extractvalue %exchange[0] : !llvm.struct<(i64, i1)>
  %has_resigned = llvm.extractvalue %exchange[1] : !llvm.struct<(i64, i1)>
  llvm.cond_br %has_resigned, ^end, ^consider(%found : i64)
^end:
  llvm.call @free(%own) : (!llvm.ptr) -> ()
  llvm.return %for_ever : !llvm.ptr
^count_in:
  %asleep = llvm.atomicrmw add %sleepers_at, %one seq_cst : !llvm.ptr, i64
  %last = llvm.load %ticket_at atomic seq_cst {alignment = 8 : i64} : !llvm.ptr -> i64
  %left = llvm.and %last, %remaining_mask : i64
  %are_left = llvm.icmp "ne" %left, %zero : i64
  %seats = llvm.call @seats() : () -> i64
  %helpers = llvm.load %helping_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_seat = llvm.icmp "slt" %helpers, %seats : i64
  %is_needed = llvm.and %are_left, %is_seat : i1
  llvm.cond_br %is_needed, ^rise, ^sleep
^sleep:
  %slept = llvm.call @syscall(%futex, %wake_at, %wait_private, %seen, %for_ever) vararg(!llvm.func<i64 (i64, ...)>) : (i64, !llvm.ptr, i32, i32, !llvm.ptr) -> i64
  llvm.br ^rise
^rise:
  %others = llvm.atomicrmw add %sleepers_at, %minus_one seq_cst : !llvm.ptr, i64
  // An owner wakes two: each wakes two more while there are chunks and seats left.
  %present = llvm.load %ticket_at atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %open = llvm.and %present, %remaining_mask : i64
  %more_seats = llvm.call @seats() : () -> i64
  %seated = llvm.load %helping_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %vacant = llvm.sub %more_seats, %seated : i64
  %useful = llvm.intr.smin(%open, %vacant) : (i64, i64) -> i64
  %further = llvm.add %useful, %minus_one : i64
  %still_asleep = llvm.add %others, %minus_one : i64
  %to_wake = llvm.intr.smin(%further, %still_asleep) : (i64, i64) -> i64
  llvm.call @wake_workers(%to_wake) : (i64) -> ()
  llvm.br ^busy
}

// Wakes up to two workers, if there are any to wake.
llvm.func internal @wake_workers(%wanted: i64) attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %one_wake = llvm.mlir.constant(1 : i32) : i32
  %wake_private = llvm.mlir.constant(129 : i32) : i32
  %wake_at = llvm.mlir.addressof @wake : !llvm.ptr
  %are_any = llvm.icmp "sgt" %wanted, %zero : i64
  llvm.cond_br %are_any, ^wake, ^end
^wake:
  %before = llvm.atomicrmw add %wake_at, %one_wake seq_cst : !llvm.ptr, i32
  %few = llvm.intr.smin(%wanted, %two) : (i64, i64) -> i64
  %count = llvm.trunc %few : i64 to i32
  %futex = llvm.call @futex_number() : () -> i64
  %woken = llvm.call @syscall(%futex, %wake_at, %wake_private, %count) vararg(!llvm.func<i64 (i64, ...)>) : (i64, !llvm.ptr, i32, i32) -> i64
  llvm.br ^end
^end:
  llvm.return
}

// Starts workers until there are `wanted`, by the owner of the slot. If the system refuses one, there are no
// more until the next `mind_threads_configure`.
llvm.func internal @start_workers(%wanted: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %nothing = llvm.mlir.zero : !llvm.ptr
  %success = llvm.mlir.constant(0 : i32) : i32
  %set_mask = llvm.mlir.constant(2 : i32) : i32
  %illegal = llvm.mlir.constant(4 : i32) : i32
  %bus = llvm.mlir.constant(7 : i32) : i32
  %arithmetic = llvm.mlir.constant(8 : i32) : i32
  %segmentation = llvm.mlir.constant(11 : i32) : i32
  %mask_words = llvm.mlir.constant(16 : i32) : i32
  %one_word = llvm.mlir.constant(1 : i32) : i32
  %alignment = llvm.mlir.constant(64 : i64) : i64
  %own_bytes = llvm.mlir.constant(0x80000 : i64) : i64
  %refused_at = llvm.mlir.addressof @refused : !llvm.ptr
  %workers_at = llvm.mlir.addressof @workers : !llvm.ptr
  %worker = llvm.mlir.addressof @worker : !llvm.ptr
  %blocked = llvm.alloca %mask_words x i64 : (i32) -> !llvm.ptr
  %previous = llvm.alloca %mask_words x i64 : (i32) -> !llvm.ptr
  %thread_at = llvm.alloca %one_word x i64 : (i32) -> !llvm.ptr
  %refused = llvm.load %refused_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_open = llvm.icmp "eq" %refused, %zero : i64
  llvm.cond_br %is_open, ^block, ^end
^block:
  // A new thread takes over the mask. Python handles signals in its main thread, so none may go to a worker,
  // but for those that a fault raises in the thread itself.
  %filled = llvm.call @sigfillset(%blocked) : (!llvm.ptr) -> i32
  %without_0 = llvm.call @sigdelset(%blocked, %illegal) : (!llvm.ptr, i32) -> i32
  %without_1 = llvm.call @sigdelset(%blocked, %bus) : (!llvm.ptr, i32) -> i32
  %without_2 = llvm.call @sigdelset(%blocked, %arithmetic) : (!llvm.ptr, i32) -> i32
  %without_3 = llvm.call @sigdelset(%blocked, %segmentation) : (!llvm.ptr, i32) -> i32
  %masked = llvm.call @pthread_sigmask(%set_mask, %blocked, %previous) : (i32, !llvm.ptr, !llvm.ptr) -> i32
  llvm.br ^next
^next:
  %count = llvm.load %workers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %are_missing = llvm.icmp "slt" %count, %wanted : i64
  llvm.cond_br %are_missing, ^create, ^unblock
^create:
  // The system gives pages of it when they are written.
  %own = llvm.call @aligned_alloc(%alignment, %own_bytes) : (i64, i64) -> !llvm.ptr
  %is_given = llvm.icmp "ne" %own, %nothing : !llvm.ptr
  llvm.cond_br %is_given, ^begin, ^refuse
^begin:
  // Before there is one: it may find that it is one too many.
  %before = llvm.atomicrmw add %workers_at, %one acq_rel : !llvm.ptr, i64
  %error = llvm.call @pthread_create(%thread_at, %nothing, %worker, %own) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  %is_created = llvm.icmp "eq" %error, %success : i32
  llvm.cond_br %is_created, ^detach, ^give_back
^detach:
  %thread = llvm.load %thread_at : !llvm.ptr -> i64
  %detached = llvm.call @pthread_detach(%thread) : (i64) -> i32
  llvm.br ^next
^give_back:
  %after = llvm.atomicrmw add %workers_at, %minus_one acq_rel : !llvm.ptr, i64
  llvm.call @free(%own) : (!llvm.ptr) -> ()
  llvm.br ^refuse
^refuse:
  llvm.store %one, %refused_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.br ^unblock
^unblock:
  %unmasked = llvm.call @pthread_sigmask(%set_mask, %previous, %nothing) : (i32, !llvm.ptr, !llvm.ptr) -> i32
  llvm.br ^end
^end:
  llvm.return
}

llvm.func internal @nanoseconds() -> i64 attributes {always_inline} {
  %monotonic = llvm.mlir.constant(1 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %second = llvm.mlir.constant(1000000000 : i64) : i64
  %time_at = llvm.alloca %one x !llvm.struct<(i64, i64)> : (i32) -> !llvm.ptr
  %status = llvm.call @clock_gettime(%monotonic, %time_at) : (i32, !llvm.ptr) -> i32
  %time = llvm.load %time_at : !llvm.ptr -> !llvm.struct<(i64, i64)>
  %seconds = llvm.extractvalue %time[0] : !llvm.struct<(i64, i64)>
  %rest = llvm.extractvalue %time[1] : !llvm.struct<(i64, i64)>
  %whole = llvm.mul %seconds, %second : i64
  %sum = llvm.add %whole, %rest : i64
  llvm.return %sum : i64
}

// Sets how many threads loops may use, how long idle workers spin, and whether there are more than cores.
llvm.func @mind_threads_configure(%threads: i64, %nanoseconds: i64, %is_crowded: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one_wake = llvm.mlir.constant(1 : i32) : i32
  %wake_private = llvm.mlir.constant(129 : i32) : i32
  %all = llvm.mlir.constant(0x7FFFFFFF : i32) : i32
  %wake_at = llvm.mlir.addressof @wake : !llvm.ptr
  %workers_at = llvm.mlir.addressof @workers : !llvm.ptr
  %setting_at = llvm.mlir.addressof @setting : !llvm.ptr
  %spin_ns_at = llvm.mlir.addressof @spin_ns : !llvm.ptr
  %crowded_at = llvm.mlir.addressof @crowded : !llvm.ptr
  %refused_at = llvm.mlir.addressof @refused : !llvm.ptr
  llvm.store %nanoseconds, %spin_ns_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.store %is_crowded, %crowded_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.store %zero, %refused_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.store %threads, %setting_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  %workers = llvm.load %workers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %are_too_many = llvm.icmp "sge" %workers, %threads : i64
  llvm.cond_br %are_too_many, ^wake, ^end
^wake:
  %before = llvm.atomicrmw add %wake_at, %one_wake seq_cst : !llvm.ptr, i32
  %futex = llvm.call @futex_number() : () -> i64
  %woken = llvm.call @syscall(%futex, %wake_at, %wake_private, %all) vararg(!llvm.func<i64 (i64, ...)>) : (i64, !llvm.ptr, i32, i32) -> i64
  llvm.br ^end
^end:
  llvm.return
}

// To be called in a forked child, which has but the thread that forked: no workers, and nobody in a loop.
llvm.func @mind_threads_forked() {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %job_mask = llvm.mlir.constant(-0x1000000000 : i64) : i64
  %ticket_at = llvm.mlir.addressof @ticket : !llvm.ptr
  %done_at = llvm.mlir.addressof @done : !llvm.ptr
  %callers_at = llvm.mlir.addressof @callers : !llvm.ptr
  %taken_at = llvm.mlir.addressof @taken : !llvm.ptr
  %helping_at = llvm.mlir.addressof @helping : !llvm.ptr
  %sleepers_at = llvm.mlir.addressof @sleepers : !llvm.ptr
  %workers_at = llvm.mlir.addressof @workers : !llvm.ptr
  %refused_at = llvm.mlir.addressof @refused : !llvm.ptr
  %last = llvm.load %ticket_at : !llvm.ptr -> i64
  %empty = llvm.and %last, %job_mask : i64
  llvm.store %empty, %ticket_at : i64, !llvm.ptr
  llvm.store %zero, %done_at : i64, !llvm.ptr
  llvm.store %zero, %callers_at : i64, !llvm.ptr
  llvm.store %zero, %taken_at : i64, !llvm.ptr
  llvm.store %zero, %helping_at : i64, !llvm.ptr
  llvm.store %zero, %sleepers_at : i64, !llvm.ptr
  llvm.store %zero, %workers_at : i64, !llvm.ptr
  llvm.store %zero, %refused_at : i64, !llvm.ptr
  llvm.return
}
