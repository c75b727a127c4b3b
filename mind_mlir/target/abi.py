"""The binary interface between compiled code and its callers."""

from __future__ import annotations

import re

#: What an image calls the code of a function that callers see: this in front of the function's name. It is
#: ``void (void **table)``: the addresses of the inputs, of the outputs, of the status where the function has
#: run-time checks (two ``int64_t`` for each: the least and the greatest number seen), and of the arena.
ENTRY_PREFIX = "mind.entry."

#: Attribute with the size in bytes of the scratch arena of a public function, an i64: of the function, or of
#: the module where it has only one.
SCRATCH_ATTRIBUTE = "mind.scratch_bytes"

#: Attribute of an LLVM function that is given a table: the number of pointers in it, an i64.
TABLE_ATTRIBUTE = "mind.table_pointers"

#: What compiled code calls to share a loop between threads: ``void (void (*body)(void *data, int64_t chunk,
#: void *own), void *data, int64_t chunks, int64_t limit)`` runs ``body`` once for each chunk, with
#: `OWN_BYTES` of memory that no other thread has meanwhile; with a null pointer where the caller runs it.
PARALLEL_SYMBOL = "mind_parallel"
#: Added to the number of threads of a loop for which none is to be woken (see `runtime/threads.mlir`).
BRIEF = 1 << 32
#: So much memory each worker has to itself for the chunks that it runs (see `runtime/threads_workers.mlir`).
OWN_BYTES = 512 << 10

#: The function of compiled code by which loops look for interrupts, and what that calls: besides the clock,
#: functions of CPython.
POLL_SYMBOL, CLOCK_SYMBOL = "mind_poll", "clock_gettime"
PYTHON_SYMBOLS = (
    "PyErr_CheckSignals",
    "PyErr_Clear",
    "PyErr_SetInterrupt",
    "PyGILState_Ensure",
    "PyGILState_Release",
)

#: Alignment in bytes of scratch memory and constants: a cache line, and the widest vector register.
ALIGNMENT = 64

_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim
floor fma fmax fmaximum fmaximum_num fmin fminimum fminimum_num fmod frexp hypot ldexp lgamma llrint llround
log log10 log1p log2 logb lrint lround modf nearbyint nextafter pow remainder rint round roundeven scalbn sin
sincos sincospi sinh sqrt tan tanh tgamma trunc
"""
#: Functions of C's math library, which code generators call by themselves, each in all of its types.
LIBM = frozenset(_MATH.split())
_CALLED = frozenset(f"{name}{suffix}" for name in LIBM for suffix in ("", "f", "l")) | {CLOCK_SYMBOL}
_CALLED_PREFIXES = ("llvm.", "_", "mem", "mind", "str", "wcs", "bcmp", "bzero", "Py")
#: What the lowering calls the functions that it makes of those of the program.
_MADE = re.compile(r"(?:_part_\d+|_nest_\d+|_chunk_\d+|_launch|_thunk|_caller|\.body)\Z|kernel(?:_\d+)?\Z")


def symbol_of(function: str) -> str:
    """Return what compiled code calls a function of the program: its name, unless that means another one.

    A function called ``memcpy`` would be called wherever LLVM copies memory, and one called ``f_part_0`` in
    the place of a part of ``f``.
    """
    if function in _CALLED or function.startswith(_CALLED_PREFIXES) or _MADE.search(function):
        return f"mind${function}"
    return function


#: On the declaration of what calls a C function: which target is called, with which attributes.
CUSTOM_CALL_ATTRIBUTE = "mind.custom_call"

#: What compiled code calls for collectives, with the arguments of a custom call; the runtime has it do them
#: with the other ranks, wherever these run. And the target that stands for it until then.
COLLECTIVE_SYMBOL, COLLECTIVE_TARGET = "mind_collective", "mind.collective"
