"""Loops in native code that show what a machine can do: meeting, reading, copying, computing.

They are written in the LLVM dialect, as the runtime's own code is, and run by its threads.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from mind_mlir.codegen.library import compile_text
from mind_mlir.image.loading import Loaded
from mind_mlir.runtime.threads import parallel_address
from mind_mlir.target import host_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Vectors that one step of a loop reads, copies or computes with: as many as there are independent sums.
STEP = 8

#: Words of data of a loop: eight, and a vector of results.
_WORDS = 16

_PARALLEL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)

_COMMON = """
llvm.func @sched_yield() -> i32

llvm.func @nothing(%data: !llvm.ptr, %chunk: i64) {
  llvm.return
}

// Waits until both of two chunks are running; the first word counts those that have come.
llvm.func @meet(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %before = llvm.atomicrmw add %data, %one acq_rel : !llvm.ptr, i64
  %second = llvm.or %before, %one : i64
  llvm.br ^wait
^wait:
  %present = llvm.load %data atomic acquire {alignment = 8 : i64} : !llvm.ptr -> i64
  %is_alone = llvm.icmp "sle" %present, %second : i64
  llvm.cond_br %is_alone, ^wait, ^end
^end:
  llvm.return
}

// Runs %loops loops of %chunks chunks of a body, one after the other.
llvm.func @repeat(%body: !llvm.ptr, %data: !llvm.ptr, %chunks: i64, %loops: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %address = llvm.mlir.constant(PARALLEL : i64) : i64
  %parallel = llvm.inttoptr %address : i64 to !llvm.ptr
  llvm.br ^next(%zero : i64)
^next(%loop: i64):
  llvm.call %parallel(%body, %data, %chunks, %zero) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  %following = llvm.add %loop, %one : i64
  %is_left = llvm.icmp "slt" %following, %loops : i64
  llvm.cond_br %is_left, ^next(%following : i64), ^end
^end:
  llvm.return
}
"""

# The data: where the first of so many links is, each of which says where the next one lies.
_CHASE = """
llvm.func @chase(%data: !llvm.ptr, %chunk: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %steps_at = llvm.getelementptr %data[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %result_at = llvm.getelementptr %data[8] : (!llvm.ptr) -> !llvm.ptr, i64
  %first = llvm.load %data : !llvm.ptr -> !llvm.ptr
  %steps = llvm.load %steps_at : !llvm.ptr -> i64
  llvm.br ^next(%steps, %first : i64, !llvm.ptr)
^next(%left: i64, %place: !llvm.ptr):
  %following = llvm.load %place : !llvm.ptr -> !llvm.ptr
  %rest = llvm.sub %left, %one : i64
  %is_left = llvm.icmp "sgt" %rest, %one : i64
  llvm.cond_br %is_left, ^next(%rest, %following : i64, !llvm.ptr), ^end
^end:
  llvm.store volatile %following, %result_at : !llvm.ptr, !llvm.ptr
  llvm.return
}
"""

# The data of these: where to read, where to write, the steps of a chunk; results go to the ninth word and on.
_STREAM = """
llvm.func @{name}(%data: !llvm.ptr, %chunk: i64) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %start = llvm.mlir.constant(dense<0.5> : {vector}) : {vector}
  %target_at = llvm.getelementptr %data[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %steps_at = llvm.getelementptr %data[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %result_at = llvm.getelementptr %data[8] : (!llvm.ptr) -> !llvm.ptr, i64
  %source = llvm.load %data : !llvm.ptr -> !llvm.ptr
  %target = llvm.load %target_at : !llvm.ptr -> !llvm.ptr
  %steps = llvm.load %steps_at : !llvm.ptr -> i64
  %first = llvm.mul %chunk, %steps : i64
  %last = llvm.add %first, %steps : i64
  llvm.br ^next(%first, {starts} : i64, {types})
^next(%step: i64, {sums}):
  %from = llvm.getelementptr inbounds %source[%step] : (!llvm.ptr, i64) -> !llvm.ptr, {step}
  %to = llvm.getelementptr inbounds %target[%step] : (!llvm.ptr, i64) -> !llvm.ptr, {step}
{body}
  %following = llvm.add %step, %one : i64
  %is_left = llvm.icmp "slt" %following, %last : i64
  llvm.cond_br %is_left, ^next(%following, {new_sums} : i64, {types}), ^end
^end:
{results}
  llvm.return
}}
"""

_BODIES = {
    "read": """
  %from{i} = llvm.getelementptr %from[{i}] : (!llvm.ptr) -> !llvm.ptr, {vector}
  %value{i} = llvm.load %from{i} {{alignment = 64 : i64}} : !llvm.ptr -> {vector}
  %new{i} = llvm.fadd %sum{i}, %value{i} : {vector}
""",
    "ask": """
  %from{i} = llvm.getelementptr %from[{i}] : (!llvm.ptr) -> !llvm.ptr, {vector}
  %ahead{i} = llvm.getelementptr %from{i}[128] : (!llvm.ptr) -> !llvm.ptr, i8
  "llvm.intr.prefetch"(%ahead{i}) <{{cache = 1 : i32, hint = 0 : i32, rw = 0 : i32}}> : (!llvm.ptr) -> ()
  %value{i} = llvm.load %from{i} {{alignment = 64 : i64}} : !llvm.ptr -> {vector}
  %new{i} = llvm.fadd %sum{i}, %value{i} : {vector}
""",
    "copy": """
  %from{i} = llvm.getelementptr %from[{i}] : (!llvm.ptr) -> !llvm.ptr, {vector}
  %to{i} = llvm.getelementptr %to[{i}] : (!llvm.ptr) -> !llvm.ptr, {vector}
  %new{i} = llvm.load %from{i} {{alignment = 64 : i64}} : !llvm.ptr -> {vector}
  llvm.store %new{i}, %to{i} {{alignment = 64 : i64}} : {vector}, !llvm.ptr
""",
    "stream": """
  %from{i} = llvm.getelementptr %from[{i}] : (!llvm.ptr) -> !llvm.ptr, {vector}
  %to{i} = llvm.getelementptr %to[{i}] : (!llvm.ptr) -> !llvm.ptr, {vector}
  %new{i} = llvm.load %from{i} {{alignment = 64 : i64}} : !llvm.ptr -> {vector}
  llvm.store %new{i}, %to{i} {{alignment = 64 : i64, nontemporal}} : {vector}, !llvm.ptr
""",
    "fma": """
  %new{i} = llvm.intr.fma(%sum{i}, %start, %start) : ({vector}, {vector}, {vector}) -> {vector}
""",
    "compute": """
  %product{i} = llvm.fmul %sum{i}, %start : {vector}
  %new{i} = llvm.fadd %product{i}, %start : {vector}
""",
}


def _stream(name: str, vector: str) -> str:
    """Return the text of a function that takes steps of `STEP` vectors."""
    numbers = range(STEP)
    return _STREAM.format(
        name=name,
        vector=vector,
        step=f"!llvm.array<{STEP} x {vector}>",
        starts=", ".join("%start" for _ in numbers),
        types=", ".join(vector for _ in numbers),
        sums=", ".join(f"%sum{i}: {vector}" for i in numbers),
        new_sums=", ".join(f"%new{i}" for i in numbers),
        body="".join(_BODIES[name].format(i=i, vector=vector) for i in numbers),
        # What nobody reads, LLVM would not compute.
        results="".join(
            f"  llvm.store volatile %new{i}, %result_at {{alignment = 8 : i64}} : {vector}, !llvm.ptr\n"
            for i in numbers
        )
        if name in ("read", "ask", "compute", "fma")
        else "",
    )


class NativeLoops:
    """The loops, compiled for this machine.

    Args:
        bodies: The names of those over vectors that are to be run.

    Attributes:
        vector_bytes: The size of the vectors that they step by.
    """

    def __init__(self, bodies: Iterable[str] = tuple(_BODIES)) -> None:
        target = host_target()
        self.vector_bytes = target.vector_bytes
        vector = f"vector<{target.vector_bytes // 4}xf32>"
        text = _COMMON.replace("PARALLEL", str(parallel_address())) + _CHASE
        self._loaded = Loaded(compile_text(text + "".join(_stream(name, vector) for name in bodies)))
        self._repeat = _PARALLEL(self._loaded.address_of("repeat"))

    def run(self, body: str, data: Sequence[int], chunks: int, loops: int = 1) -> None:
        """Run ``loops`` loops of ``chunks`` chunks over words of data, with the threads that are set."""
        words = (ctypes.c_int64 * _WORDS)(*data)
        self._repeat(self._loaded.address_of(body), ctypes.addressof(words), chunks, loops)
