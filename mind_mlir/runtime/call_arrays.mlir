// The arrays of a call: what fits a record's description of inputs and outputs, and how outputs are made. See call.mlir.

func.func private @PyErr_Clear()
func.func private @PyErr_ExceptionMatches(!llvm.ptr) -> i32
func.func private @PyErr_Occurred() -> !llvm.ptr
func.func private @PyEval_RestoreThread(!llvm.ptr)
func.func private @PyEval_SaveThread() -> !llvm.ptr
func.func private @PyObject_CallNoArgs(!llvm.ptr) -> !llvm.ptr
func.func private @PyObject_GetAttr(!llvm.ptr, !llvm.ptr) -> !llvm.ptr
func.func private @PyObject_Vectorcall(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> !llvm.ptr
func.func private @PyTuple_GetItem(!llvm.ptr, i64) -> !llvm.ptr
func.func private @PyTuple_New(i64) -> !llvm.ptr
func.func private @PyTuple_SetItem(!llvm.ptr, i64, !llvm.ptr) -> i32
func.func private @PyTuple_Size(!llvm.ptr) -> i64
func.func private @PyUnicode_Compare(!llvm.ptr, !llvm.ptr) -> i32
func.func private @Py_DecRef(!llvm.ptr)
func.func private @Py_IncRef(!llvm.ptr)

// Objects of this process, and numpy's functions that make arrays and compare dtypes: the loader puts their addresses in.
llvm.mlir.global external @"mind.ndarray"() : i8
llvm.mlir.global external @"mind.tuple"() : i8
llvm.mlir.global external @"mind.memory_error"() : i8
llvm.mlir.global external @"mind.python_method"() : i8
llvm.func @"mind.equivalent_types"(!llvm.ptr, !llvm.ptr) -> i8
llvm.func @"mind.new_from_descr"(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr

// ---- memory ----

func.func private @word(%base: !llvm.ptr, %index: i64) -> i64 {
  %place = llvm.getelementptr %base[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %value = llvm.load %place : !llvm.ptr -> i64
  return %value : i64
}

func.func private @set_word(%base: !llvm.ptr, %index: i64, %value: i64) {
  %place = llvm.getelementptr %base[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %value, %place : i64, !llvm.ptr
  return
}

func.func private @pointer(%base: !llvm.ptr, %index: i64) -> !llvm.ptr {
  %value = func.call @word(%base, %index) : (!llvm.ptr, i64) -> i64
  %pointer = llvm.inttoptr %value : i64 to !llvm.ptr
  return %pointer : !llvm.ptr
}

func.func private @is_null(%pointer: !llvm.ptr) -> i1 {
  %null = llvm.mlir.zero : !llvm.ptr
  %is = llvm.icmp "eq" %pointer, %null : !llvm.ptr
  return %is : i1
}

// The description of value %index: of the inputs, then of the outputs.
func.func private @description(%record: !llvm.ptr, %index: i64) -> !llvm.ptr {
  %size = arith.constant $description_size : i64
  %descriptions = arith.constant $descriptions : i64
  %first = func.call @pointer(%record, %descriptions) : (!llvm.ptr, i64) -> !llvm.ptr
  %at = arith.muli %index, %size : i64
  %place = llvm.getelementptr %first[%at] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  return %place : !llvm.ptr
}

// ---- objects ----

func.func private @has_type(%object: !llvm.ptr, %type: i64) -> i1 {
  %place = llvm.getelementptr %object[$object_type] : (!llvm.ptr) -> !llvm.ptr, i8
  %found = llvm.load %place : !llvm.ptr -> i64
  %is = arith.cmpi eq, %found, %type : i64
  return %is : i1
}

func.func private @array_data(%array: !llvm.ptr) -> i64 {
  %place = llvm.getelementptr %array[$array_data] : (!llvm.ptr) -> !llvm.ptr, i8
  %data = llvm.load %place : !llvm.ptr -> i64
  return %data : i64
}

// Whether %count words at %first and at %second are the same.
func.func private @same_words(%first: !llvm.ptr, %second: !llvm.ptr, %count: i64) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %end = scf.while (%i = %zero) : (i64) -> i64 {
    %more = arith.cmpi slt, %i, %count : i64
    %same = scf.if %more -> i1 {
      %a = func.call @word(%first, %i) : (!llvm.ptr, i64) -> i64
      %b = func.call @word(%second, %i) : (!llvm.ptr, i64) -> i64
      %equal = arith.cmpi eq, %a, %b : i64
      scf.yield %equal : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%same) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    scf.yield %next : i64
  }
  %all = arith.cmpi eq, %end, %count : i64
  return %all : i1
}

// Whether %object is exactly a numpy array of the dtype and shape described, with all of %flags.
func.func private @fits(%object: !llvm.ptr, %description: !llvm.ptr, %flags: i32) -> i1 {
  %false = arith.constant false
  %ndarray_class = llvm.mlir.addressof @"mind.ndarray" : !llvm.ptr
  %ndarray = llvm.ptrtoint %ndarray_class : !llvm.ptr to i64
  %is_array = func.call @has_type(%object, %ndarray) : (!llvm.ptr, i64) -> i1
  %fits = scf.if %is_array -> i1 {
    %flags_place = llvm.getelementptr %object[$array_flags] : (!llvm.ptr) -> !llvm.ptr, i8
    %found_flags = llvm.load %flags_place : !llvm.ptr -> i32
    %common_flags = arith.andi %found_flags, %flags : i32
    %has_flags = arith.cmpi eq, %common_flags, %flags : i32
    %dtype_place = llvm.getelementptr %object[$array_dtype] : (!llvm.ptr) -> !llvm.ptr, i8
    %found_dtype = llvm.load %dtype_place : !llvm.ptr -> i64
    %dtype_at = arith.constant $dtype : i64
    %dtype = func.call @word(%description, %dtype_at) : (!llvm.ptr, i64) -> i64
    %same_dtype = arith.cmpi eq, %found_dtype, %dtype : i64
    %rank_place = llvm.getelementptr %object[$array_rank] : (!llvm.ptr) -> !llvm.ptr, i8
    %found_rank = llvm.load %rank_place : !llvm.ptr -> i32
    %rank_at = arith.constant $rank : i64
    %rank = func.call @word(%description, %rank_at) : (!llvm.ptr, i64) -> i64
    %wide_rank = arith.extsi %found_rank : i32 to i64
    %has_rank = arith.cmpi eq, %wide_rank, %rank : i64
    %has_two = arith.andi %has_flags, %has_rank : i1
    %has_three = scf.if %has_two -> i1 {
      %has_dtype = scf.if %same_dtype -> i1 {
        %true = arith.constant true
        scf.yield %true : i1
      } else {  // arrays that were unpickled have dtypes of their own
        %one = llvm.inttoptr %found_dtype : i64 to !llvm.ptr
        %other = llvm.inttoptr %dtype : i64 to !llvm.ptr
        %equal = llvm.call @"mind.equivalent_types"(%one, %other) : (!llvm.ptr, !llvm.ptr) -> i8
        %zero = arith.constant 0 : i8
        %is_equal = arith.cmpi ne, %equal, %zero : i8
        scf.yield %is_equal : i1
      }
      scf.yield %has_dtype : i1
    } else {
      scf.yield %false : i1
    }
    %has_all = scf.if %has_three -> i1 {
      %shape_place = llvm.getelementptr %object[$array_shape] : (!llvm.ptr) -> !llvm.ptr, i8
      %found_shape = llvm.load %shape_place : !llvm.ptr -> !llvm.ptr
      %shape_at = arith.constant $shape : i64
      %shape = func.call @pointer(%description, %shape_at) : (!llvm.ptr, i64) -> !llvm.ptr
      %has_shape = func.call @same_words(%found_shape, %shape, %rank) : (!llvm.ptr, !llvm.ptr, i64) -> i1
      scf.yield %has_shape : i1
    } else {
      scf.yield %false : i1
    }
    scf.yield %has_all : i1
  } else {
    scf.yield %false : i1
  }
  return %fits : i1
}

// Whether truth values, if the description says how many bytes of them there are, have no bytes but 0 and 1. Looks at 256
// bytes at a time, in vectors, then at 8; that memory may begin anywhere.
func.func private @has_plain_bytes(%data: i64, %description: !llvm.ptr) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %eight = arith.constant 8 : i64
  %odd = arith.constant 0xFEFEFEFEFEFEFEFE : i64
  %checked_at = arith.constant $checked_bytes : i64
  %count = func.call @word(%description, %checked_at) : (!llvm.ptr, i64) -> i64
  %first = llvm.inttoptr %data : i64 to !llvm.ptr
  %block = arith.constant 256 : i64
  %blocks = arith.subi %count, %block : i64
  %skipped = scf.while (%i = %zero) : (i64) -> i64 {
    %more = arith.cmpi sle, %i, %blocks : i64
    %right = scf.if %more -> i1 {
      %place_0 = llvm.getelementptr %first[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %place_1 = llvm.getelementptr %place_0[64] : (!llvm.ptr) -> !llvm.ptr, i8
      %place_2 = llvm.getelementptr %place_0[128] : (!llvm.ptr) -> !llvm.ptr, i8
      %place_3 = llvm.getelementptr %place_0[192] : (!llvm.ptr) -> !llvm.ptr, i8
      %bytes_0 = llvm.load %place_0 {alignment = 1 : i64} : !llvm.ptr -> vector<8xi64>
      %bytes_1 = llvm.load %place_1 {alignment = 1 : i64} : !llvm.ptr -> vector<8xi64>
      %bytes_2 = llvm.load %place_2 {alignment = 1 : i64} : !llvm.ptr -> vector<8xi64>
      %bytes_3 = llvm.load %place_3 {alignment = 1 : i64} : !llvm.ptr -> vector<8xi64>
      %pair_0 = arith.ori %bytes_0, %bytes_1 : vector<8xi64>
      %pair_1 = arith.ori %bytes_2, %bytes_3 : vector<8xi64>
      %four = arith.ori %pair_0, %pair_1 : vector<8xi64>
      %bytes = "llvm.intr.vector.reduce.or"(%four) : (vector<8xi64>) -> i64
      %seen = arith.andi %bytes, %odd : i64
      %none = arith.cmpi eq, %seen, %zero : i64
      scf.yield %none : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%right) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %block : i64
    scf.yield %next : i64
  }
  %words = arith.subi %count, %eight : i64
  %plain = scf.while (%i = %skipped) : (i64) -> i64 {
    %more = arith.cmpi sle, %i, %words : i64
    %right = scf.if %more -> i1 {
      %place = llvm.getelementptr %first[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %bytes = llvm.load %place {alignment = 1 : i64} : !llvm.ptr -> i64
      %seen = arith.andi %bytes, %odd : i64
      %none = arith.cmpi eq, %seen, %zero : i64
      scf.yield %none : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%right) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %eight : i64
    scf.yield %next : i64
  }
  %end = scf.while (%i = %plain) : (i64) -> i64 {
    %more = arith.cmpi slt, %i, %count : i64
    %right = scf.if %more -> i1 {
      %place = llvm.getelementptr %first[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %byte = llvm.load %place : !llvm.ptr -> i8
      %largest = arith.constant 1 : i8
      %none = arith.cmpi ule, %byte, %largest : i8
      scf.yield %none : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%right) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    scf.yield %next : i64
  }
  %all = arith.cmpi eq, %end, %count : i64
  return %all : i1
}

// Checks %object, value number %at of a call, and notes where its data are; false where it does not fit.
func.func private @take(%record: !llvm.ptr, %at: i64, %object: !llvm.ptr, %flags: i32) -> i1 {
  %values_at = arith.constant $values : i64
  %description = func.call @description(%record, %at) : (!llvm.ptr, i64) -> !llvm.ptr
  %fits = func.call @fits(%object, %description, %flags) : (!llvm.ptr, !llvm.ptr, i32) -> i1
  %taken = scf.if %fits -> i1 {
    %values = func.call @pointer(%record, %values_at) : (!llvm.ptr, i64) -> !llvm.ptr
    %data = func.call @array_data(%object) : (!llvm.ptr) -> i64
    func.call @set_word(%values, %at, %data) : (!llvm.ptr, i64, i64) -> ()
    %plain = func.call @has_plain_bytes(%data, %description) : (i64, !llvm.ptr) -> i1
    scf.yield %plain : i1
  } else {
    scf.yield %fits : i1
  }
  return %taken : i1
}

// Whether the memory of value number %at overlaps that of none before it.
func.func private @is_apart(%record: !llvm.ptr, %at: i64) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %bytes_at = arith.constant $bytes : i64
  %values_at = arith.constant $values : i64
  %values = func.call @pointer(%record, %values_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %description = func.call @description(%record, %at) : (!llvm.ptr, i64) -> !llvm.ptr
  %bytes = func.call @word(%description, %bytes_at) : (!llvm.ptr, i64) -> i64
  %start = func.call @word(%values, %at) : (!llvm.ptr, i64) -> i64
  %end = arith.addi %start, %bytes : i64
  %checked = scf.while (%i = %zero) : (i64) -> i64 {
    %more = arith.cmpi slt, %i, %at : i64
    %apart = scf.if %more -> i1 {
      %other = func.call @description(%record, %i) : (!llvm.ptr, i64) -> !llvm.ptr
      %other_bytes = func.call @word(%other, %bytes_at) : (!llvm.ptr, i64) -> i64
      %other_start = func.call @word(%values, %i) : (!llvm.ptr, i64) -> i64
      %other_end = arith.addi %other_start, %other_bytes : i64
      %behind = arith.cmpi ule, %other_end, %start : i64
      %before = arith.cmpi ule, %end, %other_start : i64
      %either = arith.ori %behind, %before : i1
      scf.yield %either : i1
    } else {
      scf.yield %more : i1
    }
    scf.condition(%apart) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = arith.addi %i, %one : i64
    scf.yield %next : i64
  }
  %all = arith.cmpi eq, %checked, %at : i64
  return %all : i1
}

// ---- outputs ----

// A fresh array for what is described, or null with an exception set.
func.func private @fresh_array(%description: !llvm.ptr) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %allocator_at = arith.constant $allocator : i64
  %allocator = func.call @pointer(%description, %allocator_at) : (!llvm.ptr, i64) -> !llvm.ptr
  %small = func.call @is_null(%allocator) : (!llvm.ptr) -> i1
  %array = scf.if %small -> !llvm.ptr {
    %dtype_at = arith.constant $dtype : i64
    %dtype = func.call @pointer(%description, %dtype_at) : (!llvm.ptr, i64) -> !llvm.ptr
    %rank_at = arith.constant $rank : i64
    %wide_rank = func.call @word(%description, %rank_at) : (!llvm.ptr, i64) -> i64
    %rank = arith.trunci %wide_rank : i64 to i32
    %shape_at = arith.constant $shape : i64
    %shape = func.call @pointer(%description, %shape_at) : (!llvm.ptr, i64) -> !llvm.ptr
    %ndarray = llvm.mlir.addressof @"mind.ndarray" : !llvm.ptr
    %flags = arith.constant 0 : i32
    func.call @Py_IncRef(%dtype) : (!llvm.ptr) -> ()  // which the function takes over
    %created = llvm.call @"mind.new_from_descr"(%ndarray, %dtype, %rank, %shape, %null, %null, %flags, %null)
      : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr
    scf.yield %created : !llvm.ptr
  } else {
    %allocated = func.call @PyObject_CallNoArgs(%allocator) : (!llvm.ptr) -> !llvm.ptr
    scf.yield %allocated : !llvm.ptr
  }
  return %array : !llvm.ptr
}

// A tuple of fresh arrays, or null with an exception set.
func.func private @fresh_outputs(%record: !llvm.ptr, %inputs: i64, %count: i64) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %tuple = func.call @PyTuple_New(%count) : (i64) -> !llvm.ptr
  %failed = func.call @is_null(%tuple) : (!llvm.ptr) -> i1
  %result = scf.if %failed -> !llvm.ptr {
    scf.yield %null : !llvm.ptr
  } else {
    %end = scf.while (%i = %zero) : (i64) -> i64 {
      %more = arith.cmpi slt, %i, %count : i64
      %made = scf.if %more -> i1 {
        %at = arith.addi %inputs, %i : i64
        %description = func.call @description(%record, %at) : (!llvm.ptr, i64) -> !llvm.ptr
        %array = func.call @fresh_array(%description) : (!llvm.ptr) -> !llvm.ptr
        %some = llvm.icmp "ne" %array, %null : !llvm.ptr
        scf.if %some {
          %ignored = func.call @PyTuple_SetItem(%tuple, %i, %array) : (!llvm.ptr, i64, !llvm.ptr) -> i32
        }
        scf.yield %some : i1
      } else {
        scf.yield %more : i1
      }
      scf.condition(%made) %i : i64
    } do {
    ^bb0(%i: i64):
      %next = arith.addi %i, %one : i64
      scf.yield %next : i64
    }
    %all = arith.cmpi eq, %end, %count : i64
    %complete = scf.if %all -> !llvm.ptr {
      scf.yield %tuple : !llvm.ptr
    } else {
      func.call @Py_DecRef(%tuple) : (!llvm.ptr) -> ()
      scf.yield %null : !llvm.ptr
    }
    scf.yield %complete : !llvm.ptr
  }
  return %result : !llvm.ptr
}

// A tuple of as many objects as there are outputs, from what a caller gave for them, or null.
func.func private @given_outputs(%given: !llvm.ptr, %count: i64) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %tuple_class = llvm.mlir.addressof @"mind.tuple" : !llvm.ptr
  %tuple_type = llvm.ptrtoint %tuple_class : !llvm.ptr to i64
  %is_tuple = func.call @has_type(%given, %tuple_type) : (!llvm.ptr, i64) -> i1
  %outputs = scf.if %is_tuple -> !llvm.ptr {
    %size = func.call @PyTuple_Size(%given) : (!llvm.ptr) -> i64
    %right = arith.cmpi eq, %size, %count : i64
    %same = llvm.select %right, %given, %null : i1, !llvm.ptr
    scf.if %right {
      func.call @Py_IncRef(%given) : (!llvm.ptr) -> ()
    }
    scf.yield %same : !llvm.ptr
  } else {
    %single = arith.cmpi eq, %count, %one : i64
    %wrapped = scf.if %single -> !llvm.ptr {
      %tuple = func.call @PyTuple_New(%one) : (i64) -> !llvm.ptr
      %made = llvm.icmp "ne" %tuple, %null : !llvm.ptr
      scf.if %made {
        func.call @Py_IncRef(%given) : (!llvm.ptr) -> ()
        %ignored = func.call @PyTuple_SetItem(%tuple, %zero, %given) : (!llvm.ptr, i64, !llvm.ptr) -> i32
      }
      scf.yield %tuple : !llvm.ptr
    } else {
      scf.yield %null : !llvm.ptr
    }
    scf.yield %wrapped : !llvm.ptr
  }
  return %outputs : !llvm.ptr
}
