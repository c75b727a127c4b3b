// What Python runs when it calls a compiled function, against the C interfaces of CPython and numpy 2.
//
// One function serves them all: a record for each (call_record.py) says what it takes and where its code is. What does
// not fit, for whatever reason, is left to the method written in Python, which looks with care and knows all the words.
// Everything here but compiled code runs with the interpreter lock. What may run other Python code (garbage may be
// collected wherever something is allocated) comes before the arguments are looked at; from there on nothing changes
// until compiled code begins, and by then the record is marked as busy.
//
// Words after a dollar sign are offsets, in bytes within objects and in words of 8 bytes within records. call_abi.py has
// looked at each offset within objects before. What lives as long as the process is declared (call_arrays.mlir).

// What holds the record of %self, or null where it has none. A function may be given another record at any time: while
// this one is in use, its holder is kept, which keeps all that the record refers to.
func.func private @holder_of(%self: !llvm.ptr) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %ndarray_class = llvm.mlir.addressof @"mind.ndarray" : !llvm.ptr
  %ndarray = llvm.ptrtoint %ndarray_class : !llvm.ptr to i64
  %place = llvm.getelementptr %self[$record_slot] : (!llvm.ptr) -> !llvm.ptr, i8
  %holder = llvm.load %place : !llvm.ptr -> !llvm.ptr
  %set = llvm.icmp "ne" %holder, %null : !llvm.ptr
  %is_array = scf.if %set -> i1 {
    %is = func.call @has_type(%holder, %ndarray) : (!llvm.ptr, i64) -> i1
    scf.yield %is : i1
  } else {
    scf.yield %set : i1
  }
  %found = scf.if %is_array -> !llvm.ptr {
    func.call @Py_IncRef(%holder) : (!llvm.ptr) -> ()
    scf.yield %holder : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  return %found : !llvm.ptr
}

// How many arguments a call has by name.
func.func private @count_names(%names: !llvm.ptr) -> i64 {
  %zero = arith.constant 0 : i64
  %none = func.call @is_null(%names) : (!llvm.ptr) -> i1
  %count = scf.if %none -> i64 {
    scf.yield %zero : i64
  } else {
    %size = func.call @PyTuple_Size(%names) : (!llvm.ptr) -> i64
    scf.yield %size : i64
  }
  return %count : i64
}

// Whether the names of a call, behind %given arguments by position, are those that the record has there, in order. The
// name of what outputs are written to stands behind those of all inputs.
func.func private @names_follow(%record: !llvm.ptr, %given: i64, %names: !llvm.ptr, %named: i64) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %names_at = arith.constant $names : i64
  %wanted = func.call @pointer(%record, %names_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %end = scf.while (%i = %zero) : (i64) -> i64 {
    %more = arith.cmpi slt, %i, %named : i64
    %same = scf.if %more -> i1 {
      %at = arith.addi %given, %i : i64
      %name = func.call @pointer(%wanted, %at) : (!llvm.ptr, i64) -> !llvm.ptr
      %found = func.call @PyTuple_GetItem(%names, %i) : (!llvm.ptr, i64) -> !llvm.ptr
      %identical = llvm.icmp "eq" %found, %name : !llvm.ptr  // as names in programs mostly are
      %is = scf.if %identical -> i1 {
        scf.yield %identical : i1
      } else {
        %nothing = arith.constant 0 : i32
        %order = func.call @PyUnicode_Compare(%found, %name) : (!llvm.ptr, !llvm.ptr) -> i32
        %equal = arith.cmpi eq, %order, %nothing : i32
        scf.yield %equal : i1
      }
      scf.yield %is : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%same) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    scf.yield %next : i64
  }
  %all = arith.cmpi eq, %end, %named : i64
  return %all : i1
}

