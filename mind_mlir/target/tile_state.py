"""The tile registers of AMX: Linux gives a process their state only where it asks for it.

A process asks once, for all of its threads, also those that run already, and for the processes that it forks.
Without leave, the first instruction that touches a tile ends it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform

#: What Linux calls the features whose instructions touch tiles.
TILE_FLAGS = frozenset(("amx_tile", "amx_bf16", "amx_int8"))
#: The variable that switches them on: what they compute was tested by emulation alone.
SWITCH = "MIND_MLIR_AMX"
#: ``arch_prctl``, its request for a part of the processor's state, and the number of that of tiles.
ARCH_PRCTL, REQUEST, TILE_DATA = 158, 0x1023, 18


@functools.cache
def tiles_refusal() -> str:
    """Ask Linux, the first time, for leave to use tile registers; return why it refuses, or nothing.

    It does where it is older than 5.16, where a filter of system calls (seccomp) does not let the question
    through, and where a thread has a stack for signals that is too small for the state.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return "this system has none"
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    numbers = (ctypes.c_long(each) for each in (ARCH_PRCTL, REQUEST, TILE_DATA))
    return os.strerror(ctypes.get_errno()) if call(*numbers) else ""


def usable_flags(flags: frozenset[str]) -> frozenset[str]:
    """Return those of a processor's ``flags``, as Linux calls them, that this process may use."""
    return flags - TILE_FLAGS if refusal_in_words(flags) else flags


def refusal_in_words(flags: frozenset[str]) -> str:
    """Return, for people, why a processor of such ``flags`` has tiles but does not use them; or nothing."""
    if not flags & TILE_FLAGS:
        return ""
    if os.environ.get(SWITCH) != "1":
        return f"tiles of AMX are off unless {SWITCH} is 1: no processor has run this code of them yet"
    refused = tiles_refusal()
    return (
        refused and f"Linux gives this process no tile registers (arch_prctl, ARCH_REQ_XCOMP_PERM): {refused}"
    )
