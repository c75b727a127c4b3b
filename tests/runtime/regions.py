"""Loops for the pool of threads to run, in native code: Python's threads take turns."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from mind_mlir.codegen import library
from mind_mlir.image.loading import Loaded
from mind_mlir.runtime import threads

_TEXT = """
llvm.func @sched_yield() -> i32

// Counts chunk c in word c.
llvm.func @count(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %word = llvm.getelementptr %data[%chunk] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %before = llvm.atomicrmw add %word, %one acq_rel : !llvm.ptr, i64
  llvm.return
}

// Counts all chunks in one word.
llvm.func @total(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %before = llvm.atomicrmw add %data, %one acq_rel : !llvm.ptr, i64
  llvm.return
}

// Waits until as many chunks are running as the second word says; the first word counts them.
llvm.func @meet(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %wanted_at = llvm.getelementptr %data[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %before = llvm.atomicrmw add %data, %one acq_rel : !llvm.ptr, i64
  llvm.br ^wait
^wait:
  %yielded = llvm.call @sched_yield() : () -> i32
  %present = llvm.load %data atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %wanted = llvm.load %wanted_at atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %are_few = llvm.icmp "slt" %present, %wanted : i64
  llvm.cond_br %are_few, ^wait, ^end
^end:
  llvm.return
}

// Notes how many chunks came before in the word behind that of the chunk, and waits for a second one to come.
// The first word counts them.
llvm.func @arrive(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %place = llvm.add %chunk, %one : i64
  %word = llvm.getelementptr %data[%place] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %before = llvm.atomicrmw add %data, %one acq_rel : !llvm.ptr, i64
  llvm.store %before, %word : i64, !llvm.ptr
  llvm.br ^wait
^wait:
  %yielded = llvm.call @sched_yield() : () -> i32
  %come = llvm.load %data atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %are_few = llvm.icmp "slt" %come, %two : i64
  llvm.cond_br %are_few, ^wait, ^end
^end:
  llvm.return
}

// Stays for a while; the first word is the number of chunks that are running, the second the most there were.
llvm.func @crowd(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %stay = llvm.mlir.constant(50 : i64) : i64
  %most_at = llvm.getelementptr %data[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %before = llvm.atomicrmw add %data, %one acq_rel : !llvm.ptr, i64
  %present = llvm.add %before, %one : i64
  %most = llvm.atomicrmw max %most_at, %present acq_rel : !llvm.ptr, i64
  llvm.br ^wait(%zero : i64)
^wait(%turn: i64):
  %yielded = llvm.call @sched_yield() : () -> i32
  %next = llvm.add %turn, %one : i64
  %is_over = llvm.icmp "sge" %next, %stay : i64
  llvm.cond_br %is_over, ^end, ^wait(%next : i64)
^end:
  %others = llvm.atomicrmw add %data, %minus_one acq_rel : !llvm.ptr, i64
  llvm.return
}

// Waits until the fourth word, the gate, is above the number of chunks that came before. The first word is
// the number of chunks that are waiting, the second the most there were, the third how many have come.
llvm.func @queue(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %most_at = llvm.getelementptr %data[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %come_at = llvm.getelementptr %data[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %gate_at = llvm.getelementptr %data[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %before = llvm.atomicrmw add %data, %one acq_rel : !llvm.ptr, i64
  %present = llvm.add %before, %one : i64
  %most = llvm.atomicrmw max %most_at, %present acq_rel : !llvm.ptr, i64
  %come = llvm.atomicrmw add %come_at, %one acq_rel : !llvm.ptr, i64
  llvm.br ^wait
^wait:
  %yielded = llvm.call @sched_yield() : () -> i32
  %gate = llvm.load %gate_at atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_shut = llvm.icmp "sle" %gate, %come : i64
  llvm.cond_br %is_shut, ^wait, ^end
^end:
  %others = llvm.atomicrmw add %data, %minus_one acq_rel : !llvm.ptr, i64
  llvm.return
}

// Counts 16 chunks in the words from 16 c on, in a loop of its own.
llvm.func @nest(%data: !llvm.ptr, %chunk: i64) {
  %sixteen = llvm.mlir.constant(16 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %first = llvm.mul %chunk, %sixteen : i64
  %word = llvm.getelementptr %data[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %body = llvm.mlir.addressof @count : !llvm.ptr
  %address = llvm.mlir.constant(ADDRESS : i64) : i64
  %parallel = llvm.inttoptr %address : i64 to !llvm.ptr
  llvm.call %parallel(%body, %word, %sixteen, %zero) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  llvm.return
}

// Halves the double in word c, when two chunks are running.
llvm.func @halve(%data: !llvm.ptr, %chunk: i64) {
  %half = llvm.mlir.constant(0.5 : f64) : f64
  %counters = llvm.getelementptr %data[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.call @meet(%counters, %chunk) : (!llvm.ptr, i64) -> ()
  %word = llvm.getelementptr %data[%chunk] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %value = llvm.load volatile %word : !llvm.ptr -> f64
  %product = llvm.fmul %value, %half : f64
  llvm.store %product, %word : f64, !llvm.ptr
  llvm.return
}
"""

_PARALLEL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)


@functools.cache
def bodies() -> Loaded:
    loaded = Loaded(library.compile_text(_TEXT.replace("ADDRESS", str(threads.parallel_address()))))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))  # threads may be in it when the process ends
    return loaded


def region(body: str, data: ctypes.Array[ctypes.c_int64], chunks: int, limit: int = 0) -> None:
    """Run one of the functions above for all ``chunks``."""
    _PARALLEL(threads.parallel_address())(bodies().address_of(body), ctypes.addressof(data), chunks, limit)


def words(count: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * count)()


def meet(count: int) -> None:
    """Return when ``count`` threads have run a chunk at the same time."""
    data = words(2)
    data[1] = count
    region("meet", data, count)


def workers() -> list[Path]:
    """Return where the system tells about each worker of this process."""
    return [task for task in Path("/proc/self/task").iterdir() if _name(task) == "mind-mlir\n"]


def _name(task: Path) -> str:
    try:
        return (task / "comm").read_text()
    except OSError:  # it has ended meanwhile
        return ""