// Checks the inputs, of which %inputs are given, and the outputs, and notes where their data are; false where one does
// not fit, or where an output that this call gave overlaps something. What is bound was looked at for that before.
func.func private @take_all(
    %record: !llvm.ptr, %arguments: !llvm.ptr, %inputs: i64, %outputs: !llvm.ptr, %count: i64, %has_out: i1) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %readable = arith.constant $readable : i32
  %writeable = arith.constant $writeable : i32
  %values = arith.addi %inputs, %count : i64
  %end = scf.while (%i = %zero) : (i64) -> i64 {
    %more = arith.cmpi slt, %i, %values : i64
    %taken = scf.if %more -> i1 {
      %is_input = arith.cmpi slt, %i, %inputs : i64
      %flags = arith.select %is_input, %readable, %writeable : i32
      %object = scf.if %is_input -> !llvm.ptr {
        %argument = func.call @pointer(%arguments, %i) : (!llvm.ptr, i64) -> !llvm.ptr
        scf.yield %argument : !llvm.ptr
      } else {
        %at = arith.subi %i, %inputs : i64
        %output = func.call @PyTuple_GetItem(%outputs, %at) : (!llvm.ptr, i64) -> !llvm.ptr
        scf.yield %output : !llvm.ptr
      }
      %fits = func.call @take(%record, %i, %object, %flags) : (!llvm.ptr, i64, !llvm.ptr, i32) -> i1
      %given_output = arith.cmpi ult, %is_input, %has_out : i1
      %unsure = arith.andi %fits, %given_output : i1
      %right = scf.if %unsure -> i1 {
        %apart = func.call @is_apart(%record, %i) : (!llvm.ptr, i64) -> i1
        scf.yield %apart : i1
      } else {
        scf.yield %fits : i1
      }
      scf.yield %right : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%taken) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    scf.yield %next : i64
  }
  %all = arith.cmpi eq, %end, %values : i64
  return %all : i1
}

