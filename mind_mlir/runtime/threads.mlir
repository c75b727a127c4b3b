// The threads of this process that share the loops of compiled code: one pool, whoever calls.
//
// A job is a loop over chunks. Whoever finds the one slot for jobs free owns it: it publishes its job, takes
// chunks itself, and returns when those that workers have taken are done; it never waits for a worker to wake
// up. Whoever finds the slot taken runs its loop alone.
//
// The ticket is the number of the job above 36 bits; in the 18 below, how many chunks have been taken from the
// end; and in the lowest 18, how many nobody has taken yet. A chunk is taken by a compare-and-exchange of the
// whole ticket, which fails if another job has begun meanwhile: fields that were read before it are those of
// the job whose ticket it was, because a job with chunks left is not over, and only the next one writes the
// fields.
//
// The owner and every second helper take chunks from the first on, the others from the last on: two threads so
// have a half each, until one has done its own. Each then reads and writes memory that goes on, and both
// are up to a quarter faster at it than where chunks are taken by turns.
//
// Workers are helpers while they run chunks. There are at most `setting` threads in loops, callers and
// helpers together: a worker looks for that before each chunk, and leaves when other callers have come.
//
// LLVM spends more time on better code than that saves: what has to be quick waits for memory. So the text is
// compiled without optimisation, and says itself which functions are to be inlined.
//
// The workers, and what the machine is asked for (`relax`, `float_mode`, ...), have texts of their own.

// What several threads write has a pair of cache lines for itself.
llvm.mlir.global internal @ticket(0 : i64) {alignment = 128 : i64} : i64
llvm.mlir.global internal @done(0 : i64) {alignment = 128 : i64} : i64
llvm.mlir.global internal @callers(0 : i64) {alignment = 128 : i64} : i64
llvm.mlir.global internal @taken(0 : i64) {alignment = 128 : i64} : i64
llvm.mlir.global internal @helping(0 : i64) {alignment = 128 : i64} : i64
llvm.mlir.global internal @sleepers(0 : i64) {alignment = 128 : i64} : i64
llvm.mlir.global internal @wake(0 : i32) {alignment = 128 : i64} : i32
// The fields of the job: body, data, chunks, the most threads, the mode of floating-point arithmetic.
llvm.mlir.global internal @job(dense<0> : tensor<5xi64>) {alignment = 128 : i64} : !llvm.array<5 x i64>
// How many there are: owners add to it, and workers that end take away.
llvm.mlir.global internal @workers(0 : i64) {alignment = 128 : i64} : i64
// What `mind_threads_configure` writes.
llvm.mlir.global internal @setting(1 : i64) {alignment = 128 : i64} : i64

llvm.func @sched_yield() -> i32