// Whether the least and the greatest number that each check has seen lie in its range. Of a check that has seen none,
// they are the greatest and the least of all numbers.
func.func private @checks_passed(%record: !llvm.ptr) -> i1 {
  %zero = arith.constant 0 : i64
  %two = arith.constant 2 : i64
  %one = arith.constant 1 : i64
  %words_at = arith.constant $status_words : i64
  %words = func.call @word(%record, %words_at) : (!llvm.ptr, i64) -> i64
  %status_at = arith.constant $status : i64
  %status = func.call @pointer(%record, %status_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %ranges_at = arith.constant $ranges : i64
  %ranges = func.call @pointer(%record, %ranges_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %end = scf.while (%i = %zero) : (i64) -> i64 {
    %more = arith.cmpi slt, %i, %words : i64
    %passed = scf.if %more -> i1 {
      %next = arith.addi %i, %one : i64
      %least = func.call @word(%status, %i) : (!llvm.ptr, i64) -> i64
      %greatest = func.call @word(%status, %next) : (!llvm.ptr, i64) -> i64
      %low = func.call @word(%ranges, %i) : (!llvm.ptr, i64) -> i64
      %high = func.call @word(%ranges, %next) : (!llvm.ptr, i64) -> i64
      %not_below = arith.cmpi sge, %least, %low : i64
      %not_above = arith.cmpi sle, %greatest, %high : i64
      %within = arith.andi %not_below, %not_above : i1
      scf.yield %within : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%passed) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %two : i64
    scf.yield %next : i64
  }
  %all = arith.cmpi eq, %end, %words : i64
  return %all : i1
}

// Runs the function on the values that are noted, without the interpreter lock; whether all its checks have passed.
func.func private @run(%record: !llvm.ptr) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %busy_at = arith.constant $busy : i64
  %code_at = arith.constant $code : i64
  %code = func.call @pointer(%record, %code_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %frame_at = arith.constant $frame : i64
  %frame = func.call @pointer(%record, %frame_at) : (!llvm.ptr, i64) -> !llvm.ptr
  func.call @set_word(%record, %busy_at, %one) : (!llvm.ptr, i64, i64) -> ()
  %thread = func.call @PyEval_SaveThread() : () -> !llvm.ptr
  llvm.call %code(%frame) : !llvm.ptr, (!llvm.ptr) -> ()
  func.call @PyEval_RestoreThread(%thread) : (!llvm.ptr) -> ()
  %passed = func.call @checks_passed(%record) : (!llvm.ptr) -> i1
  func.call @set_word(%record, %busy_at, %zero) : (!llvm.ptr, i64, i64) -> ()
  return %passed : i1
}

// Runs the function with its outputs in %outputs, and in an arena that is had for this call if it needs a large one.
// Returns whether it did; an exception may be set where not.
func.func private @run_into(
    %record: !llvm.ptr, %arguments: !llvm.ptr, %inputs: i64, %outputs: !llvm.ptr, %count: i64, %has_out: i1) -> i1 {
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = arith.constant 0 : i64
  %false = arith.constant false
  %allocator_at = arith.constant $arena_allocator : i64
  %allocator = func.call @pointer(%record, %allocator_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %has_arena = llvm.icmp "ne" %allocator, %null : !llvm.ptr
  %arena = scf.if %has_arena -> !llvm.ptr {
    %allocated = func.call @PyObject_CallNoArgs(%allocator) : (!llvm.ptr) -> !llvm.ptr
    scf.yield %allocated : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  %got = llvm.icmp "ne" %arena, %null : !llvm.ptr
  %equipped = arith.cmpi eq, %got, %has_arena : i1
  %busy_at = arith.constant $busy : i64
  %busy = func.call @word(%record, %busy_at) : (!llvm.ptr, i64) -> i64
  %idle = arith.cmpi eq, %busy, %zero : i64
  %free = arith.andi %equipped, %idle : i1
  %ready = scf.if %free -> i1 {
    %taken = func.call @take_all(%record, %arguments, %inputs, %outputs, %count, %has_out)
      : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, i1) -> i1
    scf.yield %taken : i1
  } else {
    scf.yield %false : i1
  }
  %passed = scf.if %ready -> i1 {
    scf.if %got {
      %values_at = arith.constant $values : i64
      %values = func.call @pointer(%record, %values_at) : (!llvm.ptr, i64) -> !llvm.ptr
      %last_at = arith.constant $arena_value : i64
      %last = func.call @word(%record, %last_at) : (!llvm.ptr, i64) -> i64
      %start = func.call @array_data(%arena) : (!llvm.ptr) -> i64
      func.call @set_word(%values, %last, %start) : (!llvm.ptr, i64, i64) -> ()
    }
    %ran = func.call @run(%record) : (!llvm.ptr) -> i1
    scf.yield %ran : i1
  } else {
    scf.yield %false : i1
  }
  scf.if %got {
    func.call @Py_DecRef(%arena) : (!llvm.ptr) -> ()
  }
  return %passed : i1
}

// What a call returns: the tuple of its outputs, or the one in it where the record says so.
func.func private @returned(%record: !llvm.ptr, %outputs: !llvm.ptr) -> !llvm.ptr {
  %zero = arith.constant 0 : i64
  %single_at = arith.constant $single : i64
  %single = func.call @word(%record, %single_at) : (!llvm.ptr, i64) -> i64
  %is_single = arith.cmpi ne, %single, %zero : i64
  %value = scf.if %is_single -> !llvm.ptr {
    %output = func.call @PyTuple_GetItem(%outputs, %zero) : (!llvm.ptr, i64) -> !llvm.ptr
    func.call @Py_IncRef(%output) : (!llvm.ptr) -> ()
    func.call @Py_DecRef(%outputs) : (!llvm.ptr) -> ()
    scf.yield %output : !llvm.ptr
  } else {
    scf.yield %outputs : !llvm.ptr
  }
  return %value : !llvm.ptr
}

// The outputs of a call, or null where Python has to look at it; then an exception may be set.
func.func private @try(%record: !llvm.ptr, %passed: !llvm.ptr, %given: i64, %names: !llvm.ptr) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %true = arith.constant true
  %inputs_at = arith.constant $input_count : i64
  %inputs = func.call @word(%record, %inputs_at) : (!llvm.ptr, i64) -> i64
  %count_at = arith.constant $output_count : i64
  %count = func.call @word(%record, %count_at) : (!llvm.ptr, i64) -> i64
  %named = func.call @count_names(%names) : (!llvm.ptr) -> i64
  %all = arith.addi %given, %named : i64
  // What is bound to its buffers has arguments of its own, and is called without any.
  %stored_at = arith.constant $stored_arguments : i64
  %stored = func.call @pointer(%record, %stored_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %is_bound = llvm.icmp "ne" %stored, %null : !llvm.ptr
  %arguments = llvm.select %is_bound, %stored, %passed : i1, !llvm.ptr
  %more = arith.addi %inputs, %one : i64
  %takes_out_at = arith.constant $takes_out : i64
  %takes_out = func.call @word(%record, %takes_out_at) : (!llvm.ptr, i64) -> i64
  %out_is_possible = arith.cmpi ne, %takes_out, %zero : i64
  %by_name = arith.cmpi sgt, %named, %zero : i64
  %one_more = arith.cmpi eq, %all, %more : i64
  %out_by_name = arith.andi %out_is_possible, %by_name : i1
  %has_out = arith.andi %out_by_name, %one_more : i1
  %to_given = arith.ori %has_out, %is_bound : i1
  %without_out = arith.cmpi eq, %all, %inputs : i64
  %right_count = arith.ori %without_out, %has_out : i1
  %nothing_passed = arith.cmpi eq, %all, %zero : i64
  %countable = arith.select %is_bound, %nothing_passed, %right_count : i1
  %accepted = scf.if %countable -> i1 {
    %follow = func.call @names_follow(%record, %given, %names, %named) : (!llvm.ptr, i64, !llvm.ptr, i64) -> i1
    scf.yield %follow : i1
  } else {
    scf.yield %countable : i1
  }
  %outputs = scf.if %accepted -> !llvm.ptr {
    %made = scf.if %to_given -> !llvm.ptr {
      %out = func.call @pointer(%arguments, %inputs) : (!llvm.ptr, i64) -> !llvm.ptr
      %tuple = func.call @given_outputs(%out, %count) : (!llvm.ptr, i64) -> !llvm.ptr
      scf.yield %tuple : !llvm.ptr
    } else {
      %tuple = func.call @fresh_outputs(%record, %inputs, %count) : (!llvm.ptr, i64, i64) -> !llvm.ptr
      scf.yield %tuple : !llvm.ptr
    }
    scf.yield %made : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  %made = llvm.icmp "ne" %outputs, %null : !llvm.ptr
  %result = scf.if %made -> !llvm.ptr {
    %ran = func.call @run_into(%record, %arguments, %inputs, %outputs, %count, %has_out)
      : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, i1) -> i1
    %returned = scf.if %ran -> !llvm.ptr {
      %value = func.call @returned(%record, %outputs) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
      scf.yield %value : !llvm.ptr
    } else {
      func.call @Py_DecRef(%outputs) : (!llvm.ptr) -> ()
      scf.yield %null : !llvm.ptr
    }
    scf.yield %returned : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  return %result : !llvm.ptr
}

// Whether Python is to look at a call that has come to nothing here. An exception is raised as it is, but that there was
// no memory: Python has words for it.
func.func private @is_left_to_python() -> i1 {
  %exception = func.call @PyErr_Occurred() : () -> !llvm.ptr
  %none = func.call @is_null(%exception) : (!llvm.ptr) -> i1
  %is = scf.if %none -> i1 {
    scf.yield %none : i1
  } else {
    %no = arith.constant 0 : i32
    %memory_error = llvm.mlir.addressof @"mind.memory_error" : !llvm.ptr
    %matches = func.call @PyErr_ExceptionMatches(%memory_error) : (!llvm.ptr) -> i32
    %no_memory = arith.cmpi ne, %matches, %no : i32
    scf.if %no_memory {
      func.call @PyErr_Clear() : () -> ()
    }
    scf.yield %no_memory : i1
  }
  return %is : i1
}

// PyObject *(PyObject *self, PyObject *const *arguments, Py_ssize_t given, PyObject *names), a method of the flags
// METH_FASTCALL and METH_KEYWORDS: behind %given arguments by position come those by name.
llvm.func @mind_call(%self: !llvm.ptr, %arguments: !llvm.ptr, %given: i64, %names: !llvm.ptr) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %holder = func.call @holder_of(%self) : (!llvm.ptr) -> !llvm.ptr
  %known = llvm.icmp "ne" %holder, %null : !llvm.ptr
  %found = scf.if %known -> !llvm.ptr {
    %data = func.call @array_data(%holder) : (!llvm.ptr) -> i64
    %record = llvm.inttoptr %data : i64 to !llvm.ptr
    %tried = func.call @try(%record, %arguments, %given, %names) : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> !llvm.ptr
    func.call @Py_DecRef(%holder) : (!llvm.ptr) -> ()
    scf.yield %tried : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  %done = llvm.icmp "ne" %found, %null : !llvm.ptr
  %result = scf.if %done -> !llvm.ptr {
    scf.yield %found : !llvm.ptr
  } else {
    %left = func.call @is_left_to_python() : () -> i1
    %method = scf.if %left -> !llvm.ptr {
      %name = llvm.mlir.addressof @"mind.python_method" : !llvm.ptr
      %attribute = func.call @PyObject_GetAttr(%self, %name) : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
      scf.yield %attribute : !llvm.ptr
    } else {
      scf.yield %null : !llvm.ptr
    }
    %has_method = llvm.icmp "ne" %method, %null : !llvm.ptr
    %asked = scf.if %has_method -> !llvm.ptr {
      %returned = func.call @PyObject_Vectorcall(%method, %arguments, %given, %names)
        : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> !llvm.ptr
      func.call @Py_DecRef(%method) : (!llvm.ptr) -> ()
      scf.yield %returned : !llvm.ptr
    } else {
      scf.yield %null : !llvm.ptr
    }
    scf.yield %asked : !llvm.ptr
  }
  llvm.return %result : !llvm.ptr
}