// Runs body(data, chunk, own) exactly once for each chunk in [0, chunks), on at most `limit` threads (0: as many
// as are set), and returns when all are done, their writes visible. `own` is memory of the thread that runs the
// chunk, `abi.OWN_BYTES` of it, or null for the thread that called, which has its own. With bit 32 of `limit`
// (`abi.BRIEF`) the job is so brief that nobody is to be woken for it: it is shared with workers that are awake,
// if there are any.
llvm.func @mind_parallel(%body: !llvm.ptr, %data: !llvm.ptr, %chunks: i64, %limit: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %most_chunks = llvm.mlir.constant(0x3FFFF : i64) : i64
  %setting_at = llvm.mlir.addressof @setting : !llvm.ptr
  %callers_at = llvm.mlir.addressof @callers : !llvm.ptr
  %taken_at = llvm.mlir.addressof @taken : !llvm.ptr
  %workers_at = llvm.mlir.addressof @workers : !llvm.ptr
  %sleepers_at = llvm.mlir.addressof @sleepers : !llvm.ptr
  %brief = llvm.mlir.constant(0x100000000 : i64) : i64
  %most_mask = llvm.mlir.constant(0xFFFFFFFF : i64) : i64
  %setting = llvm.load %setting_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %most = llvm.and %limit, %most_mask : i64
  %is_limited = llvm.icmp "sgt" %most, %zero : i64
  %lesser = llvm.intr.smin(%most, %setting) : (i64, i64) -> i64
  %threads = llvm.select %is_limited, %lesser, %setting : i1, i64
  %useful = llvm.intr.smin(%threads, %chunks) : (i64, i64) -> i64
  %is_shared = llvm.icmp "sgt" %useful, %one : i64
  %fits = llvm.icmp "sle" %chunks, %most_chunks : i64
  %started = llvm.load %workers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %asleep = llvm.load %sleepers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %awake = llvm.sub %started, %asleep : i64
  %is_brief = llvm.icmp "sge" %limit, %brief : i64
  %at_hand = llvm.select %is_brief, %awake, %most_chunks : i1, i64
  %is_any = llvm.icmp "sgt" %at_hand, %zero : i64
  %is_possible = llvm.and %is_shared, %fits : i1
  %is_parallel = llvm.and %is_possible, %is_any : i1
  llvm.cond_br %is_parallel, ^enter, ^alone
^alone:
  llvm.call @run_alone(%body, %data, %chunks) : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.return
^enter:
  %others = llvm.atomicrmw add %callers_at, %one acq_rel : !llvm.ptr, i64
  %free = llvm.sub %setting, %others : i64
  %is_room = llvm.icmp "sgt" %free, %one : i64
  llvm.cond_br %is_room, ^take_slot, ^counted_alone
^take_slot:
  %was_taken = llvm.atomicrmw xchg %taken_at, %one acquire : !llvm.ptr, i64
  %is_owner = llvm.icmp "eq" %was_taken, %zero : i64
  llvm.cond_br %is_owner, ^own, ^counted_alone
^counted_alone:
  llvm.call @run_alone(%body, %data, %chunks) : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.br ^leave
^own:
  %together = llvm.intr.smin(%useful, %free) : (i64, i64) -> i64
  %wanted = llvm.add %together, %minus_one : i64
  %helpers = llvm.intr.smin(%wanted, %at_hand) : (i64, i64) -> i64
  llvm.call @run_shared(%body, %data, %chunks, %threads, %helpers) : (!llvm.ptr, !llvm.ptr, i64, i64, i64) -> ()
  llvm.store %zero, %taken_at atomic release {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.br ^leave
^leave:
  %now_others = llvm.atomicrmw add %callers_at, %minus_one acq_rel : !llvm.ptr, i64
  llvm.return
}

llvm.func internal @run_alone(%body: !llvm.ptr, %data: !llvm.ptr, %chunks: i64) attributes {always_inline} {
  %own = llvm.mlir.zero : !llvm.ptr
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^next(%zero : i64)
^next(%chunk: i64):
  %is_left = llvm.icmp "slt" %chunk, %chunks : i64
  llvm.cond_br %is_left, ^run, ^end
^run:
  llvm.call %body(%data, %chunk, %own) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> ()
  %following = llvm.add %chunk, %one : i64
  llvm.br ^next(%following : i64)
^end:
  llvm.return
}

// Runs a job that `helpers` workers can help with, by the owner of the slot.
llvm.func internal @run_shared(%body: !llvm.ptr, %data: !llvm.ptr, %chunks: i64, %threads: i64, %helpers: i64) {
  %own = llvm.mlir.zero : !llvm.ptr
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %count_bits = llvm.mlir.constant(18 : i64) : i64
  %count_mask = llvm.mlir.constant(0x3FFFF : i64) : i64
  %job_mask = llvm.mlir.constant(-0x1000000000 : i64) : i64
  %next_job = llvm.mlir.constant(0x1000000000 : i64) : i64
  %patience = llvm.mlir.constant(2000 : i64) : i64
  %ticket_at = llvm.mlir.addressof @ticket : !llvm.ptr
  %done_at = llvm.mlir.addressof @done : !llvm.ptr
  %sleepers_at = llvm.mlir.addressof @sleepers : !llvm.ptr
  %workers_at = llvm.mlir.addressof @workers : !llvm.ptr
  %body_at = llvm.mlir.addressof @job : !llvm.ptr
  %data_at = llvm.getelementptr %body_at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %chunks_at = llvm.getelementptr %body_at[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %threads_at = llvm.getelementptr %body_at[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %mode_at = llvm.getelementptr %body_at[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %started = llvm.load %workers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %are_missing = llvm.icmp "slt" %started, %helpers : i64
  llvm.cond_br %are_missing, ^start, ^publish
^start:
  llvm.call @start_workers(%helpers) : (i64) -> ()
  llvm.br ^publish
^publish:
  %mode = llvm.call @float_mode() : () -> i64
  llvm.store %body, %body_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.store %data, %data_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
  llvm.store %chunks, %chunks_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.store %threads, %threads_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.store %mode, %mode_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  llvm.store %zero, %done_at atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
  %last = llvm.load %ticket_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %number = llvm.and %last, %job_mask : i64
  %empty = llvm.add %number, %next_job : i64
  %ticket = llvm.or %empty, %chunks : i64
  llvm.store %ticket, %ticket_at atomic seq_cst {alignment = 8 : i64} : i64, !llvm.ptr
  %asleep = llvm.load %sleepers_at atomic seq_cst {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_quiet = llvm.icmp "eq" %asleep, %zero : i64
  llvm.cond_br %is_quiet, ^claim(%ticket, %zero : i64, i64), ^rouse
^rouse:
  %all = llvm.load %workers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %awake = llvm.sub %all, %asleep : i64
  %lacking = llvm.sub %helpers, %awake : i64
  llvm.call @wake_workers(%lacking) : (i64) -> ()
  llvm.br ^claim(%ticket, %zero : i64, i64)
^claim(%seen: i64, %mine: i64):
  %remaining = llvm.and %seen, %count_mask : i64
  %is_over = llvm.icmp "eq" %remaining, %zero : i64
  llvm.cond_br %is_over, ^finish, ^exchange
^exchange:
  %fewer = llvm.add %seen, %minus_one : i64
  %exchange = llvm.cmpxchg %ticket_at, %seen, %fewer acq_rel monotonic {alignment = 8 : i64} : !llvm.ptr, i64
  %found = llvm.extractvalue %exchange[0] : !llvm.struct<(i64, i1)>
  %is_mine = llvm.extractvalue %exchange[1] : !llvm.struct<(i64, i1)>
  llvm.cond_br %is_mine, ^run, ^claim(%found, %mine : i64, i64)
^run:
  %above = llvm.lshr %seen, %count_bits : i64
  %from_end = llvm.and %above, %count_mask : i64
  %not_done = llvm.add %remaining, %from_end : i64
  %chunk = llvm.sub %chunks, %not_done : i64
  llvm.call %body(%data, %chunk, %own) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> ()
  %one_more = llvm.add %mine, %one : i64
  %again = llvm.load %ticket_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  llvm.br ^claim(%again, %one_more : i64, i64)
^finish:
  %theirs = llvm.sub %chunks, %mine : i64
  llvm.br ^wait(%zero : i64)
^wait(%rounds: i64):
  %finished = llvm.load %done_at atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %are_done = llvm.icmp "eq" %finished, %theirs : i64
  llvm.cond_br %are_done, ^end, ^be_patient
^be_patient:
  %is_long = llvm.icmp "sgt" %rounds, %patience : i64
  %one_round = llvm.add %rounds, %one : i64
  llvm.cond_br %is_long, ^give_way, ^spin
^give_way:
  %yielded = llvm.call @sched_yield() : () -> i32
  llvm.br ^wait(%rounds : i64)
^spin:
  llvm.call @relax() : () -> ()
  llvm.br ^wait(%one_round : i64)
^end:
  llvm.return
}

// Returns how many workers may help with the job at hand.
llvm.func internal @seats() -> i64 attributes {always_inline} {
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %setting_at = llvm.mlir.addressof @setting : !llvm.ptr
  %callers_at = llvm.mlir.addressof @callers : !llvm.ptr
  %job_at = llvm.mlir.addressof @job : !llvm.ptr
  %threads_at = llvm.getelementptr %job_at[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %setting = llvm.load %setting_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %callers = llvm.load %callers_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %threads = llvm.load %threads_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %wanted = llvm.add %threads, %minus_one : i64
  %free = llvm.sub %setting, %callers : i64
  %seats = llvm.intr.smin(%wanted, %free) : (i64, i64) -> i64
  llvm.return %seats : i64
}

// Helps with the job at hand, if there is a seat, and returns the number of chunks run. `own` is the worker's.
//
// A helper's seat is the number of helpers that it found. At any time no more than n of them have one below n.
llvm.func internal @help(%own: !llvm.ptr) -> i64 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %count_bits = llvm.mlir.constant(18 : i64) : i64
  %count_mask = llvm.mlir.constant(0x3FFFF : i64) : i64
  %one_from_end = llvm.mlir.constant(0x3FFFF : i64) : i64  // one more of these, one less that is left
  %ticket_at = llvm.mlir.addressof @ticket : !llvm.ptr
  %done_at = llvm.mlir.addressof @done : !llvm.ptr
  %helping_at = llvm.mlir.addressof @helping : !llvm.ptr
  %body_at = llvm.mlir.addressof @job : !llvm.ptr
  %data_at = llvm.getelementptr %body_at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %chunks_at = llvm.getelementptr %body_at[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %mode_at = llvm.getelementptr %body_at[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %seats = llvm.call @seats() : () -> i64
  %helpers = llvm.load %helping_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_seat = llvm.icmp "slt" %helpers, %seats : i64
  llvm.cond_br %is_seat, ^sit_down, ^refuse
^refuse:
  llvm.return %zero : i64
^sit_down:
  %seat = llvm.atomicrmw add %helping_at, %one acq_rel : !llvm.ptr, i64
  %side = llvm.and %seat, %one : i64
  %is_from_end = llvm.icmp "eq" %side, %zero : i64
  %step = llvm.select %is_from_end, %one_from_end, %minus_one : i1, i64
  llvm.br ^next(%zero : i64)
^next(%mine: i64):
  %ticket = llvm.load %ticket_at atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %remaining = llvm.and %ticket, %count_mask : i64
  %is_over = llvm.icmp "eq" %remaining, %zero : i64
  llvm.cond_br %is_over, ^leave, ^look
^look:
  %seats_now = llvm.call @seats() : () -> i64
  %is_mine = llvm.icmp "slt" %seat, %seats_now : i64
  llvm.cond_br %is_mine, ^claim, ^leave
^claim:
  %body = llvm.load %body_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %data = llvm.load %data_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %chunks = llvm.load %chunks_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %mode = llvm.load %mode_at atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
  %fewer = llvm.add %ticket, %step : i64
  %exchange = llvm.cmpxchg %ticket_at, %ticket, %fewer acq_rel monotonic {alignment = 8 : i64} : !llvm.ptr, i64
  %is_claimed = llvm.extractvalue %exchange[1] : !llvm.struct<(i64, i1)>
  llvm.cond_br %is_claimed, ^run, ^next(%mine : i64)
^run:
  // Denormals, rounding: a chunk is computed as its caller would, to the same bits.
  llvm.call @set_float_mode(%mode) : (i64) -> ()
  %above = llvm.lshr %ticket, %count_bits : i64
  %from_end = llvm.and %above, %count_mask : i64
  %not_done = llvm.add %remaining, %from_end : i64
  %next_first = llvm.sub %chunks, %not_done : i64
  %after = llvm.add %from_end, %one : i64
  %next_last = llvm.sub %chunks, %after : i64
  %chunk = llvm.select %is_from_end, %next_last, %next_first : i1, i64
  llvm.call %body(%data, %chunk, %own) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> ()
  %one_more = llvm.add %mine, %one : i64
  llvm.br ^next(%one_more : i64)
^leave:
  %are_any = llvm.icmp "ne" %mine, %zero : i64
  llvm.cond_br %are_any, ^report, ^stand_up
^report:
  %before = llvm.atomicrmw add %done_at, %mine acq_rel : !llvm.ptr, i64
  llvm.br ^stand_up
^stand_up:
  %others = llvm.atomicrmw add %helping_at, %minus_one acq_rel : !llvm.ptr, i64
  llvm.return %mine : i64
}
